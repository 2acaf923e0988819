/** Which values can be a payload, and that each comes back as what it was. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { addExtension, Packr, Unpackr } from 'msgpackr'
import { LogError, type LogErrorCode } from '../../codec/errors.ts'
import { pack, unpack } from '../../codec/msgpack.ts'
import { MAX_PAYLOAD_DEPTH, packablePayload } from '../../codec/payload.ts'

const LIMIT = 1024 * 1024

function encode(value: unknown): Uint8Array {
  return pack(packablePayload(value, LIMIT))
}

function roundTrip(value: unknown): unknown {
  const bytes = encode(value)
  return unpack(bytes, 0, bytes.length)
}

function assertSame(value: unknown, expected: unknown = value): void {
  assert.deepStrictEqual(roundTrip(value), expected)
}

function assertRefused(value: unknown, code: LogErrorCode, message: RegExp): void {
  assert.throws(
    () => encode(value),
    (error: unknown) => LogError.is(error, code) && message.test(error.message),
  )
}

function nested(depth: number, wrap: (inner: unknown) => unknown): unknown {
  let value: unknown = 1
  for (let i = 0; i < depth; i++) value = wrap(value)
  return value
}

/** Any payload that may be appended, as JavaScript values that come back equal. */
const payloads: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom(null, true, false, -0, 0, NaN, Infinity, -Infinity, ''),
    fc.integer(),
    fc.maxSafeInteger(),
    fc.double(),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n }),
    fc.string({ unit: 'grapheme', maxLength: 80 }),
    fc.date({ noInvalidDate: true, min: new Date(-8.64e15), max: new Date(8.64e15) }),
    fc.uint8Array({ maxLength: 80 }),
    fc.array(tie('value'), { maxLength: 20 }),
    fc.dictionary(
      fc.string({ unit: 'grapheme', maxLength: 40 }).filter((key) => key !== '__proto__'),
      tie('value'),
      { noNullPrototype: true, maxKeys: 20 },
    ),
  ),
})).value

describe('packablePayload()', () => {
  test('lets every legal value come back as what it was', () => {
    fc.assert(
      fc.property(payloads, (value) => assertSame(value)),
      { numRuns: 2000 },
    )
  })

  test('keeps the sign of zero, NaN and the infinities at every depth', () => {
    for (const value of [-0, 0, NaN, Infinity, -Infinity, Number.MIN_VALUE, 5e-324, 2 ** 53]) {
      assertSame(value)
      assertSame([value, { a: value }])
    }
  })

  test('keeps numbers numbers and bigints bigints at the edges of every width', () => {
    for (const bits of [5, 7, 8, 15, 16, 31, 32, 53]) {
      for (const near of [-1, 0, 1]) {
        assertSame(2 ** bits + near)
        assertSame(-(2 ** bits) + near)
      }
    }
    for (const value of [0n, 1n, -1n, 2n ** 63n - 1n, 2n ** 63n, 2n ** 64n - 1n, -(2n ** 63n)]) {
      assertSame(value)
    }
  })

  test('refuses a bigint of more than 64 bits', () => {
    assertRefused(2n ** 64n, 'ENCODE_FAILED', /bigint over 64 bits/)
    assertRefused({ a: [-(2n ** 63n) - 1n] }, 'ENCODE_FAILED', /payload\["a"\]\[0\] is a bigint/)
  })

  test('keeps dates to the millisecond from the first to the last', () => {
    const edges = [0, 1, -1, 999, 1000, 2 ** 32 * 1000, 2 ** 34 * 1000, 2 ** 34 * 1000 - 1]
    for (const ms of [...edges, ...edges.map((edge) => -edge), 8.64e15, -8.64e15]) {
      assertSame(new Date(ms))
    }
    assertRefused(new Date(NaN), 'ENCODE_FAILED', /invalid Date/)
  })

  test('keeps a leading byte order mark, whatever the length of the string', () => {
    for (const length of [0, 1, 15, 16, 23, 24, 31, 32, 63, 64, 65, 255, 256, 70_000]) {
      assertSame(`\uFEFF${'x'.repeat(length)}`)
      assertSame({ [`\uFEFF${'x'.repeat(length)}`]: `\uFEFF${'é'.repeat(length)}` })
    }
  })

  test('refuses a lone surrogate in a string or a name', () => {
    assertRefused('a\ud800', 'ENCODE_FAILED', /lone surrogate/)
    assertRefused({ '\udc00': 1 }, 'ENCODE_FAILED', /lone surrogate/)
    assertSame('\ud83d\ude00')
  })

  test('drops undefined members and leaves the object of the caller alone', () => {
    const value = { a: 1, b: undefined, c: { d: undefined, e: -0 }, f: [{ g: undefined }] }
    const before = structuredClone(value)
    assertSame(value, { a: 1, c: { e: -0 }, f: [{}] })
    assert.deepStrictEqual(value, before)
  })

  test('refuses undefined at the top and in arrays, and holes', () => {
    assertRefused(undefined, 'ENCODE_FAILED', /payload is undefined/)
    assertRefused([1, undefined], 'ENCODE_FAILED', /payload\[1\] is undefined/)

    assertRefused([1, , 2], 'ENCODE_FAILED', /payload\[1\] is undefined/)
  })

  test('refuses what would come back as something else', () => {
    class Point {
      x = 1
    }
    class Sorted extends Array<number> {}
    class Stamp extends Date {}
    function argumentsOf(): unknown {
      // eslint-disable-next-line prefer-rest-params -- an arguments object is what is tested
      return arguments
    }
    const refused: [unknown, RegExp][] = [
      [() => 1, /is a function/],
      [Symbol('s'), /is a symbol/],
      [new Map(), /an instance of Map/],
      [new Set(), /an instance of Set/],
      [new Error('no'), /an instance of Error/],
      [/x/, /an instance of RegExp/],
      [new Point(), /an instance of Point/],
      [new Sorted(1, 2), /an instance of Sorted/],
      [new Stamp(), /an instance of Stamp/],
      [new Float64Array(1), /an instance of Float64Array/],
      [new Uint8ClampedArray(1), /an instance of Uint8ClampedArray/],
      [new DataView(new ArrayBuffer(1)), /an instance of DataView/],
      [new ArrayBuffer(1), /an instance of ArrayBuffer/],
      [Promise.resolve(), /an instance of Promise/],
      [new Number(1), /an instance of Number/],
      [argumentsOf(), /an instance of Object/],
      [Math, /an instance of Object/],
      [Object.create({ inherited: 1 }), /an instance of Object/],
      [Object.create(Point.prototype), /an instance of Point/],
    ]
    for (const [value, why] of refused) {
      assertRefused(value, 'ENCODE_FAILED', why)
      assertRefused({ in: [value] }, 'ENCODE_FAILED', /payload\["in"\]\[0\]/)
    }
  })

  test('is not deceived by a value that says it is something else', () => {
    const date = { [Symbol.toStringTag]: 'Date', constructor: { name: 'Date' } }
    const bytes = { [Symbol.toStringTag]: 'Uint8Array', length: 3 }
    const noConstructor = Object.setPrototypeOf([1], { constructor: undefined }) as unknown
    for (const value of [date, bytes, noConstructor]) {
      assertRefused(value, 'ENCODE_FAILED', /would not come back/)
    }
  })

  test('takes objects whose members have awkward names', () => {
    assertSame({ constructor: 'x', toJSON: 'y', hasOwnProperty: 1, then: 2, length: 3, '': 4 })
    assertSame({ 1: 'a', '-1': 'b', '01': 'c', toString: null })
    assertSame(Object.assign(Object.create(null) as object, { a: 1 }), { a: 1 })
  })

  test('refuses a member named __proto__, which readers of msgpack rename', () => {
    const value: unknown = JSON.parse('{"a":{"__proto__":1}}')
    assertRefused(value, 'ENCODE_FAILED', /__proto__.*readers of msgpack change/)
  })

  test('refuses cycles, and nesting deeper than the limit but not at it', () => {
    const cycle: Record<string, unknown> = {}
    cycle['self'] = [cycle]
    assertRefused(cycle, 'ENCODE_FAILED', /a cycle/)
    for (const wrap of [(inner: unknown) => [inner], (inner: unknown) => ({ inner })]) {
      assertSame(nested(MAX_PAYLOAD_DEPTH, wrap))
      assertRefused(nested(MAX_PAYLOAD_DEPTH + 1, wrap), 'ENCODE_FAILED', /nested deeper/)
    }
  })

  test('takes values of another realm', () => {
    const foreign: unknown = runInNewContext(`({
      list: [1, { two: 2 }], when: new Date(5), bytes: new Uint8Array([1, 2]), bare: Object.create(null),
    })`)
    const expected = { list: [1, { two: 2 }], when: new Date(5), bytes: new Uint8Array([1, 2]) }
    assertSame(foreign, { ...expected, bare: {} })
    assertSame(runInNewContext('new Uint8Array([7])'), new Uint8Array([7]))
    for (const source of ['new Map()', 'new (class A extends Array {})()', 'new (class P {})()']) {
      assertRefused(runInNewContext(source), 'ENCODE_FAILED', /an instance of/)
    }
  })

  test('gives bytes back as a Uint8Array of their own, whatever view was given', () => {
    const pool = Buffer.from('0123456789')
    for (const view of [pool.subarray(2, 5), new Uint8Array(pool.buffer, pool.byteOffset + 2, 3)]) {
      const back = (roundTrip([view]) as Uint8Array[])[0]
      assert.deepStrictEqual(back, new Uint8Array([50, 51, 52]))
      assert.equal(back.buffer.byteLength, 3)
    }
  })

  test('ends early with RECORD_TOO_LARGE when the payload can not fit', () => {
    let visited = 0
    const items = Array.from({ length: 100 }, () => ({
      get text() {
        visited++
        return 'x'.repeat(1000)
      },
    }))
    assert.throws(
      () => packablePayload(items, 5000),
      (error: unknown) => LogError.is(error, 'RECORD_TOO_LARGE'),
    )
    assert.ok(visited < 10, `${visited} members were looked at`)
  })

  test('writes what msgpackr writes', () => {
    const packr = new Packr({ useRecords: false, variableMapSize: true })
    const withoutNegativeZero = payloads.filter((value) => !hasNegativeZero(value))
    fc.assert(
      fc.property(withoutNegativeZero, (value) => {
        assert.deepEqual(Buffer.from(encode(value)), packr.pack(value))
      }),
    )
  })

  test('writes what other readers of msgpack read', () => {
    const unpackr = new Unpackr({ useRecords: false, mapsAsObjects: true, int64AsType: 'bigint' })
    const value = { a: [1, -0, 2n ** 64n - 1n, 'ü', null, true], when: new Date(1.5e12) }
    assert.deepStrictEqual(unpackr.unpack(encode(value)), value)
  })

  test('writes plain msgpack even if the application taught msgpackr to write otherwise', () => {
    const value = [new Date(1.5e12), new Uint8Array([1, 2, 3])]
    const before = encode(value)
    addExtension({ Class: Date, type: 1, pack: () => new Uint8Array([9]), unpack: () => 'no' })
    addExtension({ Class: Uint8Array, type: 2, pack: () => new Uint8Array([9]), unpack: () => 0 })
    assert.deepStrictEqual(encode(value), before)
    assertSame(value)
  })
})

function hasNegativeZero(value: unknown): boolean {
  if (Object.is(value, -0)) return true
  if (typeof value !== 'object' || value === null) return false
  return Object.values(value).some(hasNegativeZero)
}
