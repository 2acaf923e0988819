/** What ends readers, what they hold while they live, and what is left when they are gone. */
import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { describe, test, type TestContext } from 'node:test'
import { logError } from '../../codec/errors.ts'
import type { Bifrost } from '../../loglets/bifrost.ts'
import type { LogReader } from '../../loglets/read-stream.ts'
import type { DataRecord } from '../../loglets/log-record.ts'
import { rejection } from '../support/expect-error.ts'
import { openMemoryStore, type TestOptions } from './memory-store.ts'
import { FailingProvider } from './wrapped-provider.ts'

interface Opened {
  readonly bifrost: Bifrost
  readonly provider: FailingProvider
}

async function open(t: TestContext, count: number, options: TestOptions = {}): Promise<Opened> {
  let provider: FailingProvider | undefined
  const bifrost = await openMemoryStore(options, {
    startsInOpen: true,
    wrap: (inner) => (provider = new FailingProvider(inner)),
  })
  t.after(() => bifrost.close())
  for (let n = 1; n <= count; n++) void bifrost.append('log', n)
  await bifrost.findTail('log')
  if (count > 0) await bifrost.append('log', count + 1)
  assert.ok(provider)
  return { bifrost, provider }
}

function watchWarnings(t: TestContext): Error[] {
  const warnings: Error[] = []
  const listener = (warning: Error): number => warnings.push(warning)
  process.on('warning', listener)
  t.after(() => process.off('warning', listener))
  return warnings
}

function turn(): Promise<void> {
  return new Promise(setImmediate)
}

describe('an aborted reader', () => {
  test('rejects all that wait, and every later call, with ABORTED', async (t) => {
    const { bifrost } = await open(t, 0)
    const controller = new AbortController()
    const reason = new Error('enough')
    const reader = bifrost.createReader('log', { signal: controller.signal })
    const parked = [reader.readNext(), reader.next(), reader.chunks().next()]
    await turn()
    controller.abort(reason)
    const later = [reader.readNext(), reader.readNextOpt(), reader.next()]
    const calls = [...parked, ...later]
    for (const error of await Promise.all(calls.map((call) => rejection(call, 'ABORTED')))) {
      assert.equal(error.cause, reason)
      assert.equal(error.name, 'AbortError')
    }
    assert.equal(reader.ended, true)
    assert.deepEqual(await reader.return(), { value: undefined, done: true })
  })

  test('gives out nothing of what it has read ahead', async (t) => {
    const { bifrost } = await open(t, 10)
    const controller = new AbortController()
    const reader = bifrost.createReader('log', { signal: controller.signal })
    await reader.readNext()
    controller.abort()
    await rejection(reader.readNext(), 'ABORTED')
    assert.equal(reader.readPointer, 2)
  })

  test('rejects for await', async (t) => {
    const { bifrost } = await open(t, 3)
    const controller = new AbortController()
    const loop = async (): Promise<void> => {
      for await (const { lsn } of bifrost.createReader('log', { signal: controller.signal })) {
        if (lsn === 2) controller.abort()
      }
    }
    await rejection(loop(), 'ABORTED')
  })

  test('rejects at once although a read is under way', async (t) => {
    const { bifrost, provider } = await open(t, 3)
    const controller = new AbortController()
    provider.beforeRead = () => new Promise(() => undefined)
    const reader = bifrost.createReader('log', { signal: controller.signal })
    const call = reader.readNext()
    await turn()
    controller.abort()
    await rejection(call, 'ABORTED')
    assert.equal(getEventListeners(controller.signal, 'abort').length, 0)
  })
})

describe('a thousand readers on one signal', () => {
  test('cause no warning, and leave no listener and no watch behind', async (t) => {
    const warnings = watchWarnings(t)
    const { bifrost, provider } = await open(t, 5)
    const { signal } = new AbortController()
    const parked: { reader: LogReader<unknown>; call: Promise<unknown> }[] = []
    for (let i = 0; i < 1000; i++) {
      const reader = bifrost.createReader('log', { signal, last: 0 })
      parked.push({ reader, call: reader.readNext() })
      const broken = bifrost.createReader('log', { signal })
      for await (const record of broken) if (record.lsn > 0) break
    }
    await turn()
    assert.equal(provider.watchers, 1000)
    assert.ok(getEventListeners(signal, 'abort').length <= 1)
    for (const { reader } of parked) await reader.return()
    await Promise.all(parked.map(({ call }) => call))
    await turn()
    assert.equal(provider.watchers, 0)
    assert.equal(getEventListeners(signal, 'abort').length, 0)
    assert.deepEqual(warnings, [])
  })

  test('all reject when it aborts', async (t) => {
    const { bifrost, provider } = await open(t, 0)
    const controller = new AbortController()
    const calls = Array.from({ length: 1000 }, () =>
      bifrost.createReader('log', { signal: controller.signal }).readNext(),
    )
    await turn()
    controller.abort()
    await Promise.all(calls.map((call) => rejection(call, 'ABORTED')))
    await turn()
    assert.equal(provider.watchers, 0)
  })
})

describe('a reader that nobody asks', () => {
  test('is held by nothing: no watch, no listener, no read', async (t) => {
    const { bifrost, provider } = await open(t, 5, { readAheadBytes: 1 })
    const { signal } = new AbortController()
    const readers = Array.from({ length: 100 }, () => bifrost.createReader('log', { signal }))
    for (const reader of readers) await reader.readNext()
    await turn()
    const { reads } = provider
    await bifrost.append('log', 'more')
    await turn()
    assert.equal(provider.reads, reads)
    assert.equal(provider.watchers, 0)
    assert.equal(getEventListeners(signal, 'abort').length, 0)
  })

  test('a loop left by break or by an exception leaves nothing behind', async (t) => {
    const { bifrost, provider } = await open(t, 5)
    const { signal } = new AbortController()
    for (let i = 0; i < 100; i++) {
      const leave = async (): Promise<void> => {
        for await (const { lsn } of bifrost.createReader('log', { signal, from: 4 })) {
          if (lsn === 5 && i % 2 === 0) return
          if (lsn === 5) throw new Error('out')
        }
      }
      await leave().catch(() => undefined)
    }
    assert.equal(provider.watchers, 0)
    assert.equal(getEventListeners(signal, 'abort').length, 0)
  })
})

describe('a slow reader behind a fast writer', () => {
  test('holds no more than readAheadBytes, and still gets everything', async (t) => {
    const readAheadBytes = 10_000
    const { bifrost, provider } = await open(t, 0, { readAheadBytes })
    const payload = new Uint8Array(990)
    const reader = bifrost.createReader('log')
    const first = reader.readNext()
    for (let i = 0; i < 20; i++) {
      await bifrost.appendBatch('log', Array<Uint8Array>(50).fill(payload))
    }
    await first
    const { reads } = provider
    await turn()
    assert.equal(provider.reads, reads, 'nothing is read ahead of a buffer that is not empty')
    let lsn = 1
    for await (const chunk of reader.chunks()) {
      assert.ok(chunk.length * 1000 <= readAheadBytes + 2000, `${chunk.length} records at once`)
      for (const record of chunk) assert.equal(record.lsn, ++lsn)
      if (lsn === 1000) break
    }
    assert.ok(provider.reads - reads >= 90)
  })

  test('gets a record that is larger than readAheadBytes', async (t) => {
    const { bifrost } = await open(t, 0, { readAheadBytes: 10 })
    await bifrost.appendBatch('log', [new Uint8Array(5000), 'small'])
    const reader = bifrost.createReader<Uint8Array>('log', { gaps: 'throw' })
    assert.equal((await reader.readNext())?.payload.length, 5000)
    assert.equal((await reader.readNext())?.lsn, 2)
    await reader.return()
  })
})

describe('a record that is handed out', () => {
  test('stands on its own: its bytes share no buffer, and changing it changes nothing', async (t) => {
    const { bifrost } = await open(t, 0)
    const pool = Buffer.alloc(1000, 7)
    await bifrost.appendBatch('log', [pool.subarray(10, 13), { nested: pool.subarray(20, 22) }])
    pool.fill(0)
    const read = async (): Promise<[Uint8Array, { nested: Uint8Array }]> => {
      const records: DataRecord[] = []
      for await (const record of bifrost.createReader('log', { follow: false, gaps: 'throw' })) {
        records.push(record)
      }
      const [first, second] = records.map(({ payload }) => payload)
      return [first as Uint8Array, second as { nested: Uint8Array }]
    }
    const [direct, { nested }] = await read()
    assert.deepStrictEqual(direct, new Uint8Array([7, 7, 7]))
    assert.deepStrictEqual(nested, new Uint8Array([7, 7]))
    assert.equal(direct.buffer.byteLength + nested.buffer.byteLength, 5)
    direct.fill(1)
    nested.fill(1)
    assert.deepStrictEqual((await read())[0], new Uint8Array([7, 7, 7]))
  })
})

describe('what ends a reader', () => {
  test('close() is CLOSED, for those that wait and those that have read ahead', async (t) => {
    const { bifrost } = await open(t, 5)
    const parked = bifrost.createReader('log', { last: 0 }).readNext()
    const ahead = bifrost.createReader('log')
    await ahead.readNext()
    const idle = bifrost.createReader('log')
    await turn()
    const closing = bifrost.close()
    const late = bifrost.createReader('log').readNext()
    await Promise.all([rejection(parked, 'CLOSED'), rejection(late, 'CLOSED'), closing])
    for (const reader of [ahead, idle]) {
      await rejection(reader.readNext(), 'CLOSED')
      await rejection(reader.next(), 'CLOSED')
      assert.equal(reader.ended, true)
    }
  })

  test('a parked reader gets what close() still commits', async (t) => {
    const { bifrost } = await open(t, 0)
    const parked = bifrost.createReader('log').readNext()
    await turn()
    const append = bifrost.append('log', 'last')
    const [record] = await Promise.allSettled([parked, bifrost.close()])
    assert.equal(await append, 1)
    const isTold = record.status === 'fulfilled' && record.value?.lsn === 1
    assert.ok(isTold || (record.status === 'rejected' && String(record.reason).includes('closed')))
  })

  test('deleteLog() is UNKNOWN_LOG, for those that wait and those that have read ahead', async (t) => {
    const { bifrost } = await open(t, 5)
    const parked = bifrost.createReader('log', { last: 0 }).readNext()
    const ahead = bifrost.createReader('log')
    await ahead.readNext()
    await turn()
    await bifrost.deleteLog('log')
    await rejection(parked, 'UNKNOWN_LOG')
    await rejection(ahead.readNext(), 'UNKNOWN_LOG')
    await bifrost.createLog('log')
    await rejection(ahead.readNext(), 'UNKNOWN_LOG')
  })

  test('deleteLog() is UNKNOWN_LOG, although the log is made again while it looks on', async (t) => {
    const { bifrost, provider } = await open(t, 1)
    await bifrost.seal('log')
    const reader = bifrost.createReader('log', { last: 0 })
    provider.afterRead = async () => {
      provider.afterRead = undefined
      await bifrost.deleteLog('log')
      await bifrost.createLog('log')
      await bifrost.appendBatch('log', ['other', 'other', 'other'])
    }
    await rejection(reader.readNext(), 'UNKNOWN_LOG')
  })

  test('a failed store is STORE_FAILED, at the tail only', async (t) => {
    const { bifrost, provider } = await open(t, 2, { readAheadBytes: 1 })
    const parked = bifrost.createReader('log', { last: 0 }).readNext()
    await turn()
    provider.fail(logError('STORE_FAILED', 'EIO'))
    await rejection(parked, 'STORE_FAILED')
    const seen: number[] = []
    const loop = async (): Promise<void> => {
      for await (const { lsn } of bifrost.createReader('log')) seen.push(lsn)
    }
    await rejection(loop(), 'STORE_FAILED')
    assert.deepEqual(seen, [1, 2, 3])
  })

  test('READ_FAILED does not: the next call reads again', async (t) => {
    const { bifrost, provider } = await open(t, 2)
    provider.readErrors.push(logError('READ_FAILED', 'EIO'))
    const reader = bifrost.createReader('log')
    const [first, second] = [reader.readNext(), reader.readNext()]
    await rejection(first, 'READ_FAILED')
    assert.equal((await second)?.lsn, 1)
    assert.equal(reader.ended, false)
    assert.equal(reader.readPointer, 2)
    await reader.return()
  })

  test('an unknown log ends it for good', async (t) => {
    const { bifrost } = await open(t, 0)
    const reader = bifrost.createReader('later')
    await rejection(reader.readNext(), 'UNKNOWN_LOG')
    assert.equal(reader.ended, true)
  })

  test('a reader of a log that is made before its first read reads it', async (t) => {
    const { bifrost } = await open(t, 0)
    const reader = bifrost.createReader('later')
    await bifrost.createLog('later')
    await bifrost.append('later', 1)
    assert.equal((await reader.readNext())?.lsn, 1)
    await reader.return()
  })
})

describe('damage', () => {
  test('is told where it is, after everything that comes before it', async (t) => {
    const { bifrost, provider } = await open(t, 4)
    const link = provider.chain('log')?.[0]
    assert.ok(link)
    const { loglet } = link
    const original = loglet.read.bind(loglet)
    t.mock.method(loglet, 'read', (request: Parameters<typeof original>[0]) =>
      original({
        ...request,
        visit: (offset, bytes, start, end) =>
          offset === 3
            ? request.visit(offset, new Uint8Array([0xc1]), 0, 1)
            : request.visit(offset, bytes, start, end),
      }),
    )
    const reader = bifrost.createReader('log')
    assert.equal((await reader.readNext())?.lsn, 1)
    assert.equal((await reader.readNext())?.lsn, 2)
    for (let i = 0; i < 2; i++) {
      const { logs } = await rejection(reader.readNext(), 'CORRUPT')
      assert.deepEqual(logs, [{ logId: 'log', from: 3, to: 3 }])
    }
    assert.equal(reader.readPointer, 3)
    await reader.return()
  })
})
