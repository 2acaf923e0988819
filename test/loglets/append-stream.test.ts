/** Streams of records: batches of what is ready, and how far a stream came when it ends early. */
import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { Readable } from 'node:stream'
import { describe, test, type TestContext } from 'node:test'
import { LogError, logError } from '../../codec/errors.ts'
import type { Bifrost } from '../../loglets/bifrost.ts'
import { rejection } from '../support/expect-error.ts'
import { Gate, openMemoryStore, type TestSeams } from './memory-store.ts'
import { FailingProvider } from './wrapped-provider.ts'

async function open(t: TestContext, seams: TestSeams = {}): Promise<Bifrost> {
  const bifrost = await openMemoryStore({}, { startsInOpen: true, ...seams })
  t.after(() => bifrost.close())
  return bifrost
}

async function* ready(count: number): AsyncGenerator<number> {
  for (let n = 1; n <= count; n++) yield n
}

async function payloads(bifrost: Bifrost): Promise<unknown[]> {
  const all: unknown[] = []
  const reader = bifrost.createReader('log', { follow: false, gaps: 'throw' })
  for await (const { payload } of reader) all.push(payload)
  return all
}

interface Progress {
  readonly error: unknown
  readonly count: unknown
  readonly last: unknown
}

async function progress(stream: Promise<unknown>): Promise<Progress> {
  const error = await stream.then(
    () => assert.fail('resolved'),
    (reason: unknown) => reason,
  )
  const { count, last } = error as { count: unknown; last: unknown }
  return { error, count, last }
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, i) => from + i)
}

describe('appendStream()', () => {
  test('appends all that a source gives, in order, ten at a time', async (t) => {
    const bifrost = await open(t)
    assert.deepEqual(await bifrost.appendStream('log', ready(25)), {
      count: 25,
      first: 1,
      last: 25,
    })
    assert.deepEqual(await payloads(bifrost), range(1, 25))
    const { write_batch_count: counts } = batchCounts(bifrost)
    assert.deepEqual([counts.count, counts.max, counts.sum], [3, 10, 25])
  })

  test('takes any iterable, async or not', async (t) => {
    const bifrost = await open(t)
    await bifrost.appendStream('log', [1, 2])
    await bifrost.appendStream('log', new Set([3]))
    await bifrost.appendStream('log', Readable.from([4, 5]))
    await bifrost.log('log').appendStream('67')
    assert.deepEqual(await payloads(bifrost), [1, 2, 3, 4, 5, '6', '7'])
    assert.deepEqual(await bifrost.appendStream('log', []), {
      count: 0,
      first: undefined,
      last: undefined,
    })
  })

  test('never waits to fill a batch', async (t) => {
    const bifrost = await open(t)
    let letEnd: (() => void) | undefined
    async function* source(): AsyncGenerator<number> {
      yield* [1, 2, 3]
      await new Promise<void>((resolve) => (letEnd = resolve))
    }
    const stream = bifrost.appendStream('log', source(), { maxBatchCount: 100 })
    assert.equal((await bifrost.readNextSingle('log', 2)).lsn, 3)
    letEnd?.()
    assert.deepEqual(await stream, { count: 3, first: 1, last: 3 })
  })

  test('keeps to maxBatchCount and maxBatchBytes', async (t) => {
    const bifrost = await open(t)
    await bifrost.appendStream('log', ready(9), { maxBatchCount: 4 })
    assert.equal(batchCounts(bifrost).write_batch_count.max, 4)
    const large = Array.from({ length: 6 }, () => new Uint8Array(900))
    const before = batchCounts(bifrost).write_batch_count.count
    await bifrost.appendStream('log', large, { maxBatchBytes: 2000 })
    assert.equal(batchCounts(bifrost).write_batch_count.count - before, 3)
  })

  test('leaves nothing on its signal', async (t) => {
    const bifrost = await open(t)
    const { signal } = new AbortController()
    await bifrost.appendStream('log', ready(25), { signal })
    const failing = bifrost.appendStream('log', [() => 1], { signal })
    await rejection(failing, 'ENCODE_FAILED')
    assert.equal(getEventListeners(signal, 'abort').length, 0)
  })

  test('gives each record its keys', async (t) => {
    const bifrost = await open(t)
    await bifrost.appendStream('log', [1, 2], { keys: (n) => [`n${n}`] })
    await bifrost.appendStream('log', [3], { keys: ['all'] })
    const reader = bifrost.createReader('log', { follow: false, gaps: 'throw' })
    const keys: unknown[] = []
    for await (const record of reader) keys.push(record.keys)
    assert.deepEqual(keys, [['n1'], ['n2'], ['all']])
  })

  test('captures an item when it is taken', async (t) => {
    const bifrost = await open(t)
    const item = { n: 0 }
    function* source(): Generator<{ n: number }> {
      for (item.n = 1; item.n <= 3; item.n++) yield item
    }
    await bifrost.appendStream('log', source())
    assert.deepEqual(await payloads(bifrost), [{ n: 1 }, { n: 2 }, { n: 3 }])
  })

  test('has one batch in flight, and takes at most one batch ahead', async () => {
    const gate = new Gate()
    const bifrost = await openMemoryStore(
      { logs: [] },
      { startsInOpen: true, internals: { schedule: gate.schedule } },
    )
    const creating = bifrost.createLog('log')
    gate.step()
    await creating
    let taken = 0
    function* source(): Generator<number> {
      while (taken < 100) yield ++taken
    }
    const stream = bifrost.appendStream('log', source())
    await new Promise(setImmediate)
    assert.ok(taken <= 21, `${taken} were taken`)
    assert.ok(bifrost.metrics().bifrost_localloglet_queue_bytes < 10 * 100)
    gate.open()
    assert.equal((await stream).count, 100)
    await bifrost.close()
  })

  test('if the source throws, commits what was taken and tells how far it came', async (t) => {
    const bifrost = await open(t)
    await bifrost.append('log', 0)
    const failure = new Error('source')
    async function* source(): AsyncGenerator<number> {
      yield* range(1, 17)
      throw failure
    }
    const { error, count, last } = await progress(bifrost.appendStream('log', source()))
    assert.equal(error, failure)
    assert.deepEqual([count, last], [17, 18])
    assert.deepEqual(await payloads(bifrost), range(0, 17))
  })

  test('if the source throws what can carry nothing, wraps it', async (t) => {
    const bifrost = await open(t)
    const thrown: unknown[] = ['text', undefined, Object.freeze(new Error('frozen'))]
    for (const reason of thrown) {
      const source = (function* (): Generator<number> {
        yield 1
        throw reason
      })()
      const { error, count } = await progress(bifrost.appendStream('log', source))
      assert.equal(count, 1)
      assert.equal((error as Error).cause, reason)
    }
  })

  test('if it is aborted, commits what was taken, then rejects with ABORTED', async (t) => {
    const bifrost = await open(t)
    const controller = new AbortController()
    const reason = new Error('enough')
    let isReturned = false
    async function* source(): AsyncGenerator<number> {
      try {
        yield* [1, 2, 3]
        await new Promise((resolve) => setImmediate(resolve))
        controller.abort(reason)
        yield* [4, 5]
      } finally {
        isReturned = true
      }
    }
    const { signal } = controller
    const { error, count, last } = await progress(bifrost.appendStream('log', source(), { signal }))
    assert.ok(LogError.is(error, 'ABORTED'))
    assert.equal(error.cause, reason)
    assert.deepEqual([count, last], [3, 3])
    assert.deepEqual(await payloads(bifrost), [1, 2, 3])
    await new Promise(setImmediate)
    assert.equal(isReturned, true)
    assert.equal(getEventListeners(signal, 'abort').length, 0)
  })

  test('is aborted at once while its source never answers', async (t) => {
    const bifrost = await open(t)
    const controller = new AbortController()
    const source: AsyncIterable<number> = {
      [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => undefined) }),
    }
    const stream = bifrost.appendStream('log', source, { signal: controller.signal })
    await new Promise(setImmediate)
    controller.abort()
    const { error, count, last } = await progress(stream)
    assert.ok(LogError.is(error, 'ABORTED'))
    assert.deepEqual([count, last], [0, undefined])
  })

  test('stops at a record that can not be encoded, after those before it', async (t) => {
    const bifrost = await open(t)
    const items = [1, 2, () => 3, 4]
    const { error, count, last } = await progress(bifrost.appendStream('log', items))
    assert.ok(LogError.is(error, 'ENCODE_FAILED'))
    assert.deepEqual([count, last], [2, 2])
    assert.deepEqual(await payloads(bifrost), [1, 2])
  })

  test('stops at a batch that fails, with an error of its own that tells how far it came', async (t) => {
    let provider: FailingProvider | undefined
    const bifrost = await open(t, { wrap: (inner) => (provider = new FailingProvider(inner)) })
    const failure = logError('WRITE_FAILED', 'no space')
    let isReturned = false
    async function* source(): AsyncGenerator<number> {
      try {
        for (let n = 1; n <= 100; n++) {
          if (n === 15) provider?.appendErrors.push(failure)
          yield n
        }
      } finally {
        isReturned = true
      }
    }
    const { error, count, last } = await progress(bifrost.appendStream('log', source()))
    assert.ok(LogError.is(error, 'WRITE_FAILED'))
    assert.notEqual(error, failure)
    assert.equal((await payloads(bifrost)).length, count)
    assert.equal(last, count === 0 ? undefined : count)
    await new Promise(setImmediate)
    assert.equal(isReturned, true)
  })

  test('refuses wrong options and sources, taking nothing', async (t) => {
    const bifrost = await open(t)
    let isTaken = false
    function* source(): Generator<number> {
      isTaken = true
      yield 1
    }
    for (const options of [
      { maxBatchCount: 0 },
      { maxBatchBytes: 2 ** 40 },
      { signal: 1 },
      { batch: 1 },
      null,
    ]) {
      const stream = bifrost.appendStream('log', source(), options as object)
      await rejection(stream, 'INVALID_OPTION')
    }
    for (const items of [undefined, null, 1, {}]) {
      await rejection(bifrost.appendStream('log', items as never), 'INVALID_OPTION')
    }
    await rejection(bifrost.appendStream('nobody', source()), 'UNKNOWN_LOG')
    assert.equal(isTaken, false)
  })
})

function batchCounts(bifrost: Bifrost) {
  return { write_batch_count: bifrost.metrics().bifrost_localloglet_write_batch_count }
}
