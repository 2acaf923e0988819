/** The body of a record: its bytes, its round trip, and that no bytes can harm its decoder. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { Packr, unpack } from 'msgpackr'
import { LogError, type LogErrorCode } from '../../codec/errors.ts'
import { packShared } from '../../codec/msgpack.ts'
import { MAX_PAYLOAD_DEPTH } from '../../codec/payload.ts'
import { collectGarbage } from '../support/collect-garbage.ts'
import {
  createdAtMsOf,
  createdAtOf,
  decodeRecord,
  EncodedRecord,
  MAX_KEY_BYTES,
  MAX_KEYS,
  RecordEncoder,
  recordKeys,
  recordMatches,
  type Keys,
  type StoredRecord,
} from '../../codec/record.ts'

const LIMIT = 256 * 1024
const encoder = new RecordEncoder(LIMIT)
const nil = new Uint8Array([0xc0])
const packr = new Packr({ useRecords: false, variableMapSize: true })

function encode(payload: unknown, keys?: Keys, createdAtMs = 0): Uint8Array {
  const body = new Uint8Array(encoder.prepare(payload, keys))
  assert.equal(encoder.write(body, 0, createdAtMs), body.length)
  return body
}

function decode(body: Uint8Array): StoredRecord {
  return decodeRecord(body, 0, body.length)
}

function code(run: () => unknown): LogErrorCode | undefined {
  try {
    run()
    return undefined
  } catch (error) {
    assert.ok(error instanceof LogError, String(error))
    return error.code
  }
}

const keys = fc.array(fc.string({ unit: 'grapheme', maxLength: 60 }), { maxLength: MAX_KEYS })
const someKeys = keys.filter((some) => some.every((key) => Buffer.byteLength(key) <= MAX_KEY_BYTES))
const times = fc.integer({ min: 0, max: 9_000_000_000_000 })
const payloads = fc.oneof(
  fc.uint8Array({ maxLength: 300 }),
  fc.string({ unit: 'grapheme' }),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n }),
  // Without -0, which msgpackr writes as 0.
  fc
    .json()
    .map((text) => JSON.parse(text) as unknown)
    .filter((value) => !hasProto(value) && !hasNegativeZero(value)),
)

function hasNegativeZero(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return Object.is(value, -0)
  return Object.values(value).some(hasNegativeZero)
}

function hasProto(value: unknown): boolean {
  return JSON.stringify(value).includes('__proto__')
}

describe('RecordEncoder', () => {
  test('writes byte for byte what msgpackr writes for [createdAt, keys, payload]', () => {
    fc.assert(
      fc.property(payloads, someKeys, times, (payload, some, ms) => {
        const createdAt = BigInt(ms) * 1_000_000n
        const expected = packr.pack([createdAt, some.length === 0 ? null : some, payload])
        assert.deepEqual(Buffer.from(encode(payload, some, ms)), expected)
      }),
      { numRuns: 1000 },
    )
  })

  test('writes byte strings of every header size as msgpackr does', () => {
    for (const length of [0, 1, 255, 256, 65_535, 65_536, 200_000]) {
      const bytes = new Uint8Array(length).fill(7)
      const expected = packr.pack([0n, null, Buffer.from(bytes)])
      assert.deepEqual(Buffer.from(encode(bytes)), expected)
      assert.deepStrictEqual(decode(encode(bytes)).payload, bytes)
    }
  })

  test('writes bodies that any reader of msgpack decodes', () => {
    const body = encode({ id: 1 }, ['a'], 1_700_000_000_000)
    assert.deepStrictEqual(unpack(Buffer.from(body)), [
      1_700_000_000_000_000_000n,
      ['a'],
      { id: 1 },
    ])
  })

  test('brings everything back', () => {
    fc.assert(
      fc.property(payloads, someKeys, times, (payload, some, ms) => {
        const record = decode(encode(payload, some, ms))
        const createdAt = BigInt(ms) * 1_000_000n
        assert.deepStrictEqual(record, { createdAt, createdAtMs: ms, keys: some, payload })
      }),
    )
  })

  test('encode() captures the payload, and the time is set when the record is laid', () => {
    const payload = { id: 1 }
    const bytes = new Uint8Array([1, 2, 3])
    const records = [encoder.encode(payload, ['k']), encoder.encode(bytes, undefined)]
    payload.id = 2
    bytes.fill(9)
    const laid = records.map((record) => decode(encode(record, undefined, 1234)))
    assert.deepStrictEqual(laid[0], {
      createdAt: 1_234_000_000n,
      createdAtMs: 1234,
      keys: ['k'],
      payload: { id: 1 },
    })
    assert.deepStrictEqual(laid[1]?.payload, new Uint8Array([1, 2, 3]))
    assert.ok(records[0] instanceof EncodedRecord)
  })

  test('lays a body down at any place without touching what is around it', () => {
    const target = new Uint8Array(100).fill(0xee)
    const size = encoder.prepare('hi', undefined)
    assert.equal(encoder.write(target, 10, 0), 10 + size)
    assert.deepEqual(target.subarray(0, 10), new Uint8Array(10).fill(0xee))
    assert.deepEqual(target.subarray(10 + size), new Uint8Array(90 - size).fill(0xee))
    assert.equal(decodeRecord(target, 10, 10 + size).payload, 'hi')
  })

  test('prepare() refuses a body over the limit and takes one at it', () => {
    const small = new RecordEncoder(100)
    const room = 100 - small.prepare(new Uint8Array(0), undefined)
    assert.equal(small.prepare(new Uint8Array(room), undefined), 100)
    const tooLarge = [new Uint8Array(room + 1), 'x'.repeat(90), { a: 'x'.repeat(1000) }]
    for (const payload of [...tooLarge, encoder.encode('x'.repeat(99), undefined)]) {
      assert.equal(
        code(() => small.prepare(payload, undefined)),
        'RECORD_TOO_LARGE',
      )
    }
    assert.equal(
      code(() => small.prepare(1, ['k'.repeat(200)])),
      'RECORD_TOO_LARGE',
    )
  })

  test('prepare() refuses keys that are too many, too long or no strings', () => {
    const wrong: unknown[] = [
      Array.from({ length: MAX_KEYS + 1 }, String),
      ['x'.repeat(MAX_KEY_BYTES + 1)],
      ['é'.repeat(128)],
      ['\ud800'],
      [1],
      new Array(3),
      [undefined],
      'key',
      null,
      {},
      new Set(['a']),
    ]
    for (const some of wrong) {
      assert.equal(
        code(() => encoder.prepare(1, some as Keys)),
        'INVALID_OPTION',
      )
    }
    const most = Array.from({ length: MAX_KEYS }, (_, i) => String(i).padEnd(MAX_KEY_BYTES, 'x'))
    assert.deepStrictEqual(decode(encode(1, most)).keys, most)
    assert.deepStrictEqual(decode(encode(1, [])).keys, [])
  })

  test('turns what a getter throws into ENCODE_FAILED, with the cause, and goes on', () => {
    const cause = new TypeError('from a getter')
    const payload = {
      get bad(): number {
        throw cause
      },
    }
    assert.throws(
      () => encoder.prepare(payload, undefined),
      (error: unknown) => LogError.is(error, 'ENCODE_FAILED') && error.cause === cause,
    )
    assert.equal(decode(encode('next')).payload, 'next')
  })

  test('lets go of a large buffer, and works on', () => {
    const large = new RecordEncoder(64 * 1024 * 1024)
    const text = 'é'.repeat(2 * 1024 * 1024)
    const body = large.encode({ text }, undefined).body
    assert.deepStrictEqual(decode(body).payload, { text })
    assert.equal(decode(encode('small')).payload, 'small')
    assert.ok(packShared(['small']).bytes.length <= 1024 * 1024)
  })

  test('keeps nothing of what it refused', async () => {
    const small = new RecordEncoder(100)
    const refuse = (): WeakRef<object> => {
      const payload = new Uint8Array(1000)
      code(() => small.prepare(payload, undefined))
      return new WeakRef(payload)
    }
    const ref = refuse()
    await new Promise(setImmediate)
    collectGarbage()
    assert.equal(ref.deref(), undefined)
  })
})

describe('decodeRecord()', () => {
  test('hands out bytes that stand on their own', () => {
    const pool = new Uint8Array(500)
    const size = encoder.prepare([new Uint8Array([1, 2, 3])], undefined)
    encoder.write(pool, 100, 0)
    const nested = (decodeRecord(pool, 100, 100 + size).payload as Uint8Array[])[0]
    pool.fill(0)
    assert.deepStrictEqual(nested, new Uint8Array([1, 2, 3]))
    assert.equal(nested.buffer.byteLength, 3)
    const buffer = Buffer.from(encode(new Uint8Array([4, 5])))
    const direct = decodeRecord(buffer, 0, buffer.length).payload as Uint8Array
    assert.equal(Object.getPrototypeOf(direct), Uint8Array.prototype)
    assert.equal(direct.buffer.byteLength, 2)
  })

  test('throws only LogErrors, whatever the bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        const found = code(() => decode(bytes))
        assert.ok(found === undefined || found === 'CORRUPT')
      }),
      { numRuns: 5000 },
    )
  })

  test('throws only LogErrors, whatever follows a good envelope', () => {
    const envelope = encode(null).subarray(0, -1)
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        const found = code(() => decode(Buffer.concat([envelope, bytes])))
        assert.ok(found === undefined || found === 'CORRUPT')
      }),
      { numRuns: 5000 },
    )
  })

  test('throws only LogErrors for good bodies with any one byte changed or any cut', () => {
    const value = { list: [1, -2, 3.5, 2n ** 63n], when: new Date(1.5e12), b: new Uint8Array(3) }
    const body = encode({ ...value, text: 'ü'.repeat(40), '': null }, ['one', 'k'.repeat(40)], 5)
    for (let at = 0; at < body.length; at++) {
      for (let byte = 0; byte < 256; byte++) {
        const changed = body.slice()
        changed[at] = byte
        const found = code(() => decode(changed))
        assert.ok(found === undefined || found === 'CORRUPT')
      }
    }
    for (let end = 0; end < body.length; end++) {
      assert.equal(
        code(() => decodeRecord(body, 0, end)),
        'CORRUPT',
      )
    }
  })

  test('refuses a body with anything before or behind it', () => {
    const body = encode({ a: [1] })
    const more = Buffer.concat([body, new Uint8Array([1])])
    assert.equal(
      code(() => decode(more)),
      'CORRUPT',
    )
    assert.equal(
      code(() => decodeRecord(body, 1, body.length)),
      'CORRUPT',
    )
    assert.equal(
      code(() => decodeRecord(body, 0, body.length + 1)),
      'CORRUPT',
    )
  })

  test('allocates nothing for a length that the bytes do not bear out', () => {
    const envelope = encode(null).subarray(0, -1)
    const liars = [0xc6, 0xc9, 0xdb, 0xdd, 0xdf].flatMap((marker) => [
      [marker, 0x7f, 0xff, 0xff, 0xff],
      [marker, 0xff, 0xff, 0xff, 0xff, 1, 2, 3],
      // Each array believes what its own rest seems to allow.
      Array.from({ length: 400 }, () => [marker, 0x00, 0x00, 0x07, 0xd0]).flat(),
    ])
    const before = process.memoryUsage()
    for (const liar of liars) {
      assert.equal(
        code(() => decode(Buffer.concat([envelope, new Uint8Array(liar)]))),
        'CORRUPT',
      )
    }
    const after = process.memoryUsage()
    const grown = after.heapUsed + after.external - before.heapUsed - before.external
    assert.ok(grown < 16 * 1024 * 1024, `${grown} bytes more are in use`)
  })

  test('survives nesting without end', () => {
    for (const marker of [0x91, 0x81]) {
      const deep = new Uint8Array(LIMIT).fill(marker)
      deep.set(encode(null).subarray(0, -1))
      assert.equal(
        code(() => decode(deep)),
        'CORRUPT',
      )
    }
    assert.equal(decode(encode('next')).payload, 'next')
  })

  test('takes what is nested as deep as the encoder takes it, and nothing deeper', () => {
    const envelope = encode(null).subarray(0, -1)
    for (const [marker, name] of [[0x91], [0x81, 0xa0]] as const) {
      const level = name === undefined ? [marker] : [marker, name]
      const nested = (depth: number): Uint8Array =>
        Buffer.concat([envelope, ...Array<Uint8Array>(depth).fill(new Uint8Array(level)), nil])
      assert.equal(
        code(() => decode(nested(MAX_PAYLOAD_DEPTH))),
        undefined,
      )
      assert.equal(
        code(() => decode(nested(MAX_PAYLOAD_DEPTH + 1))),
        'CORRUPT',
      )
    }
  })

  test('refuses what the encoder never writes', () => {
    const envelope = encode(null).subarray(0, -1)
    const strange = [
      [0xc1],
      [0xd4, 0x00, 0x00],
      [0xd4, 0x72, 0x40, 0x91, 0xa1, 0x61, 0x01],
      [0xc7, 0x05, 0x65, 0x93, 0xa1, 0x61, 0xa0],
      [0xd6, 0x01, 0, 0, 0, 0],
      [0xd4, 0xff, 0xff],
      [0xc7, 12, 0xff, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
      [0x81, 0x01, 0x01],
      [0x81, 0x90, 0x01],
      [0x81, 0xa9, ...Buffer.from('__proto__'), 0x01],
      [0xa1, 0xff],
      [0xd9, 0x20, ...new Uint8Array(32).fill(0xff)],
    ]
    for (const bytes of strange) {
      assert.equal(
        code(() => decode(Buffer.concat([envelope, new Uint8Array(bytes)]))),
        'CORRUPT',
        Buffer.from(bytes).toString('hex'),
      )
    }
  })
})

describe('recordMatches()', () => {
  const matches = (some: Keys, wanted: Keys): boolean => {
    const body = encode(1, some)
    return recordMatches(body, 0, body.length, new Set(wanted))
  }

  test('takes records with any of the wanted keys, and those without keys', () => {
    assert.equal(matches(['a', 'b'], ['b', 'c']), true)
    assert.equal(matches(['a'], ['b']), false)
    assert.equal(matches([], ['b']), true)
    assert.equal(matches(['a'], []), false)
  })

  test('agrees with recordKeys()', () => {
    fc.assert(
      fc.property(someKeys, someKeys, (some, wanted) => {
        const body = encode('x', some)
        const found = recordKeys(body, 0, body.length)
        assert.deepStrictEqual(found, some)
        const expected = found.length === 0 || found.some((key) => wanted.includes(key))
        assert.equal(recordMatches(body, 0, body.length, new Set(wanted)), expected)
      }),
    )
  })
})

describe('the time of a record', () => {
  test('createdAtOf() and createdAtMsOf() read what was written, in any order', () => {
    fc.assert(
      fc.property(fc.array(times, { minLength: 1 }), (all) => {
        const bodies = all.map((ms) => encode(null, undefined, ms))
        for (const [i, body] of bodies.entries()) {
          assert.equal(createdAtOf(body, 0), BigInt(all[i] as number) * 1_000_000n)
          assert.equal(createdAtMsOf(body, 0), all[i])
        }
      }),
    )
  })
})
