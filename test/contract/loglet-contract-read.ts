/** The loglet contract: reads, what they give, where they end, and what comes back. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { logError } from '../../codec/errors.ts'
import { rejection } from '../support/expect-error.ts'
import {
  append,
  appendBatch,
  newLoglet,
  payloadsFrom,
  readOnce,
  type OpenProvider,
} from './loglet-probe.ts'

const payloads: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(null, true, false, -0, NaN, Infinity, '', 0n),
  fc.double(),
  fc.integer(),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n }),
  fc.string({ unit: 'grapheme' }),
  fc.uint8Array({ maxLength: 100 }),
  fc.date({ noInvalidDate: true }),
  fc.array(fc.oneof(fc.integer(), fc.string(), fc.uint8Array({ maxLength: 5 }))),
  fc.dictionary(
    fc.string({ unit: 'grapheme' }).filter((key) => key !== '__proto__'),
    fc.oneof(fc.constant(null), fc.double(), fc.date({ noInvalidDate: true })),
    { noNullPrototype: true },
  ),
)

export function readContract(open: OpenProvider): void {
  test('read() gives back every kind of payload as what it was', async (t) => {
    const loglet = await newLoglet(await open(t))
    await fc.assert(
      fc.asyncProperty(fc.array(payloads, { minLength: 1, maxLength: 20 }), async (batch) => {
        const first = await appendBatch(loglet, batch)
        const { records } = await readOnce(loglet, first)
        assert.deepStrictEqual(
          records.map(({ payload }) => payload),
          batch,
        )
      }),
      { numRuns: 50 },
    )
  })

  test('read() gives keys and time', async (t) => {
    const loglet = await newLoglet(await open(t))
    const before = Date.now()
    await append(loglet, 1, { keys: ['a', 'ß', ''] })
    const { records } = await readOnce(loglet, 1)
    const [record] = records
    assert.ok(record)
    const { keys, createdAt, createdAtMs } = record
    assert.deepEqual(keys, ['a', 'ß', ''])
    assert.ok(createdAtMs >= before && createdAtMs <= Date.now())
    assert.equal(createdAt, BigInt(createdAtMs) * 1_000_000n)
  })

  test('read() lends bytes: what was decoded from them stands on its own', async (t) => {
    const loglet = await newLoglet(await open(t))
    await append(loglet, new Uint8Array([1, 2, 3]))
    await append(loglet, { nested: new Uint8Array([4, 5]) })
    const { records } = await readOnce(loglet, 1)
    const direct = records[0]?.payload as Uint8Array
    const { nested } = records[1]?.payload as { nested: Uint8Array }
    for (const bytes of [direct, nested]) {
      assert.equal(bytes.buffer.byteLength, bytes.length)
      bytes.fill(0)
    }
    await append(loglet, new Uint8Array(1000).fill(7))
    assert.deepStrictEqual(
      (await readOnce(loglet, 1)).records[0]?.payload,
      new Uint8Array([1, 2, 3]),
    )
  })

  test('read() at or past the tail is "tail", and waits for nothing', async (t) => {
    const loglet = await newLoglet(await open(t))
    assert.deepEqual((await readOnce(loglet, 1)).outcome, { kind: 'tail' })
    await append(loglet, 1)
    assert.deepEqual((await readOnce(loglet, 2)).outcome, { kind: 'tail' })
    assert.deepEqual((await readOnce(loglet, 1000)).outcome, { kind: 'tail' })
    const outcome = (await readOnce(loglet, Number.MAX_SAFE_INTEGER)).outcome
    assert.deepEqual(outcome, { kind: 'tail' })
  })

  test('read() at or past a sealed tail is "end"', async (t) => {
    const loglet = await newLoglet(await open(t))
    await append(loglet, 1)
    await loglet.seal(undefined)
    assert.deepEqual((await readOnce(loglet, 1)).outcome, { kind: 'data', next: 2 })
    assert.deepEqual((await readOnce(loglet, 2)).outcome, { kind: 'end' })
    assert.deepEqual((await readOnce(loglet, 9)).outcome, { kind: 'end' })
  })

  test('read() stops after `to`, and where visit() says so', async (t) => {
    const loglet = await newLoglet(await open(t))
    await appendBatch(loglet, [1, 2, 3, 4, 5])
    assert.deepEqual((await readOnce(loglet, 2, { to: 4 })).outcome, { kind: 'data', next: 5 })
    assert.deepEqual((await readOnce(loglet, 5, { to: 5 })).outcome, { kind: 'data', next: 6 })
    const visited: number[] = []
    const outcome = await loglet.read({
      from: 1,
      to: 5,
      maxBytes: Infinity,
      visit: (offset) => visited.push(offset) < 3,
    })
    assert.deepEqual(visited, [1, 2, 3])
    assert.deepEqual(outcome, { kind: 'data', next: 4 })
  })

  test('read() gives at least one record, and not many more than maxBytes', async (t) => {
    const loglet = await newLoglet(await open(t))
    await appendBatch(
      loglet,
      Array.from({ length: 50 }, () => new Uint8Array(1000)),
    )
    const one = await readOnce(loglet, 1, { maxBytes: 1 })
    assert.equal(one.records.length, 1)
    const some = await readOnce(loglet, 1, { maxBytes: 10_000 })
    assert.ok(some.records.length >= 5 && some.records.length <= 15, `${some.records.length}`)
    assert.equal((await payloadsFrom(loglet, 1)).length, 50)
  })

  test('read() rejects with the error that visit() throws', async (t) => {
    const loglet = await newLoglet(await open(t))
    await appendBatch(loglet, [1, 2])
    const unreadable = logError('DATA_LOSS', 'from visit', { fields: { from: 1, to: 1 } })
    const visit = (): never => {
      throw unreadable
    }
    const reading = loglet.read({ from: 1, to: 2, maxBytes: 100, visit })
    assert.equal(await rejection(reading, 'DATA_LOSS'), unreadable)
    assert.equal((await readOnce(loglet, 1)).records.length, 2)
  })

  test('reads overlap with each other and with appends', async (t) => {
    const loglet = await newLoglet(await open(t))
    await appendBatch(
      loglet,
      Array.from({ length: 200 }, (_, i) => i),
    )
    const reads = Array.from({ length: 20 }, async (_, i) => {
      const { records } = await readOnce(loglet, i * 10 + 1, { to: i * 10 + 10 })
      assert.deepEqual(
        records.map(({ payload }) => payload),
        Array.from({ length: 10 }, (_, j) => i * 10 + j),
      )
    })
    const appends = Array.from({ length: 50 }, (_, i) => append(loglet, 200 + i))
    await Promise.all([...reads, ...appends])
    assert.equal((await payloadsFrom(loglet, 1)).length, 250)
  })

  test('read() below the trim point is one gap up to it, then data', async (t) => {
    const loglet = await newLoglet(await open(t))
    await appendBatch(loglet, [1, 2, 3, 4, 5])
    await loglet.trim(3)
    for (const from of [1, 2, 3]) {
      const { outcome, records } = await readOnce(loglet, from)
      assert.deepEqual(outcome, { kind: 'trim-gap', until: 3 })
      assert.equal(records.length, 0)
    }
    assert.deepEqual(await payloadsFrom(loglet, 4), [4, 5])
  })

  test('a read that races a trim gives records in order or a gap, never less in silence', async (t) => {
    const loglet = await newLoglet(await open(t))
    const count = 300
    await appendBatch(
      loglet,
      Array.from({ length: count }, (_, i) => i + 1),
    )
    const seen: number[] = []
    const readAll = async (): Promise<void> => {
      let next = 1
      while (next <= count) {
        const { outcome, records } = await readOnce(loglet, next, { maxBytes: 200 })
        if (outcome.kind === 'trim-gap') {
          assert.ok(outcome.until >= next, 'a gap moves on')
          next = outcome.until + 1
          continue
        }
        assert.equal(outcome.kind, 'data')
        for (const { payload } of records) assert.equal(payload, next++)
        seen.push(records.length)
      }
    }
    const trimAll = async (): Promise<void> => {
      for (let upTo = 20; upTo < count; upTo += 20) {
        await loglet.trim(upTo)
        await new Promise(setImmediate)
      }
    }
    await Promise.all([readAll(), readAll(), trimAll()])
    assert.ok(seen.length > 0)
    assert.deepEqual(
      await payloadsFrom(loglet, 281),
      [...Array(20).keys()].map((i) => 281 + i),
    )
  })

  test('read() of a deleted log is UNKNOWN_LOG', async (t) => {
    const provider = await open(t)
    const loglet = await newLoglet(provider, 'gone')
    await append(loglet, 1)
    await provider.chains.deleteLog('gone')
    await rejection(readOnce(loglet, 1), 'UNKNOWN_LOG')
  })
}
