/** Readers: one cursor, where it starts and ends, gaps, filters, and the calls that share it. */
import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { describe, test, type TestContext } from 'node:test'
import type { Bifrost } from '../../loglets/bifrost.ts'
import type { LogRecord } from '../../loglets/log-record.ts'
import type { LogReader } from '../../loglets/read-stream.ts'
import type { ReaderOptions } from '../../loglets/reader-options.ts'
import { rejection } from '../support/expect-error.ts'
import { openMemoryStore, type TestOptions } from './memory-store.ts'
import { FailingProvider } from './wrapped-provider.ts'

async function open(t: TestContext, count = 0, options: TestOptions = {}): Promise<Bifrost> {
  const bifrost = await openMemoryStore(options, { startsInOpen: true })
  t.after(() => bifrost.close())
  if (count > 0) await bifrost.appendBatch('log', numbers(1, count))
  return bifrost
}

function numbers(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, i) => from + i)
}

/** LSNs of data, and gaps as text. */
function brief(record: LogRecord | undefined): unknown {
  if (record === undefined) return undefined
  return record.kind === 'data' ? record.lsn : `${record.kind} ${record.lsn}-${record.until}`
}

async function read(bifrost: Bifrost, options: ReaderOptions = {}): Promise<unknown[]> {
  const seen: unknown[] = []
  for await (const record of bifrost.createReader('log', { follow: false, ...options })) {
    seen.push(brief(record))
  }
  return seen
}

function readerOf(bifrost: Bifrost, options: ReaderOptions = {}): LogReader<LogRecord> {
  return bifrost.createReader('log', options)
}

async function state(promise: Promise<unknown>): Promise<'pending' | 'settled'> {
  const settled = promise.then(
    () => 'settled' as const,
    () => 'settled' as const,
  )
  const later = new Promise<'pending'>((resolve) => setTimeout(resolve, 5, 'pending'))
  return Promise.race([settled, later])
}

describe('a reader', () => {
  test('gives records with their own enumerable properties', async (t) => {
    const bifrost = await open(t)
    const before = Date.now()
    await bifrost.append('log', { id: 1 }, { keys: ['k'] })
    const record = await readerOf(bifrost).readNext()
    assert.ok(record?.kind === 'data')
    const { createdAt, createdAtMs, ...rest } = record
    assert.deepStrictEqual(rest, { kind: 'data', lsn: 1, payload: { id: 1 }, keys: ['k'] })
    assert.ok(createdAtMs >= before && createdAtMs <= Date.now())
    assert.equal(createdAt, BigInt(createdAtMs) * 1_000_000n)
  })

  test('starts where it is told to', async (t) => {
    const bifrost = await open(t, 10)
    assert.deepEqual(await read(bifrost), numbers(1, 10))
    assert.deepEqual(await read(bifrost, { from: 4 }), numbers(4, 10))
    assert.deepEqual(await read(bifrost, { after: 4 }), numbers(5, 10))
    assert.deepEqual(await read(bifrost, { after: 0 }), numbers(1, 10))
    assert.deepEqual(await read(bifrost, { last: 3 }), numbers(8, 10))
    assert.deepEqual(await read(bifrost, { last: 0 }), [])
    assert.deepEqual(await read(bifrost, { last: 99 }), numbers(1, 10))
    assert.deepEqual(await read(bifrost, { from: 11 }), [])
    assert.deepEqual(await read(bifrost, { from: 99 }), [])
  })

  test('with `last` counts back from the tail as it was when the reader was made', async (t) => {
    const bifrost = await open(t, 10)
    const reader = readerOf(bifrost, { last: 2 })
    assert.equal(reader.readPointer, 9)
    await bifrost.appendBatch('log', numbers(11, 20))
    assert.equal(brief(await reader.readNext()), 9)
    await reader.return()
  })

  test('ends past `to`, inclusive', async (t) => {
    const bifrost = await open(t, 10)
    assert.deepEqual(await read(bifrost, { from: 4, to: 6, follow: true }), [4, 5, 6])
    assert.deepEqual(await read(bifrost, { from: 7, to: 6, follow: true }), [])
    assert.deepEqual(await read(bifrost, { to: 0, follow: true }), [])
    assert.deepEqual(await read(bifrost, { from: 9, to: 99 }), [9, 10])
    const reader = readerOf(bifrost, { from: 10, to: 11 })
    assert.equal(brief(await reader.readNext()), 10)
    assert.equal(reader.ended, false)
    const last = reader.readNext()
    await bifrost.append('log', 11)
    assert.equal(brief(await last), 11)
    assert.equal(reader.ended, true)
    assert.equal(await reader.readNext(), undefined)
    assert.deepEqual(await reader.next(), { value: undefined, done: true })
  })

  test('follows the tail, in order, until the log is sealed', async (t) => {
    const bifrost = await open(t, 3)
    const seen: unknown[] = []
    const reading = (async () => {
      for await (const record of readerOf(bifrost)) seen.push(brief(record))
    })()
    for (const n of numbers(4, 50)) await bifrost.append('log', n)
    await bifrost.appendBatch('log', numbers(51, 60))
    await bifrost.seal('log')
    await reading
    assert.deepEqual(seen, numbers(1, 60))
  })

  test('ends at the tail with follow: false', async (t) => {
    const bifrost = await open(t, 2)
    const reader = readerOf(bifrost, { follow: false })
    assert.deepEqual([brief(await reader.readNext()), brief(await reader.readNext())], [1, 2])
    assert.equal(await reader.readNext(), undefined)
    assert.equal(reader.ended, true)
    await bifrost.append('log', 3)
    assert.equal(await reader.readNext(), undefined)
    assert.equal(reader.readPointer, 3)
  })

  test('past the tail waits if the log is open', async (t) => {
    const bifrost = await open(t, 2)
    const reader = readerOf(bifrost, { from: 5 })
    const parked = reader.readNext()
    await bifrost.appendBatch('log', [3, 4])
    assert.equal(await state(parked), 'pending')
    await bifrost.append('log', 5)
    assert.equal(brief(await parked), 5)
    await reader.return()
  })

  test('at a sealed tail ends at once, and past it is INVALID_LSN', async (t) => {
    const bifrost = await open(t, 2)
    const parked = readerOf(bifrost, { from: 5 }).readNext()
    const atTail = readerOf(bifrost, { from: 3 }).readNext()
    await bifrost.seal('log')
    await rejection(parked, 'INVALID_LSN')
    assert.equal(await atTail, undefined)
    assert.deepEqual(await read(bifrost, { from: 3, follow: true }), [])
    const past = readerOf(bifrost, { from: 4 })
    await rejection(past.readNext(), 'INVALID_LSN')
    await rejection(past.next(), 'INVALID_LSN')
    assert.equal(past.ended, true)
  })

  test('below 1 is INVALID_LSN, told by the first read', async (t) => {
    const bifrost = await open(t, 2)
    for (const options of [{ from: 0 }, { from: -3 }, { after: -1 }, { from: 2 ** 53 }]) {
      const reader = readerOf(bifrost, options)
      await rejection(reader.readNext(), 'INVALID_LSN')
      await rejection(reader.readNextOpt(), 'INVALID_LSN')
      await rejection(reader.chunks().next(), 'INVALID_LSN')
    }
  })

  test('gives records with any of the wanted keys and those without keys', async (t) => {
    const bifrost = await open(t)
    const keys = [['a'], ['b'], [], ['a', 'b'], ['c']]
    await bifrost.appendBatch('log', [1, 2, 3, 4, 5], { keys: (_n, i) => keys[i] ?? [] })
    assert.deepEqual(await read(bifrost, { keys: ['a'] }), [1, 3, 4])
    assert.deepEqual(await read(bifrost, { keys: ['b', 'c'] }), [2, 3, 4, 5])
    assert.deepEqual(await read(bifrost, { keys: ['none'] }), [3])
    assert.deepEqual(await read(bifrost, { keys: [] }), [3])
    const reader = readerOf(bifrost, { keys: ['late'], from: 4 })
    const parked = reader.readNext()
    await bifrost.append('log', 6, { keys: ['a'] })
    await bifrost.append('log', 7, { keys: ['late'] })
    assert.equal(brief(await parked), 7)
    assert.equal(reader.readPointer, 8)
    await reader.return()
  })

  test('readPointer is where to go on after what was returned, not after what was read', async (t) => {
    const bifrost = await open(t, 5)
    const reader = readerOf(bifrost, { follow: false })
    assert.equal(reader.readPointer, 1)
    await reader.readNext()
    assert.equal(reader.readPointer, 2)
    await reader.readNext()
    const rest = readerOf(bifrost, { from: reader.readPointer, follow: false })
    assert.equal(brief(await rest.readNext()), 3)
    const iterator = reader.chunks()
    const { value } = await iterator.next()
    assert.deepEqual(value?.map(brief), [3, 4, 5])
    assert.equal(reader.readPointer, 6)
    await reader.return()
    assert.equal(reader.readPointer, 6)
  })
})

describe('the calls of one reader', () => {
  test('share one cursor, and overlapping ones are served in call order', async (t) => {
    const bifrost = await open(t, 4)
    const reader = readerOf(bifrost)
    const calls = [
      reader.readNext(),
      reader.next().then(({ value }) => value),
      reader.readNext(),
      reader.readNext(),
      reader.readNext(),
      reader.readNext(),
    ]
    const order: number[] = []
    for (const [i, call] of calls.entries()) void call.then(() => order.push(i))
    await bifrost.append('log', 5)
    await bifrost.append('log', 6)
    const records = await Promise.all(calls)
    assert.deepEqual(records.map(brief), numbers(1, 6))
    assert.deepEqual(order, numbers(0, 5))
    await reader.return()
  })

  test('a call made by somebody who was just served comes after those who wait', async (t) => {
    const bifrost = await open(t)
    const reader = readerOf(bifrost)
    const [first, second] = [reader.readNext(), reader.readNext()]
    const third = first.then(() => reader.readNext())
    await new Promise(setImmediate)
    await bifrost.appendBatch('log', [1, 2, 3])
    assert.deepEqual((await Promise.all([first, second, third])).map(brief), [1, 2, 3])
    await reader.return()
  })

  test('a record that comes between the last read and the pause is not slept through', async (t) => {
    let provider: FailingProvider | undefined
    const bifrost = await openMemoryStore(
      {},
      { startsInOpen: true, wrap: (inner) => (provider = new FailingProvider(inner)) },
    )
    t.after(() => bifrost.close())
    assert.ok(provider)
    let isFirst = true
    provider.afterRead = async () => {
      if (isFirst) await bifrost.append('log', 1)
      isFirst = false
    }
    const reader = readerOf(bifrost)
    assert.equal(brief(await reader.readNext()), 1)
    await reader.return()
  })

  test('readNextOpt() gives what is there and waits for nothing', async (t) => {
    const bifrost = await open(t, 2)
    const reader = readerOf(bifrost)
    assert.equal(brief(await reader.readNextOpt()), 1)
    assert.equal(brief(await reader.readNextOpt()), 2)
    assert.equal(await reader.readNextOpt(), undefined)
    assert.equal(reader.ended, false)
    const parked = reader.readNext()
    assert.equal(await reader.readNextOpt(), undefined)
    await bifrost.appendBatch('log', [3, 4])
    assert.equal(brief(await parked), 3)
    assert.equal(brief(await reader.readNextOpt()), 4)
    const [first, opt] = [reader.readNext(), reader.readNextOpt()]
    assert.equal(await opt, undefined)
    await bifrost.append('log', 5)
    assert.equal(brief(await first), 5)
    await bifrost.seal('log')
    assert.equal(await reader.readNextOpt(), undefined)
    assert.equal(reader.ended, true)
  })

  test('chunks() gives arrays, never empty, of what one read gave', async (t) => {
    const bifrost = await open(t, 100, { readAheadBytes: 200 })
    await bifrost.trim('log', 10)
    const seen: unknown[] = []
    let chunks = 0
    for await (const chunk of readerOf(bifrost, { follow: false }).chunks()) {
      assert.ok(chunk.length > 0)
      chunks++
      seen.push(...chunk.map(brief))
    }
    assert.deepEqual(seen, ['trim-gap 1-10', ...numbers(11, 100)])
    assert.ok(chunks > 3)
  })

  test('chunks() never gives an empty array, however many records are left out', async (t) => {
    const bifrost = await open(t, 0, { readAheadBytes: 100 })
    const keys = (n: number): string[] => [n === 90 ? 'rare' : 'common']
    await bifrost.appendBatch('log', numbers(1, 100), { keys })
    const chunks: unknown[][] = []
    for await (const chunk of readerOf(bifrost, { follow: false, keys: ['rare'] }).chunks()) {
      chunks.push(chunk.map(brief))
    }
    assert.deepEqual(chunks, [[90]])
  })

  test('return() settles parked calls at once', async (t) => {
    const bifrost = await open(t)
    const reader = readerOf(bifrost)
    const parked = [reader.readNext(), reader.next(), reader.chunks().next()]
    await new Promise(setImmediate)
    const done = { value: undefined, done: true }
    assert.deepEqual(await reader.return(), done)
    assert.deepEqual(await Promise.all(parked), [undefined, done, done])
    assert.equal(reader.ended, true)
    assert.deepEqual(await reader.next(), done)
    assert.equal(await reader.readNextOpt(), undefined)
    assert.deepEqual(await reader.return(), done)
  })

  test('return() settles a call whose read is under way', async (t) => {
    let provider: FailingProvider | undefined
    const bifrost = await openMemoryStore(
      {},
      { startsInOpen: true, wrap: (inner) => (provider = new FailingProvider(inner)) },
    )
    t.after(() => bifrost.close())
    await bifrost.append('log', 1)
    let letRead: (() => void) | undefined
    assert.ok(provider)
    provider.beforeRead = () => new Promise((resolve) => (letRead = resolve))
    const { signal } = new AbortController()
    const reader = readerOf(bifrost, { signal })
    const call = reader.readNext()
    await new Promise(setImmediate)
    await reader.return()
    assert.equal(await call, undefined)
    assert.equal(getEventListeners(signal, 'abort').length, 0)
    letRead?.()
    await new Promise(setImmediate)
    assert.equal(reader.readPointer, 1)
    assert.equal(await reader.readNext(), undefined)
  })

  test('break, an exception and dispose end the reader', async (t) => {
    const bifrost = await open(t, 5)
    const broken = readerOf(bifrost)
    for await (const record of broken) if (record.lsn === 2) break
    const thrown = readerOf(bifrost)
    const loop = async (): Promise<void> => {
      for await (const record of thrown) throw new Error(`at ${record.lsn}`)
    }
    await assert.rejects(loop, /at 1/)
    const chunked = readerOf(bifrost)
    for await (const chunk of chunked.chunks()) if (chunk.length > 0) break
    const disposed = readerOf(bifrost)
    await disposed[Symbol.asyncDispose]()
    for (const reader of [broken, thrown, chunked, disposed]) assert.equal(reader.ended, true)
    assert.equal(broken.readPointer, 3)
  })
})

describe('gaps', () => {
  test('below the trim point one gap comes, then data', async (t) => {
    const bifrost = await open(t, 10)
    await bifrost.trim('log', 3)
    await bifrost.trim('log', 6)
    assert.deepEqual(await read(bifrost), ['trim-gap 1-6', ...numbers(7, 10)])
    assert.deepEqual(await read(bifrost, { from: 4 }), ['trim-gap 4-6', ...numbers(7, 10)])
    assert.deepEqual(await read(bifrost, { from: 7 }), numbers(7, 10))
    assert.deepEqual(await read(bifrost, { from: 2, to: 4 }), ['trim-gap 2-4'])
    assert.deepEqual(await read(bifrost, { last: 6 }), ['trim-gap 5-6', ...numbers(7, 10)])
    await bifrost.trim('log', 10)
    assert.deepEqual(await read(bifrost), ['trim-gap 1-10'])
  })

  test('a reader goes on after a gap, and its pointer with it', async (t) => {
    const bifrost = await open(t, 4)
    await bifrost.trim('log', 2)
    const reader = readerOf(bifrost)
    assert.deepEqual(await reader.readNext(), { kind: 'trim-gap', lsn: 1, until: 2 })
    assert.equal(reader.readPointer, 3)
    assert.equal(brief(await reader.readNext()), 3)
    await reader.return()
  })

  test('a trim that a reader at the trimmed prefix slept through is one gap, then data', async (t) => {
    const bifrost = await open(t, 10, { readAheadBytes: 1 })
    const reader = readerOf(bifrost)
    assert.equal(brief(await reader.readNext()), 1)
    await bifrost.trim('log', 5)
    assert.equal(brief(await reader.readNext()), 'trim-gap 2-5')
    assert.equal(brief(await reader.readNext()), 6)
    await reader.return()
  })

  test('a reader that is parked past the tail gets a gap for what was trimmed meanwhile', async (t) => {
    const bifrost = await open(t, 2)
    const reader = readerOf(bifrost, { from: 3 })
    const parked = reader.readNext()
    await Promise.all([bifrost.appendBatch('log', [3, 4, 5]), bifrost.trim('log', 4)])
    assert.ok(['trim-gap 3-4', 3].includes(brief(await parked) as never))
    const rest: unknown[] = []
    while (rest.at(-1) !== 5) rest.push(brief(await reader.readNext()))
    assert.equal(reader.readPointer, 6)
    await reader.return()
  })

  test('a trim while a read is under way is a gap, never a record missing', async (t) => {
    let provider: FailingProvider | undefined
    const bifrost = await openMemoryStore(
      { readAheadBytes: 1 },
      { startsInOpen: true, wrap: (inner) => (provider = new FailingProvider(inner)) },
    )
    t.after(() => bifrost.close())
    await bifrost.appendBatch('log', numbers(1, 10))
    assert.ok(provider)
    let isFirst = true
    provider.beforeRead = async () => {
      if (isFirst) await bifrost.trim('log', 4)
      isFirst = false
    }
    const seen = await read(bifrost)
    assert.deepEqual(seen, ['trim-gap 1-4', ...numbers(5, 10)])
  })

  test('records that are lost are a gap, or DATA_LOSS', async (t) => {
    let provider: FailingProvider | undefined
    const bifrost = await openMemoryStore(
      {},
      { startsInOpen: true, wrap: (inner) => (provider = new FailingProvider(inner)) },
    )
    t.after(() => bifrost.close())
    await bifrost.appendBatch('log', numbers(1, 9))
    const loglet = provider?.chain('log')?.[0]?.loglet
    assert.ok(loglet)
    const whole = loglet.read.bind(loglet)
    t.mock.method(loglet, 'read', (request: Parameters<typeof whole>[0]) => {
      if (request.from > 6) return whole(request)
      if (request.from >= 4) return Promise.resolve({ kind: 'data-loss-gap', until: 6 })
      return whole({ ...request, to: Math.min(request.to, 3) })
    })
    assert.deepEqual(await read(bifrost), [1, 2, 3, 'data-loss-gap 4-6', 7, 8, 9])
    assert.deepEqual(await read(bifrost, { from: 5 }), ['data-loss-gap 5-6', 7, 8, 9])
    assert.deepEqual(await read(bifrost, { from: 5, to: 5 }), ['data-loss-gap 5-5'])
    const reader = bifrost.createReader('log', { from: 3, gaps: 'throw' })
    assert.equal((await reader.readNext())?.lsn, 3)
    const { from, to } = await rejection(reader.readNext(), 'DATA_LOSS')
    assert.deepEqual({ from, to }, { from: 4, to: 6 })
    assert.equal(reader.readPointer, 4)
  })

  test('with gaps: throw a gap is TRIMMED, every time, and data is read on from it', async (t) => {
    const bifrost = await open(t, 5)
    await bifrost.trim('log', 2)
    const reader = bifrost.createReader('log', { gaps: 'throw' })
    for (const call of [() => reader.readNext(), () => reader.next(), () => reader.readNextOpt()]) {
      const { trimPoint } = await rejection(call(), 'TRIMMED')
      assert.equal(trimPoint, 2)
    }
    assert.equal(reader.readPointer, 1)
    assert.deepEqual(await read(bifrost, { from: 3, gaps: 'throw' }), [3, 4, 5])
  })
})

describe('readNextSingle() and readNextSingleOpt()', () => {
  test('give the record or gap after an LSN', async (t) => {
    const bifrost = await open(t, 5)
    assert.equal(brief(await bifrost.readNextSingle('log', 0)), 1)
    assert.equal(brief(await bifrost.readNextSingle('log', 4)), 5)
    await bifrost.trim('log', 2)
    assert.equal(brief(await bifrost.readNextSingle('log', 0)), 'trim-gap 1-2')
    assert.equal(brief(await bifrost.readNextSingleOpt('log', 1)), 'trim-gap 2-2')
  })

  test('readNextSingle() waits for the next record, readNextSingleOpt() does not', async (t) => {
    const bifrost = await open(t, 1)
    const waiting = bifrost.readNextSingle('log', 1)
    assert.equal(await bifrost.readNextSingleOpt('log', 1), undefined)
    await bifrost.append('log', 2)
    assert.equal(brief(await waiting), 2)
    assert.equal(brief(await bifrost.readNextSingleOpt('log', 1)), 2)
  })

  test('are SEALED at a sealed end, and INVALID_LSN past it', async (t) => {
    const bifrost = await open(t, 2)
    const waiting = bifrost.readNextSingle('log', 2)
    await bifrost.seal('log', 'done')
    for (const call of [
      waiting,
      bifrost.readNextSingle('log', 2),
      bifrost.readNextSingleOpt('log', 2),
    ]) {
      const { tail, reason } = await rejection(call, 'SEALED')
      assert.deepEqual({ tail, reason }, { tail: 3, reason: 'done' })
    }
    assert.equal(brief(await bifrost.readNextSingle('log', 1)), 2)
    await rejection(bifrost.readNextSingle('log', 3), 'INVALID_LSN')
    await rejection(bifrost.readNextSingleOpt('log', 3), 'INVALID_LSN')
  })

  test('refuse what is no LSN, and unknown options', async (t) => {
    const bifrost = await open(t, 1)
    for (const after of [-1, 1.5, NaN, '0', undefined, 2 ** 53]) {
      await rejection(bifrost.readNextSingle('log', after as number), 'INVALID_LSN')
      await rejection(bifrost.readNextSingleOpt('log', after as number), 'INVALID_LSN')
    }
    await rejection(bifrost.readNextSingle('log', 0, { sig: 1 } as object), 'INVALID_OPTION')
  })
})
