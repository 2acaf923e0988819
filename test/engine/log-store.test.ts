/** The store as a whole: every code of its errors once, and what can still be done after each. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { describe, test, type TestContext } from 'node:test'
import { logError, type LogErrorCode } from '../../codec/errors.ts'
import { emptyFacts, applyCreate } from '../../codec/log-state.ts'
import { MAX_POSITION } from '../../codec/offset.ts'
import { createdAtMsOf, RecordEncoder } from '../../codec/record.ts'
import { LogStore } from '../../engine/log-store.ts'
import { NodeFileSystem } from '../../engine/node-file-system.ts'
import { resolveStoreOptions } from '../../engine/options.ts'
import { ReadOnlyStore } from '../../engine/read-only-store.ts'
import type { Store } from '../../engine/store.ts'
import { findRecord, flipBit, mapSegment } from '../support/corrupt.ts'
import { rejection, thrown } from '../support/expect-error.ts'
import { FaultFileSystem } from '../support/fault-file-system.ts'
import { SMALL } from '../support/recovery-checks.ts'
import { record, SegmentBytes } from '../support/segment-bytes.ts'
import { killedStore, segmentAt, segmentedStore } from '../support/stores.ts'
import { temporaryDirectory } from '../support/temp-dir.ts'
import { copyOf, numbered, TestStore, type TestStoreOptions } from '../support/test-store.ts'

function open(t: TestContext, options: TestStoreOptions = {}): Promise<TestStore> {
  return TestStore.open(t, { ...SMALL, logs: ['log', 'other'], ...options })
}

/** That the store takes appends and reads as if nothing had happened. */
async function requireUnharmed(store: TestStore): Promise<void> {
  const before = await store.payloads('log')
  const offset = await store.append('log', 'unharmed')
  assert.equal(offset, before.length + 1)
  assert.deepEqual(await store.payloads('log'), [...before, 'unharmed'])
  assert.equal(store.store.failure, undefined)
}

describe('LogStore errors that concern one call', () => {
  test('UNKNOWN_LOG: an append, a trim and a read of a log that was deleted', async (t) => {
    const store = await open(t)
    await store.append('other', 1)
    const cell = store.cell('other')
    await store.store.deleteLog('other')
    const listen = new Promise((committed, failed) => {
      store.store.append(cell, 'x', undefined, undefined, { committed, failed })
    })
    await rejection(listen, 'UNKNOWN_LOG')
    await rejection(store.store.trim(cell, 1), 'UNKNOWN_LOG')
    await rejection(store.store.seal(cell, undefined), 'UNKNOWN_LOG')
    const request = { from: 1, to: 1, maxBytes: 1, visit: () => true }
    await rejection(store.store.read(cell, request), 'UNKNOWN_LOG')
    await rejection(store.store.deleteLog('other'), 'UNKNOWN_LOG')
    await requireUnharmed(store)
    await store.store.createLogs(['other'])
    assert.equal(await store.append('other', 'a new incarnation'), 1)
    assert.notEqual(store.cell('other'), cell)
  })

  test('SEALED: with tail and reason; a trim and reads go on', async (t) => {
    const store = await open(t)
    await store.appendBatch('other', [1, 2])
    await store.seal('other', 'moved')
    await store.seal('other', 'not this one')
    const error = await rejection(store.append('other', 3), 'SEALED')
    assert.deepEqual([error.tail, error.reason], [3, 'moved'])
    assert.deepEqual((await store.readOnce('other', 3)).outcome, { kind: 'end' })
    assert.deepEqual(await store.payloads('other'), [1, 2])
    assert.equal(await store.trim('other', 1), 1)
    await requireUnharmed(store)
  })

  test('INVALID_LSN: a log without LSNs left; they are refused, never rounded', async (t) => {
    const dir = await temporaryDirectory(t)
    const facts = emptyFacts()
    applyCreate(facts, 'log', { loglet: 1, baseLsn: 1 })
    const full = facts.loglets.get(1)
    assert.ok(full)
    full.tail = MAX_POSITION - 1
    full.trimPoint = MAX_POSITION - 2
    const segment = new SegmentBytes(1, facts).add([record(1, MAX_POSITION - 1, 'before')])
    fs.writeFileSync(segmentAt(dir, 1), segment.bytes)
    const store = await TestStore.open(t, { ...SMALL, dir })
    await rejection(store.appendBatch('log', [1, 2]), 'INVALID_LSN')
    assert.equal(await store.append('log', 'the last'), MAX_POSITION)
    await rejection(store.append('log', 'one too many'), 'INVALID_LSN')
    assert.equal(store.cell('log').facts.tail, Number.MAX_SAFE_INTEGER)
    const records = await store.read('log', MAX_POSITION - 1)
    assert.deepEqual(
      records.map(({ payload }) => payload),
      ['before', 'the last'],
    )
    await store.store.createLogs(['new'])
    assert.equal(await store.append('new', 1), 1)
    const again = await TestStore.open(t, { ...SMALL, dir: await store.killed(t) })
    assert.equal(again.cell('log').facts.tail, Number.MAX_SAFE_INTEGER)
  })

  test('EMPTY_BATCH: and the tail does not move', async (t) => {
    const store = await open(t)
    await rejection(store.appendBatch('log', []), 'EMPTY_BATCH')
    await rejection(store.appendMany([]), 'EMPTY_BATCH')
    assert.equal(store.cell('log').facts.tail, 1)
    await requireUnharmed(store)
  })

  test('RECORD_TOO_LARGE and BATCH_TOO_LARGE: refused before any write, and never tried again', async (t) => {
    const store = await open(t, { maxRecordBytes: 1000, maxBatchBytes: 3000 })
    const before = store.faults.count('commit')
    await rejection(store.append('log', new Uint8Array(1000)), 'RECORD_TOO_LARGE')
    await rejection(store.appendBatch('log', [1, new Uint8Array(1000)]), 'RECORD_TOO_LARGE')
    const big = new Uint8Array(900)
    await rejection(store.appendBatch('log', [big, big, big, big]), 'BATCH_TOO_LARGE')
    const many = [1, 2, 3, 4].map(() => ['other', big] as const)
    await rejection(store.appendMany(many), 'BATCH_TOO_LARGE')
    await store.whenQuiet()
    assert.equal(store.faults.count('commit'), before)
    assert.equal(await store.appendBatch('other', [big, big, big]), 1, 'just what fits')
    await requireUnharmed(store)
  })

  test('A record larger than a segment: refused before any write if over its limit, else stored', async (t) => {
    const store = await open(t, { maxRecordBytes: 200_000 })
    await rejection(store.append('log', new Uint8Array(200_000)), 'RECORD_TOO_LARGE')
    const large = new Uint8Array(150_000).fill(7)
    assert.equal(await store.append('log', large), 1)
    assert.deepEqual(await store.payloads('log'), [large])
  })

  test('ENCODE_FAILED: nothing of it is queued, nor of the batch it is in', async (t) => {
    const store = await open(t)
    await rejection(
      store.append('log', () => undefined),
      'ENCODE_FAILED',
    )
    await rejection(store.appendBatch('log', [1, new Map(), 3]), 'ENCODE_FAILED')
    const reentrant = {
      get payload() {
        void store.append('log', 'from within').catch(() => undefined)
        return 1
      },
    }
    await store.append('log', reentrant)
    assert.deepEqual(await store.payloads('log'), [{ payload: 1 }])
    await requireUnharmed(store)
  })

  test('TAIL_MISMATCH: with the tail that was found, and all below it can be read', async (t) => {
    const store = await open(t)
    await store.appendBatch('log', numbered(3))
    const error = await rejection(store.append('log', 'x', { expectedTail: 2 }), 'TAIL_MISMATCH')
    assert.equal(error.tail, 4)
    assert.equal((await store.payloads('log')).length, 3)
    assert.equal(await store.append('log', 'y', { expectedTail: error.tail }), 4)
    await rejection(store.append('log', 'x', { expectedTail: 0 }), 'TAIL_MISMATCH')
    await requireUnharmed(store)
  })

  test('QUEUE_FULL: only where a call does not want to wait', async (t) => {
    const store = await open(t, { queueBytes: 1000 })
    const hold = store.hold(({ kind }) => kind === 'commit')
    const inFlight = store.append('log', 1)
    await hold.reached
    const queued = store.append('log', new Uint8Array(900))
    const waiting = store.append('log', new Uint8Array(900))
    await rejection(store.append('log', 'x', { whenFull: 'reject' }), 'QUEUE_FULL')
    const gauges = store.store.metrics()
    assert.ok(gauges.bifrost_localloglet_queue_bytes > 900)
    assert.ok(gauges.bifrost_localloglet_waiting_bytes > 900)
    hold.release()
    assert.deepEqual(await Promise.all([inFlight, queued, waiting]), [1, 2, 3])
    assert.equal(await store.append('log', 'x', { whenFull: 'reject' }), 4)
  })

  test('ABORTED: withdrawn while it is queued or waits, and never written', async (t) => {
    const store = await open(t, { queueBytes: 100 })
    const hold = store.hold(({ kind }) => kind === 'commit')
    const first = store.append('log', 1)
    await hold.reached
    const controllers = [new AbortController(), new AbortController(), new AbortController()]
    const reason = new Error('the request is gone')
    const calls = controllers.map(({ signal }, i) => store.append('log', `gone ${i}`, { signal }))
    for (const controller of controllers) controller.abort(reason)
    for (const call of calls) {
      const error = await rejection(call, 'ABORTED')
      assert.deepEqual([error.name, error.cause], ['AbortError', reason])
    }
    const aborted = AbortSignal.abort(reason)
    await rejection(store.append('log', 'x', { signal: aborted }), 'ABORTED')
    hold.release()
    assert.equal(await first, 1)
    assert.deepEqual(await store.payloads('log'), [1])
    await requireUnharmed(store)
  })

  test('ABORTED is not told once the append is in a group: then its true outcome is', async (t) => {
    const store = await open(t)
    const controller = new AbortController()
    const hold = store.hold(({ kind }) => kind === 'commit')
    const append = store.append('log', 1, { signal: controller.signal })
    await hold.reached
    controller.abort()
    hold.release()
    assert.equal(await append, 1)
  })
})

describe('LogStore errors of the store and its files', () => {
  test('INVALID_OPTION: nothing is opened', () => {
    const error = thrown(() => resolveStoreOptions({ dir: 'x', queueBytes: 0 }), 'INVALID_OPTION')
    assert.match(error.message, /queueBytes/)
  })

  test('LOCKED: with who has it, and the next opener gets in when it is closed', async (t) => {
    const store = await open(t)
    const error = await rejection(TestStore.open(t, { ...SMALL, dir: store.dir }), 'LOCKED')
    assert.deepEqual([error.dir, error.sameProcess], [store.dir, true])
    await requireUnharmed(store)
    await store.close()
    await requireUnharmed(await TestStore.open(t, { ...SMALL, dir: store.dir }))
  })

  test('READ_ONLY: every member that writes, of a store that is followed', async (t) => {
    const dir = await killedStore(t, 3)
    const store: Store = await ReadOnlyStore.open(resolveStoreOptions({ dir, readOnly: true }))
    const cell = store.cell(1)
    assert.ok(cell)
    const listen = new Promise((committed, failed) => {
      store.append(cell, 'x', undefined, undefined, { committed, failed })
    })
    await rejection(listen, 'READ_ONLY')
    await rejection(store.trim(cell, 1), 'READ_ONLY')
    await rejection(store.seal(cell, undefined), 'READ_ONLY')
    await rejection(store.createLogs(['new']), 'READ_ONLY')
    await rejection(store.deleteLog('log'), 'READ_ONLY')
    const request = { from: 1, to: 1, maxBytes: 1000, visit: () => true }
    assert.deepEqual(await store.read(cell, request), { kind: 'data', next: 2 })
    await store.shutdown(5000)
  })

  test('CORRUPT: at open, with file, position, label and LSNs, and the lock is let go', async (t) => {
    const dir = await killedStore(t, 20)
    const { path, frame } = findRecord(dir, 1, 10)
    flipBit(path, frame.bodyEnd - 1)
    const error = await rejection(TestStore.open(t, { ...SMALL, dir }), 'CORRUPT')
    const { position } = mapSegment(path).groups.at(-1) ?? { position: 0 }
    assert.ok(error.position > position)
    assert.deepEqual(
      { file: error.file, label: error.label, logs: error.logs },
      { file: '0000000001.segment', label: 'R4', logs: [{ logId: 'log', from: 10, to: 10 }] },
    )
    await rejection(TestStore.open(t, { ...SMALL, dir }), 'CORRUPT')
  })

  test('CORRUPT: from a read; other records can be read, and appends go on', async (t) => {
    const before = await segmentedStore(t, 2)
    await before.close()
    const dir = await copyOf(t, before.dir)
    const { path, frame } = findRecord(dir, 1, 5)
    flipBit(path, frame.bodyEnd - 1)
    const store = await TestStore.open(t, { ...SMALL, dir })
    const error = await rejection(store.readOnce('log', 5), 'CORRUPT')
    assert.deepEqual([error.label, error.position], ['R4', frame.position])
    assert.deepEqual(error.logs, [{ logId: 'log', from: 5, to: 5 }])
    assert.equal((await store.read('log', 6)).length, 15)
    assert.equal(await store.append('log', 'goes on'), 21)
    assert.equal(store.store.failure, undefined)
  })

  test('WRITE_FAILED: and the same append succeeds when there is room', async (t) => {
    const store = await open(t)
    store.faults.fail(({ kind, position = 1 }) => kind === 'commit' && position % 4096 !== 0, {
      code: 'ENOSPC',
    })
    const payload = new Uint8Array(70_000)
    const error = await rejection(store.append('log', payload), 'WRITE_FAILED')
    assert.ok(error.retryable)
    assert.equal(await store.append('log', payload), 1)
    await requireUnharmed(store)
  })

  test('STORE_FAILED: nothing can be written, what was released can be read, a reopen mends', async (t) => {
    const store = await open(t)
    await store.append('log', 'released')
    store.faults.fail(({ kind }) => kind === 'commit', { code: 'EIO' })
    await rejection(store.append('log', 'unknown'), 'STORE_FAILED')
    const writes: [LogErrorCode, () => Promise<unknown>][] = [
      ['STORE_FAILED', () => store.append('log', 1)],
      ['STORE_FAILED', () => store.trim('log', 1)],
      ['STORE_FAILED', () => store.store.createLogs(['x'])],
      ['STORE_FAILED', () => store.store.deleteLog('log')],
    ]
    for (const [code, write] of writes) await rejection(write(), code)
    assert.deepEqual(await store.payloads('log'), ['released'])
    await store.close()
    await requireUnharmed(await TestStore.open(t, { ...SMALL, dir: store.dir }))
  })

  test('OPEN_FAILED: a directory that is a file, or that nobody may read', async (t) => {
    const dir = `${await temporaryDirectory(t)}/file`
    fs.writeFileSync(dir, 'not a directory')
    const error = await rejection(TestStore.open(t, { ...SMALL, dir }), 'OPEN_FAILED')
    assert.ok(error.cause instanceof Error)
  })

  test('LOCK_UNAVAILABLE: where nobody can lock, there is no unlocked store', async (t) => {
    const dir = await temporaryDirectory(t)
    const files = new FaultFileSystem(new NodeFileSystem())
    files.tryLock = () => Promise.reject(logError('LOCK_UNAVAILABLE', 'no locks here'))
    await rejection(TestStore.open(t, { ...SMALL, dir, files }), 'LOCK_UNAVAILABLE')
    assert.deepEqual(fs.readdirSync(dir), ['lock'])
  })
})

describe('LogStore.append()', () => {
  test('A payload changed by the caller after append returned: what was passed is what is stored', async (t) => {
    const store = await open(t)
    const payload = { id: 1, lines: [1, 2] }
    const bytes = new Uint8Array([1, 2, 3])
    const appends = [store.append('log', payload), store.append('log', bytes)]
    payload.id = 9
    payload.lines.push(9)
    bytes.fill(9)
    await Promise.all(appends)
    assert.deepEqual(await store.payloads('log'), [
      { id: 1, lines: [1, 2] },
      new Uint8Array([1, 2, 3]),
    ])
  })

  test('A payload changed by the caller: also while it waits for room', async (t) => {
    const store = await open(t, { queueBytes: 10 })
    const hold = store.hold(({ kind }) => kind === 'commit')
    const first = store.append('log', 0)
    await hold.reached
    const bytes = [new Uint8Array(50).fill(1), new Uint8Array(50).fill(2)]
    const appends = bytes.map((payload) => store.append('log', payload))
    for (const payload of bytes) payload.fill(9)
    hold.release()
    await Promise.all([first, ...appends])
    const expected = [new Uint8Array(50).fill(1), new Uint8Array(50).fill(2)]
    assert.deepEqual(await store.payloads('log', 2), expected)
  })

  test('Clock set back: createdAt never decreases within a log, and nothing depends on it', async (t) => {
    const store = await open(t)
    const times: number[] = []
    for (const jump of [0, 5000, -100_000, 1, -5, 200_000]) {
      store.clock.jump(jump)
      await store.append('log', jump)
    }
    const visit = (_: number, bytes: Uint8Array, start: number): boolean => {
      times.push(createdAtMsOf(bytes, start))
      return true
    }
    const request = { from: 1, to: 6, maxBytes: 1e6, visit }
    await store.store.read(store.cell('log'), request)
    assert.equal(times.length, 6)
    assert.deepEqual(
      times,
      [...times].sort((a, b) => a - b),
    )
    assert.ok((times.at(-1) ?? 0) > (times[0] ?? 0))
  })

  test('takes records that were encoded before', async (t) => {
    const store = await open(t)
    const encoded = new RecordEncoder(1000).encode({ id: 7 }, ['key'])
    await store.append('log', encoded)
    assert.deepEqual(await store.payloads('log'), [{ id: 7 }])
  })

  test('makes a directory with mode 0700 and files with mode 0600', async (t) => {
    const dir = `${await temporaryDirectory(t)}/a/b/c`
    const store = await open(t, { dir })
    await store.close()
    assert.equal(fs.statSync(dir).mode & 0o777, 0o700)
    for (const name of fs.readdirSync(dir)) {
      assert.equal(fs.statSync(`${dir}/${name}`).mode & 0o777, 0o600, name)
    }
  })

  test('works on real files by default', async (t) => {
    const dir = await temporaryDirectory(t)
    const store = await LogStore.open(resolveStoreOptions({ dir, ...SMALL }))
    await store.createLogs(['log'])
    const cell = store.cell(1)
    assert.ok(cell)
    const offset = await new Promise((committed, failed) => {
      store.append(cell, 'x', undefined, undefined, { committed, failed })
    })
    assert.equal(offset, 1)
    await store.shutdown(5000)
  })
})

describe('LogStore.metrics()', () => {
  test('counts appends, batches, bytes, trims, segments', async (t) => {
    const store = await open(t)
    await store.appendBatch('log', numbered(4))
    await Promise.all([store.append('log', 'a'), store.append('log', 'b')])
    await store.trim('log', 2)
    await store.trim('log', 1)
    const metrics = store.store.metrics()
    assert.equal(metrics.bifrost_localloglet_appends_total, 6)
    const batches = metrics.bifrost_localloglet_write_batch_count
    assert.deepEqual([batches.count, batches.sum, batches.max], [2, 6, 4])
    assert.equal(metrics.bifrost_localloglet_append_duration_seconds.count, 3)
    assert.equal(metrics.bifrost_localloglet_trims_total, 1, 'the second changed nothing')
    assert.equal(metrics.bifrost_segments, 1)
    assert.ok(metrics.bifrost_localloglet_write_batch_size_bytes.sum > 200)
    assert.ok(metrics.bifrost_localloglet_sync_duration_seconds.sum > 0)
    assert.ok(metrics.bifrost_disk_bytes >= fs.statSync(segmentAt(store.dir, 1)).size)
    assert.equal(metrics.bifrost_localloglet_queue_bytes, 0)
  })
})
