/** Appenders: acceptance and durability, batches, the memory limit, failures, and their stream. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { describe, test, type TestContext } from 'node:test'
import { logError } from '../../codec/errors.ts'
import type { Bifrost } from '../../loglets/bifrost.ts'
import { rejection, thrown } from '../support/expect-error.ts'
import { collectGarbage } from '../support/collect-garbage.ts'
import { Gate, openMemoryStore, type TestOptions } from './memory-store.ts'
import { FailingProvider } from './wrapped-provider.ts'

async function open(t: TestContext, options: TestOptions = {}): Promise<Bifrost> {
  const bifrost = await openMemoryStore(options, { startsInOpen: true })
  t.after(() => bifrost.close())
  return bifrost
}

async function openGated(t: TestContext): Promise<{ bifrost: Bifrost; gate: Gate }> {
  const gate = new Gate()
  const opening = openMemoryStore(
    {},
    { startsInOpen: true, internals: { schedule: gate.schedule } },
  )
  while (!gate.isHolding) await turn()
  gate.step()
  const bifrost = await opening
  t.after(() => {
    gate.open()
    return bifrost.close()
  })
  return { bifrost, gate }
}

async function openFailing(
  t: TestContext,
): Promise<{ bifrost: Bifrost; provider: FailingProvider }> {
  let provider: FailingProvider | undefined
  const bifrost = await openMemoryStore(
    {},
    { startsInOpen: true, wrap: (inner) => (provider = new FailingProvider(inner)) },
  )
  t.after(() => bifrost.close())
  assert.ok(provider)
  return { bifrost, provider }
}

function turn(): Promise<void> {
  return new Promise(setImmediate)
}

async function payloads(bifrost: Bifrost): Promise<unknown[]> {
  const all: unknown[] = []
  const reader = bifrost.createReader('log', { follow: false, gaps: 'throw' })
  for await (const { payload } of reader) all.push(payload)
  return all
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, i) => from + i)
}

describe('an appender', () => {
  test('accepts at once, commits in order, and tells the last LSN', async (t) => {
    const bifrost = await open(t)
    await bifrost.append('log', 0)
    const appender = bifrost.createAppender('log')
    assert.equal(appender.lastCommitted, 0)
    for (const n of range(1, 100)) await appender.enqueue(n)
    assert.equal(await appender.committed(), 101)
    assert.equal(appender.lastCommitted, 101)
    await appender.enqueueMany([101, 102, 103])
    assert.equal(await appender.drain(), 104)
    assert.deepEqual(await payloads(bifrost), range(0, 103))
  })

  test('enqueue() resolves when accepted, committed() when durable', async (t) => {
    const { bifrost, gate } = await openGated(t)
    const appender = bifrost.createAppender('log')
    await appender.enqueue(1)
    const committed = appender.committed()
    let isDurable = false
    void committed.then(() => (isDurable = true))
    await turn()
    await turn()
    assert.equal(isDurable, false)
    assert.equal(appender.lastCommitted, 0)
    assert.equal((await bifrost.findTail('log')).lsn, 1)
    gate.open()
    assert.equal(await committed, 1)
  })

  test('committed() is about what was enqueued before it, with the LSN of the last of that', async (t) => {
    const bifrost = await open(t)
    const appender = bifrost.createAppender('log', { maxBatchCount: 3 })
    const commits: Promise<number>[] = []
    for (const n of range(1, 10)) {
      void appender.enqueue(n)
      commits.push(appender.committed())
    }
    assert.deepEqual(await Promise.all(commits), range(1, 10))
    assert.equal(await bifrost.createAppender('log').committed(), 0)
  })

  test('drain() waits for what is enqueued meanwhile too', async (t) => {
    const bifrost = await open(t)
    const appender = bifrost.createAppender('log', { maxBatchCount: 1 })
    await appender.enqueue(1)
    const drained = appender.drain()
    await appender.enqueue(2)
    void appender.committed().then(() => appender.enqueue(3))
    assert.ok((await drained) >= 2)
    await appender.enqueue(4)
    assert.equal(await appender.drain(), 4)
  })

  test('batches what is ready, without a timer, with one batch in flight', async (t) => {
    const bifrost = await open(t)
    const appender = bifrost.createAppender('log', { maxBatchCount: 100 })
    for (const n of range(1, 50)) void appender.enqueue(n)
    await appender.committed()
    const counts = (): unknown => {
      const { count, max } = bifrost.metrics().bifrost_localloglet_write_batch_count
      return [count, max]
    }
    assert.deepEqual(counts(), [1, 50])
    await appender.enqueueMany(range(1, 250))
    await appender.committed()
    assert.deepEqual(counts(), [4, 100])
  })

  test('has one batch in flight', async (t) => {
    const { bifrost, gate } = await openGated(t)
    const appender = bifrost.createAppender('log')
    await appender.enqueue(1)
    await turn()
    for (const n of range(2, 20)) await appender.enqueue(n)
    await turn()
    gate.step()
    assert.equal((await bifrost.findTail('log')).lsn, 2)
    gate.open()
    assert.equal(await appender.committed(), 20)
    assert.equal(bifrost.metrics().bifrost_localloglet_write_batch_count.count, 2)
  })

  test('captures payloads and keys during the call', async (t) => {
    const bifrost = await open(t)
    const appender = bifrost.createAppender('log')
    const payload = { n: 1 }
    const keys = ['a']
    const many = [{ n: 2 }, { n: 3 }]
    void appender.enqueue(payload, { keys })
    void appender.enqueueMany(many, { keys })
    payload.n = 9
    keys[0] = 'z'
    many.length = 0
    await appender.committed()
    assert.deepEqual(await payloads(bifrost), [{ n: 1 }, { n: 2 }, { n: 3 }])
    const record = await bifrost.readNextSingle('log', 2)
    assert.deepEqual(record.kind === 'data' && record.keys, ['a'])
  })

  test('waits at memoryLimitBytes, in call order, and goes on as room comes', async (t) => {
    const { bifrost, gate } = await openGated(t)
    const appender = bifrost.createAppender('log', { memoryLimitBytes: 1000, maxBatchCount: 2 })
    const accepted: number[] = []
    const calls = range(1, 20).map(async (n) => {
      await appender.enqueue(new Uint8Array(300).fill(n))
      accepted.push(n)
    })
    const many = appender.enqueueMany(range(21, 25)).then(() => accepted.push(25))
    await turn()
    assert.deepEqual(accepted, [1, 2, 3].slice(0, accepted.length))
    assert.ok(accepted.length >= 2 && accepted.length <= 3, `${accepted.length} were accepted`)
    const committed = appender.committed()
    gate.open()
    await Promise.all([...calls, many])
    assert.deepEqual(accepted, [...range(1, 20), 25])
    assert.equal(await committed, 25)
  })

  test('accepts any record that is legal when it holds nothing', async (t) => {
    const bifrost = await open(t)
    const appender = bifrost.createAppender('log', { memoryLimitBytes: 1, maxBatchBytes: 1 })
    const payload = new Uint8Array(10_000)
    await Promise.all([appender.enqueue(payload), appender.enqueueMany([payload, payload])])
    assert.equal(await appender.committed(), 3)
  })

  test('forms no batch that the store refuses', async (t) => {
    const bifrost = await open(t, { maxRecordBytes: 1000, maxBatchBytes: 3000 })
    const appender = bifrost.createAppender('log')
    for (let i = 0; i < 50; i++) await appender.enqueue(new Uint8Array(950 - i))
    assert.equal(await appender.committed(), 50)
    thrown(() => bifrost.createAppender('log', { maxBatchBytes: 3001 }), 'INVALID_OPTION')
  })

  test('refuses what can not be encoded, and goes on', async (t) => {
    const bifrost = await open(t, { maxRecordBytes: 100 })
    const appender = bifrost.createAppender('log')
    await appender.enqueue(1)
    await rejection(appender.enqueue(undefined), 'ENCODE_FAILED')
    await rejection(appender.enqueue('x'.repeat(200)), 'RECORD_TOO_LARGE')
    await rejection(appender.enqueueMany([2, () => 3]), 'ENCODE_FAILED')
    await rejection(appender.enqueue(4, { keys: 'k' as never }), 'INVALID_OPTION')
    await rejection(appender.enqueue(4, { key: 'k' } as never), 'INVALID_OPTION')
    await rejection(appender.enqueueMany('ab' as never), 'INVALID_OPTION')
    await appender.enqueueMany([])
    await appender.enqueue(5)
    assert.equal(await appender.committed(), 2)
    assert.deepEqual(await payloads(bifrost), [1, 5])
  })

  test('after a failed batch writes nothing more, and every member rejects with that error', async (t) => {
    const { bifrost, provider } = await openFailing(t)
    const appender = bifrost.createAppender('log', { maxBatchCount: 2, memoryLimitBytes: 300 })
    await appender.enqueueMany([1, 2])
    await appender.committed()
    const failure = logError('WRITE_FAILED', 'no space')
    provider.appendErrors.push(failure)
    const waiting = appender.enqueueMany(range(3, 40))
    const committed = appender.committed()
    const drained = appender.drain()
    for (const call of await Promise.all(
      [waiting, committed, drained].map((pending) => rejection(pending, 'WRITE_FAILED')),
    )) {
      assert.equal(call, failure)
    }
    const later = [
      appender.enqueue(41),
      appender.enqueueMany([42]),
      appender.committed(),
      appender.drain(),
      appender[Symbol.asyncDispose](),
    ]
    await Promise.all(later.map((pending) => rejection(pending, 'WRITE_FAILED')))
    assert.equal(appender.lastCommitted, 2)
    assert.deepEqual(await payloads(bifrost), [1, 2])
    assert.equal(await bifrost.append('log', 'others go on'), 3)
  })

  test('stops at a sealed log', async (t) => {
    const bifrost = await open(t)
    const appender = bifrost.createAppender('log')
    await appender.enqueue(1)
    await appender.committed()
    await bifrost.seal('log', 'moved')
    await appender.enqueue(2)
    const { tail, reason } = await rejection(appender.committed(), 'SEALED')
    assert.deepEqual({ tail, reason }, { tail: 2, reason: 'moved' })
    await rejection(appender.enqueue(3), 'SEALED')
  })

  test('a failure that nobody asks about is nobody’s unhandled rejection', async (t) => {
    const { bifrost, provider } = await openFailing(t)
    provider.appendErrors.push(logError('WRITE_FAILED', 'no space'))
    await bifrost.createAppender('log').enqueue(1)
    for (let i = 0; i < 5; i++) await turn()
    await bifrost.close()
  })

  test('dispose takes no more and waits until all is durable', async (t) => {
    const bifrost = await open(t)
    const appender = bifrost.createAppender('log', { maxBatchCount: 1 })
    void appender.enqueueMany(range(1, 5))
    const disposing = appender[Symbol.asyncDispose]()
    await rejection(appender.enqueue(6), 'CLOSED')
    await disposing
    assert.equal(appender.lastCommitted, 5)
    assert.equal(await appender.committed(), 5)
  })

  test('is held by nothing once all is durable', async (t) => {
    const bifrost = await open(t)
    const use = async (): Promise<WeakRef<object>> => {
      const appender = bifrost.createAppender('log')
      await appender.enqueue(1)
      await appender.committed()
      return new WeakRef(appender)
    }
    const ref = await use()
    await turn()
    collectGarbage()
    assert.equal(ref.deref(), undefined)
  })

  test('refuses limits out of range', async (t) => {
    const bifrost = await open(t)
    for (const options of [
      { maxBatchCount: 0 },
      { maxBatchCount: 1.5 },
      { maxBatchBytes: 0 },
      { memoryLimitBytes: 0 },
      { memoryLimitBytes: 2 ** 40 },
      { batch: 1 },
    ]) {
      thrown(() => bifrost.createAppender('log', options as object), 'INVALID_OPTION')
    }
  })
})

describe('writable()', () => {
  test('is an object-mode stream whose finish means durable', async (t) => {
    const bifrost = await open(t)
    const appender = bifrost.createAppender('log')
    await pipeline(Readable.from(range(1, 1000)), appender.writable())
    assert.equal(appender.lastCommitted, 1000)
    assert.equal((await bifrost.findTail('log')).lsn, 1001)
    await pipeline(Readable.from(['a', { b: 1 }, new Uint8Array([1])]), appender.writable())
    assert.deepStrictEqual((await payloads(bifrost)).slice(1000), [
      'a',
      { b: 1 },
      new Uint8Array([1]),
    ])
  })

  test('does not finish before all is durable', async (t) => {
    const { bifrost, gate } = await openGated(t)
    const stream = bifrost.createAppender('log').writable()
    stream.write(1)
    stream.end(2)
    let isFinished = false
    stream.on('finish', () => (isFinished = true))
    for (let i = 0; i < 5; i++) await turn()
    assert.equal(isFinished, false)
    gate.open()
    await once(stream, 'finish')
    assert.equal((await bifrost.findTail('log')).lsn, 3)
  })

  test('captures what is written while there is room', async (t) => {
    const bifrost = await open(t)
    const stream = bifrost.createAppender('log').writable()
    const payload = { n: 1 }
    stream.write(payload)
    payload.n = 2
    stream.end(payload)
    payload.n = 3
    await once(stream, 'finish')
    assert.deepEqual(await payloads(bifrost), [{ n: 1 }, { n: 2 }])
  })

  test('is held back by the memory limit', async (t) => {
    const { bifrost, gate } = await openGated(t)
    const appender = bifrost.createAppender('log', { memoryLimitBytes: 2000 })
    let produced = 0
    const source = Readable.from(
      (function* () {
        for (; produced < 500; produced++) yield new Uint8Array(500)
      })(),
    )
    const piping = pipeline(source, appender.writable())
    for (let i = 0; i < 20; i++) await turn()
    assert.ok(produced < 100, `${produced} were produced`)
    gate.open()
    await piping
    assert.equal(appender.lastCommitted, 500)
  })

  test('fails with the error of the batch that failed', async (t) => {
    const { bifrost, provider } = await openFailing(t)
    provider.appendErrors.push(logError('WRITE_FAILED', 'no space'))
    const stream = bifrost.createAppender('log').writable()
    const piping = pipeline(Readable.from(range(1, 100)), stream)
    await rejection(piping, 'WRITE_FAILED')
    await rejection(
      pipeline(Readable.from([() => 1]), bifrost.createAppender('log').writable()),
      'ENCODE_FAILED',
    )
  })

  test('leaves its appender open', async (t) => {
    const bifrost = await open(t)
    const appender = bifrost.createAppender('log')
    await pipeline(Readable.from([1]), appender.writable())
    await appender.enqueue(2)
    assert.equal(await appender.committed(), 2)
  })
})
