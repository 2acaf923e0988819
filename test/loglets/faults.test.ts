/** How logs lose data, case by case, asked of a store through its public door, over each provider. */
import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, mock, test, type TestContext } from 'node:test'
import type { Bifrost } from '../../loglets/bifrost.ts'
import { Bifrost as Door } from '../../loglets/bifrost.ts'
import type { LogRecord } from '../../loglets/log-record.ts'
import type { BifrostOptions } from '../../loglets/options.ts'
import { rejection } from '../support/expect-error.ts'

type Open = (t: TestContext, options?: BifrostOptions) => Promise<Bifrost>

const openMemory: Open = async (t, options) => {
  const bifrost = await Door.open({ logs: ['log'], ...options, provider: 'memory' })
  t.after(() => bifrost.close())
  return bifrost
}

const openLocal: Open = async (t, options) => {
  const dir = await mkdtemp(path.join(await realpath(tmpdir()), 'bifrost-faults-'))
  const bifrost = await Door.open({ logs: ['log'], ...options, dir })
  t.after(async () => {
    await bifrost.close()
    await rm(dir, { recursive: true, force: true })
  })
  return bifrost
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, i) => from + i)
}

async function payloads(bifrost: Bifrost, logId = 'log', from = 1): Promise<unknown[]> {
  const reader = bifrost.createReader(logId, { from, follow: false, gaps: 'throw' })
  const all: unknown[] = []
  for await (const chunk of reader.chunks()) all.push(...chunk.map(({ payload }) => payload))
  return all
}

function turn(): Promise<void> {
  return new Promise(setImmediate)
}

for (const [name, open] of [
  ['memory', openMemory],
  ['local', openLocal],
] as const) {
  describe(`batches and tails (${name})`, () => {
    test('append_batch said "first" and returned the last; the tail moved by n+1', async (t) => {
      const bifrost = await open(t)
      const reader = bifrost.createReader('log')
      for (const n of range(0, 9)) {
        assert.equal(await bifrost.appendBatch('log', range(1, 4)), 4 * n + 1)
        assert.equal((await bifrost.findTail('log')).lsn, 4 * n + 5)
      }
      for (const lsn of range(1, 40)) assert.equal((await reader.readNext())?.lsn, lsn)
      assert.equal(await reader.readNextOpt(), undefined)
      await reader.return()
    })

    test('state updates of a group accumulated in a buffer not reset per command', async (t) => {
      const logs = range(1, 8).map((n) => `log ${n}`)
      const bifrost = await open(t, { logs })
      await Promise.all(logs.map((id) => bifrost.appendBatch(id, range(1, 10))))
      const trims = await Promise.all(logs.map((id, i) => bifrost.trim(id, i)))
      assert.deepEqual(trims, range(0, 7))
      await Promise.all(
        logs.map((id, i) =>
          i % 2 === 0 ? bifrost.seal(id, `reason ${i}`) : bifrost.append(id, 11),
        ),
      )
      for (const [i, id] of logs.entries()) {
        const { sealed, reason, lsn } = await bifrost.findTail(id)
        const isSealed = i % 2 === 0
        assert.deepEqual([sealed, reason], [isSealed, isSealed ? `reason ${i}` : undefined])
        assert.equal(lsn, isSealed ? 11 : 12)
        assert.equal(await bifrost.getTrimPoint(id), i)
      }
    })

    test('append_batch accepted during shutdown', async (t) => {
      const bifrost = await open(t)
      const before = bifrost.appendBatch('log', [1, 2])
      const closing = bifrost.close()
      await rejection(bifrost.appendBatch('log', [3, 4]), 'CLOSED')
      assert.equal(await before, 1)
      await closing
      await rejection(bifrost.appendBatch('log', [3, 4]), 'CLOSED')
    })

    test('an empty batch moved the tail', async (t) => {
      const bifrost = await open(t)
      await bifrost.append('log', 1)
      await rejection(bifrost.appendBatch('log', []), 'EMPTY_BATCH')
      await rejection(bifrost.appendMany([]), 'EMPTY_BATCH')
      assert.equal((await bifrost.findTail('log')).lsn, 2)
      assert.equal(await bifrost.append('log', 2), 2)
    })

    test('a trim raced a read: a missing record instead of a gap', async (t) => {
      const bifrost = await open(t, { readAheadBytes: 200 })
      await bifrost.appendBatch('log', range(1, 400))
      const read = async (): Promise<void> => {
        let next = 1
        for await (const record of bifrost.createReader('log', { to: 400 })) {
          assert.equal(record.lsn, next)
          next = (record.kind === 'data' ? record.lsn : record.until) + 1
        }
        assert.equal(next, 401)
      }
      const trim = async (): Promise<void> => {
        for (let upTo = 10; upTo < 400; upTo += 10) {
          await bifrost.trim('log', upTo)
          await turn()
        }
      }
      await Promise.all([read(), read(), trim()])
    })

    test('a parked reader missed a trim, and one was stuck at a trimmed prefix', async (t) => {
      const bifrost = await open(t)
      const parked = bifrost.createReader('log', { from: 3 })
      const call = parked.readNext()
      await bifrost.appendBatch('log', [1, 2])
      await bifrost.trim('log', 2)
      await bifrost.append('log', 3)
      assert.equal((await call)?.lsn, 3)
      const stuck = bifrost.createReader('log')
      assert.deepEqual(await stuck.readNext(), { kind: 'trim-gap', lsn: 1, until: 2 })
      assert.equal((await stuck.readNext())?.lsn, 3)
      await Promise.all([parked.return(), stuck.return()])
    })

    test('seal published before in-flight appends drained: an ack past the sealed tail', async (t) => {
      const bifrost = await open(t)
      const acked: number[] = []
      const appends: Promise<unknown>[] = []
      let seen = 0
      for (const n of range(1, 60)) {
        const append = bifrost.appendBatch('log', [n, n]).then(
          (first) => acked.push(first + 1),
          () => undefined,
        )
        appends.push(append)
        if (n === 40) appends.push(bifrost.seal('log').then(({ lsn }) => (seen = lsn)))
        if (n % 20 === 0) await turn()
      }
      await Promise.all(appends)
      assert.ok(seen > 0)
      assert.equal(Math.max(...acked), seen - 1)
      assert.equal((await bifrost.findTail('log')).lsn, seen)
      assert.equal((await payloads(bifrost)).length, seen - 1)
    })

    test('an oversized batch retried for ever', async (t) => {
      const bifrost = await open(t, { maxRecordBytes: 1000, maxBatchBytes: 4000 })
      const payload = new Uint8Array(900)
      const batch = bifrost.appendBatch('log', Array<Uint8Array>(5).fill(payload))
      const record = bifrost.append('log', new Uint8Array(1001))
      const small = bifrost.append('log', 'small')
      await Promise.all([
        rejection(batch, 'BATCH_TOO_LARGE'),
        rejection(record, 'RECORD_TOO_LARGE'),
      ])
      assert.equal(await small, 1)
    })

    test('a count-bounded queue: out of memory on large records, poor batches on small', async (t) => {
      const bifrost = await open(t, { queueBytes: 100_000 })
      const large = range(1, 20).map(() => bifrost.append('log', new Uint8Array(30_000)))
      const queued = bifrost.metrics().bifrost_localloglet_queue_bytes
      const waiting = bifrost.metrics().bifrost_localloglet_waiting_bytes
      assert.ok(queued <= 100_000, `${queued} bytes are queued`)
      assert.ok(queued + waiting >= 600_000, `${queued + waiting} bytes are counted`)
      await rejection(bifrost.append('log', 'x', { whenFull: 'reject' }), 'QUEUE_FULL')
      await Promise.all(large)
      const before = bifrost.metrics().bifrost_localloglet_write_batch_count.count
      await Promise.all(range(1, 1000).map((n) => bifrost.append('log', n)))
      const after = bifrost.metrics().bifrost_localloglet_write_batch_count.count
      assert.ok(after - before <= 3, `${after - before} groups for 1,000 small records`)
    })
  })

  describe(`life in a process (${name})`, () => {
    test('close() with 1,000 appends pending; twice', async (t) => {
      const bifrost = await open(t)
      const appends = range(1, 1000).map((n) => bifrost.append('log', n))
      const closings = [bifrost.close(), bifrost.close()]
      assert.deepEqual(await Promise.all(appends), range(1, 1000))
      await Promise.all(closings)
      assert.equal(bifrost.status, 'closed')
      await rejection(bifrost.append('log', 1001), 'CLOSED')
    })

    test('readers abandoned by break, by signal, by an exception in the loop', async (t) => {
      const bifrost = await open(t)
      await bifrost.appendBatch('log', range(1, 10))
      const warnings: Error[] = []
      const listener = (warning: Error): number => warnings.push(warning)
      process.on('warning', listener)
      t.after(() => process.off('warning', listener))
      const controller = new AbortController()
      const { signal } = controller
      const follow = async (n: number): Promise<void> => {
        for await (const { lsn } of bifrost.createReader('log', { signal })) {
          if (lsn === 5 && n % 3 === 0) return
          if (lsn === 5 && n % 3 === 1) throw new Error('out of the loop')
        }
      }
      const followers = range(1, 1000).map((n) => follow(n).catch((error: unknown) => error))
      await Promise.all(followers.filter((_, i) => (i + 1) % 3 !== 2))
      controller.abort()
      await Promise.all(followers)
      await turn()
      assert.equal(getEventListeners(signal, 'abort').length, 0)
      assert.deepEqual(warnings, [])
    })

    test('a slow reader behind a fast writer', async (t) => {
      const bifrost = await open(t, { readAheadBytes: 20_000 })
      const reader = bifrost.createReader('log', { gaps: 'throw' })
      const chunks = reader.chunks()
      let read = 0
      for (const n of range(0, 19)) {
        await bifrost.appendBatch(
          'log',
          range(1, 50).map((i) => `${n * 50 + i}`.padEnd(1000)),
        )
        if (n % 2 === 1) continue
        const { value = [] } = await chunks.next()
        assert.ok(value.length <= 21, `${value.length} records of 1 KB were read ahead`)
        for (const { payload } of value) assert.equal(Number(payload), ++read)
      }
      while (read < 1000) assert.equal(Number((await reader.readNext())?.payload), ++read)
      await reader.return()
    })

    test('a cursor past the tail', async (t) => {
      const bifrost = await open(t)
      await bifrost.append('log', 1)
      const live = bifrost.createReader('log', { from: 3 })
      const call = live.readNext()
      await bifrost.append('log', 2)
      await bifrost.append('log', 3)
      assert.equal((await call)?.lsn, 3)
      const dead = bifrost.createReader('log', { from: 6 }).readNext()
      await bifrost.seal('log')
      await rejection(dead, 'INVALID_LSN')
      await rejection(bifrost.createReader('log', { from: 5 }).readNext(), 'INVALID_LSN')
      assert.equal(await bifrost.createReader('log', { from: 4 }).readNext(), undefined)
    })

    test('a payload changed by the caller after append() returned its promise', async (t) => {
      const bifrost = await open(t)
      const payload = { list: [1], bytes: new Uint8Array([1, 2]) }
      const bytes = new Uint8Array([3, 4])
      const appender = bifrost.createAppender('log')
      const calls = [
        bifrost.append('log', payload),
        bifrost.append('log', bytes),
        bifrost.appendMany([{ logId: 'log', payload }]),
        appender.enqueue(payload),
      ]
      payload.list.push(2)
      payload.bytes.fill(0)
      bytes.fill(0)
      await Promise.all(calls)
      await appender.committed()
      const original = { list: [1], bytes: new Uint8Array([1, 2]) }
      const expected = [original, new Uint8Array([3, 4]), original, original]
      assert.deepStrictEqual(await payloads(bifrost), expected)
    })

    test('a record that pins a large shared buffer', async (t) => {
      const bifrost = await open(t)
      await bifrost.appendBatch('log', [new Uint8Array([1]), { bytes: new Uint8Array([2, 3]) }])
      await bifrost.append('log', new Uint8Array(100_000))
      const [direct, nested] = (await payloads(bifrost)) as [Uint8Array, { bytes: Uint8Array }]
      for (const bytes of [direct, nested.bytes]) {
        assert.equal(bytes.byteOffset, 0)
        assert.equal(bytes.buffer.byteLength, bytes.length)
      }
    })

    test('the clock set back', async (t) => {
      const bifrost = await open(t)
      const clock = mock.method(Date, 'now', () => 2e12)
      t.after(() => clock.mock.restore())
      await bifrost.append('log', 1)
      clock.mock.mockImplementation(() => 1e12)
      await bifrost.append('log', 2)
      await bifrost.append('log', 3)
      const reader = bifrost.createReader('log', { follow: false, gaps: 'throw' })
      const times: number[] = []
      for await (const { createdAtMs } of reader) times.push(createdAtMs)
      assert.deepEqual(times, [2e12, 2e12, 2e12])
    })

    test('`:` `/` `..`, emoji, 255 bytes, an empty string as log id', async (t) => {
      const logs = [':', '/', '..', '../../etc/passwd', '🦉', 'x'.repeat(255), '\0', 'a b']
      const bifrost = await open(t, { logs })
      for (const id of logs) assert.equal(await bifrost.append(id, id), 1)
      for (const id of logs) assert.deepEqual(await payloads(bifrost, id), [id])
      assert.deepEqual(bifrost.logIds(), logs)
      for (const id of ['', 'x'.repeat(256), '🦉'.repeat(64)]) {
        await rejection(bifrost.createLog(id), 'INVALID_OPTION')
        await rejection(bifrost.append(id, 1), 'INVALID_OPTION')
      }
    })
  })
}

describe('batches and tails (reopened)', () => {
  test('an offset gap on re-instantiation', async (t) => {
    const dir = await mkdtemp(path.join(await realpath(tmpdir()), 'bifrost-faults-'))
    t.after(() => rm(dir, { recursive: true, force: true }))
    for (const n of range(0, 4)) {
      const bifrost = await Door.open({ dir, logs: ['log'] })
      assert.equal((await bifrost.findTail('log')).lsn, 3 * n + 1)
      assert.equal(await bifrost.append('log', n), 3 * n + 1)
      await rejection(bifrost.append('log', n, { expectedTail: 1_000 }), 'TAIL_MISMATCH')
      assert.equal(await bifrost.appendBatch('log', [n, n]), 3 * n + 2)
      const records: LogRecord[] = []
      for await (const record of bifrost.createReader('log', { follow: false }))
        records.push(record)
      assert.deepEqual(
        records.map(({ lsn }) => lsn),
        range(1, 3 * n + 3),
      )
      await bifrost.close()
    }
  })
})
