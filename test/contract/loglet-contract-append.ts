/** The loglet contract: appends and batches, their order, their conditions and their limits. */
import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { mock, test } from 'node:test'
import { EncodedRecord, RecordEncoder } from '../../codec/record.ts'
import { rejection } from '../support/expect-error.ts'
import {
  append,
  appendBatch,
  newLoglet,
  payloadsFrom,
  readOnce,
  type OpenProvider,
} from './loglet-probe.ts'

function settled(promises: readonly Promise<unknown>[]): Promise<unknown[]> {
  return Promise.all(promises.map((promise) => promise.catch((error: unknown) => error)))
}

export function appendContract(open: OpenProvider): void {
  test('append() gives offsets from 1 in call order, and tells them in that order', async (t) => {
    const loglet = await newLoglet(await open(t))
    assert.equal(loglet.state.tail, 1)
    const told: number[] = []
    const appends = Array.from({ length: 100 }, (_, i) => append(loglet, i))
    for (const pending of appends) void pending.then((offset) => told.push(offset))
    const offsets = await Promise.all(appends)
    assert.deepEqual(
      offsets,
      Array.from({ length: 100 }, (_, i) => i + 1),
    )
    assert.deepEqual(told, offsets)
    assert.deepEqual(
      await payloadsFrom(loglet, 1),
      Array.from({ length: 100 }, (_, i) => i),
    )
  })

  test('append() acknowledges what can be read, with everything before it', async (t) => {
    const loglet = await newLoglet(await open(t))
    const appends = Array.from({ length: 50 }, async (_, i) => {
      const offset = await append(loglet, i)
      assert.ok(loglet.state.tail > offset)
      const { records } = await readOnce(loglet, 1, { to: offset })
      assert.equal(records.length, offset)
      assert.equal(records.at(-1)?.payload, i)
    })
    await Promise.all(appends)
  })

  test('appendBatch() gives the first offset, and the tail moves by as many as it has', async (t) => {
    const loglet = await newLoglet(await open(t))
    assert.equal(await appendBatch(loglet, ['a', 'b', 'c']), 1)
    assert.equal(loglet.state.tail, 4)
    const [first, second, third] = await Promise.all([
      appendBatch(loglet, ['d']),
      append(loglet, 'e'),
      appendBatch(loglet, ['f', 'g']),
    ])
    assert.deepEqual([first, second, third], [4, 5, 6])
    assert.equal(loglet.state.tail, 8)
    assert.deepEqual(await payloadsFrom(loglet, 1), 'abcdefg'.split(''))
  })

  test('appendBatch() of no records is EMPTY_BATCH and leaves the tail', async (t) => {
    const loglet = await newLoglet(await open(t))
    await append(loglet, 1)
    await rejection(appendBatch(loglet, []), 'EMPTY_BATCH')
    assert.equal(loglet.state.tail, 2)
    assert.equal(await append(loglet, 2), 2)
  })

  test('appendBatch() stores none when one of its records is refused', async (t) => {
    const loglet = await newLoglet(await open(t))
    const refused = appendBatch(loglet, [1, 2, () => 3, 4])
    const next = append(loglet, 'next')
    await rejection(refused, 'ENCODE_FAILED')
    assert.equal(await next, 1)
    assert.deepEqual(await payloadsFrom(loglet, 1), ['next'])
  })

  test('append() leaves no gap for what was refused', async (t) => {
    const loglet = await newLoglet(await open(t, { maxRecordBytes: 200, maxBatchBytes: 1000 }))
    const appends = Array.from({ length: 40 }, (_, i) => {
      if (i % 4 === 1) return append(loglet, undefined)
      if (i % 4 === 2) return append(loglet, 'x'.repeat(300))
      if (i % 4 === 3) return append(loglet, i, { expectedTail: 0 })
      return append(loglet, i)
    })
    const outcomes = await settled(appends)
    assert.deepEqual(
      outcomes.filter((outcome) => typeof outcome === 'number'),
      [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
    )
    assert.deepEqual(await payloadsFrom(loglet, 1), [0, 4, 8, 12, 16, 20, 24, 28, 32, 36])
  })

  test('append() refuses an oversized record or batch at once, before it is queued', async (t) => {
    const loglet = await newLoglet(await open(t, { maxRecordBytes: 1000, maxBatchBytes: 3000 }))
    const codes: string[] = []
    const listener = {
      committed: () => assert.fail('committed'),
      failed: ({ code }: { code: string }) => codes.push(code),
    }
    const batch = Array.from({ length: 4 }, () => ({
      payload: new Uint8Array(900),
      keys: undefined,
    }))
    loglet.append(new Uint8Array(1000), undefined, undefined, listener)
    loglet.appendBatch(batch, undefined, listener)
    loglet.appendBatch([{ payload: 'y'.repeat(1000), keys: undefined }], undefined, listener)
    assert.deepEqual(codes, ['RECORD_TOO_LARGE', 'BATCH_TOO_LARGE', 'RECORD_TOO_LARGE'])
    assert.equal(await append(loglet, new Uint8Array(980)), 1)
    assert.equal(await appendBatch(loglet, [new Uint8Array(900), new Uint8Array(900)]), 2)
  })

  test('append() with expectedTail is judged in queue order', async (t) => {
    const loglet = await newLoglet(await open(t))
    const chained = Array.from({ length: 20 }, (_, i) => append(loglet, i, { expectedTail: i + 1 }))
    const rival = append(loglet, 'rival', { expectedTail: 1 })
    const batch = appendBatch(loglet, ['a', 'b'], { expectedTail: 21 })
    const afterBatch = append(loglet, 'c', { expectedTail: 23 })
    const { tail } = await rejection(rival, 'TAIL_MISMATCH')
    assert.equal(tail, 21)
    assert.deepEqual(
      await Promise.all(chained),
      Array.from({ length: 20 }, (_, i) => i + 1),
    )
    assert.deepEqual([await batch, await afterBatch], [21, 23])
  })

  test('TAIL_MISMATCH is told once everything below the tail it names can be read', async (t) => {
    const loglet = await newLoglet(await open(t))
    void append(loglet, 'before')
    const readable = new Promise((resolve, reject) => {
      loglet.append(
        'x',
        undefined,
        { expectedTail: 7 },
        {
          committed: () => reject(new Error('committed')),
          failed: (error) =>
            resolve('tail' in error && loglet.state.tail >= (error.tail as number)),
        },
      )
    })
    assert.equal(await readable, true)
  })

  test('append() with an expectedTail that can not be is a mismatch', async (t) => {
    const loglet = await newLoglet(await open(t))
    for (const expectedTail of [0, 2, Number.MAX_SAFE_INTEGER]) {
      const { tail } = await rejection(append(loglet, 1, { expectedTail }), 'TAIL_MISMATCH')
      assert.equal(tail, 1)
    }
    assert.equal(loglet.state.tail, 1)
  })

  test('four appends of one tick share one group', async (t) => {
    const provider = await open(t)
    const loglet = await newLoglet(provider)
    await Promise.all(['input', 'state', 'output', 'end'].map((what) => append(loglet, what)))
    const { bifrost_localloglet_write_batch_count: counts } = provider.metrics()
    assert.equal(counts.count, 1)
    assert.equal(counts.max, 4)
  })

  test('append() captures the payload and the keys during the call', async (t) => {
    const loglet = await newLoglet(await open(t))
    const payload = { list: [1, 2], bytes: new Uint8Array([1, 2, 3]) }
    const bytes = new Uint8Array([4, 5, 6])
    const keys = ['a']
    const appends = [append(loglet, payload, { keys }), append(loglet, bytes)]
    const batch = appendBatch(loglet, [payload, bytes])
    payload.list.push(3)
    payload.bytes.fill(9)
    bytes.fill(9)
    keys[0] = 'b'
    await Promise.all([...appends, batch])
    const { records } = await readOnce(loglet, 1)
    const wanted = [{ list: [1, 2], bytes: new Uint8Array([1, 2, 3]) }, new Uint8Array([4, 5, 6])]
    assert.deepStrictEqual(
      records.map((record) => record.payload),
      [...wanted, ...wanted],
    )
    assert.deepEqual(records[0]?.keys, ['a'])
  })

  test('append() takes an encoded record instead of a payload', async (t) => {
    const loglet = await newLoglet(await open(t))
    const record = new RecordEncoder(1000).encode({ id: 1 }, ['k'])
    assert.ok(record instanceof EncodedRecord)
    const before = Date.now()
    await append(loglet, record)
    await appendBatch(loglet, [record, 'other'])
    const { records } = await readOnce(loglet, 1)
    assert.deepStrictEqual(records[0]?.payload, { id: 1 })
    assert.deepStrictEqual(records[1]?.keys, ['k'])
    for (const { createdAtMs } of records) assert.ok(createdAtMs >= before)
  })

  test('createdAt never decreases within a log, though the clock is set back', async (t) => {
    const loglet = await newLoglet(await open(t))
    const clock = mock.method(Date, 'now', () => 2_000_000_000_000)
    t.after(() => clock.mock.restore())
    await append(loglet, 'early')
    clock.mock.mockImplementation(() => 1_000_000_000_000)
    await append(loglet, 'set back')
    clock.mock.mockImplementation(() => 2_000_000_000_001)
    await append(loglet, 'later')
    const { records } = await readOnce(loglet, 1)
    assert.deepEqual(
      records.map(({ createdAtMs }) => createdAtMs - 2_000_000_000_000),
      [0, 0, 1],
    )
    assert.equal(records[2]?.createdAt, 2_000_000_000_001_000_000n)
  })

  test('a full queue lets appends wait in call order, and rejects where that is wanted', async (t) => {
    const provider = await open(t, { queueBytes: 500 })
    const loglet = await newLoglet(provider)
    const waiting = Array.from({ length: 20 }, (_, i) => append(loglet, `${i}`.padStart(200, 'x')))
    const { bifrost_localloglet_queue_bytes: queued, bifrost_localloglet_waiting_bytes: held } =
      provider.metrics()
    assert.ok(queued > 0 && queued <= 500, `${queued} bytes are queued`)
    assert.ok(held > 15 * 200, `${held} bytes wait`)
    await rejection(append(loglet, 'small', { whenFull: 'reject' }), 'QUEUE_FULL')
    const last = append(loglet, 'last')
    assert.deepEqual(
      await Promise.all(waiting),
      Array.from({ length: 20 }, (_, i) => i + 1),
    )
    assert.equal(await last, 21)
    assert.equal(provider.metrics().bifrost_localloglet_waiting_bytes, 0)
    assert.equal(await append(loglet, 'small', { whenFull: 'reject' }), 22)
  })

  test('an empty queue takes any record that the limits allow', async (t) => {
    const loglet = await newLoglet(await open(t, { queueBytes: 1, batchCommitBytes: 1 }))
    const large = new Uint8Array(100_000)
    const [first, second] = await Promise.all([
      append(loglet, large, { whenFull: 'reject' }),
      append(loglet, large),
    ])
    assert.deepEqual([first, second], [1, 2])
  })

  test('a signal withdraws what is not yet in a group, and only that', async (t) => {
    const loglet = await newLoglet(await open(t, { queueBytes: 300 }))
    const controller = new AbortController()
    const { signal } = controller
    const reason = new Error('changed my mind')
    const kept = append(loglet, 'kept')
    const withdrawn = append(loglet, 'withdrawn', { signal })
    const batch = appendBatch(loglet, ['x', 'y'], { signal })
    const full = append(loglet, 'z'.repeat(300))
    const waiting = append(loglet, 'waiting', { signal })
    const after = append(loglet, 'after')
    controller.abort(reason)
    const aborted = [withdrawn, batch, waiting, append(loglet, 'too late', { signal })]
    for (const error of await Promise.all(aborted.map((call) => rejection(call, 'ABORTED')))) {
      assert.equal(error.name, 'AbortError')
      assert.equal(error.cause, reason)
    }
    assert.deepEqual([await kept, await full, await after], [1, 2, 3])
    assert.deepEqual(await payloadsFrom(loglet, 1), ['kept', 'z'.repeat(300), 'after'])
  })

  test('a signal that aborts after the acknowledgement changes nothing', async (t) => {
    const loglet = await newLoglet(await open(t))
    const controller = new AbortController()
    assert.equal(await append(loglet, 1, { signal: controller.signal }), 1)
    controller.abort()
    assert.deepEqual(await payloadsFrom(loglet, 1), [1])
  })

  test('a thousand appends share one signal without a warning, and leave nothing on it', async (t) => {
    const loglet = await newLoglet(await open(t))
    const warnings: Error[] = []
    const listener = (warning: Error): number => warnings.push(warning)
    process.on('warning', listener)
    t.after(() => process.off('warning', listener))
    const { signal } = new AbortController()
    await Promise.all(Array.from({ length: 1000 }, (_, i) => append(loglet, i, { signal })))
    await new Promise(setImmediate)
    assert.deepEqual(warnings, [])
    assert.equal(getEventListeners(signal, 'abort').length, 0)
  })
}
