/**
 * One write and one sync serve everybody who is waiting. Counted at the FileSystem, where a commit
 * is one write and one sync; the trace of system calls shows that it is.
 */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { StoreOptions } from '../../engine/options.ts'
import type { Operation, OperationKind, TraceEntry } from '../support/faults.ts'
import { temporaryDirectory } from '../support/temp-dir.ts'
import { EngineStore } from './engine-store.ts'

const PAYLOAD = { flight: 1701, delay: -3, origin: 'SFO', destination: 'LAX' }
const MODES = [
  ['async', 'commit'],
  ['inline', 'commitSync'],
] as const

/** A store with logs and a reserve, that has nothing left to do. */
async function openQuiet(
  t: TestContext,
  logs: number,
  options: Omit<StoreOptions, 'dir'> = {},
): Promise<{ store: EngineStore; logIds: string[] }> {
  const store = await EngineStore.open({ dir: await temporaryDirectory(t), ...options })
  t.after(() => store.close())
  const logIds = Array.from({ length: logs }, (_, i) => `log-${i}`)
  await store.store.createLogs(logIds)
  await store.append('log-0', PAYLOAD)
  await store.whenQuiet()
  return { store, logIds }
}

/** Runs a load; returns what it asked of the file system, and how many groups it took. */
async function trace(
  store: EngineStore,
  load: () => Promise<unknown>,
): Promise<{ operations: TraceEntry[]; groups: number; records: number }> {
  const before = store.fileSystem.faults.trace.length
  const { count, sum } = store.store.metrics().bifrost_localloglet_write_batch_count
  await load()
  await store.whenQuiet()
  const operations = store.fileSystem.faults.trace.slice(before)
  const after = store.store.metrics().bifrost_localloglet_write_batch_count
  return { operations, groups: after.count - count, records: after.sum - sum }
}

/** Many callers, each with one append after the other. */
function callers(count: number, appends: number, append: (caller: number) => Promise<unknown>) {
  return Promise.all(
    Array.from({ length: count }, async (_, caller) => {
      for (let i = 0; i < appends; i++) await append(caller)
    }),
  )
}

function kindsOf(operations: readonly TraceEntry[]): OperationKind[] {
  return [...new Set(operations.map(({ kind }) => kind))].sort()
}

for (const [commitMode, commit] of MODES) {
  test(`LogStore.append() makes one write and one sync per group (${commitMode})`, async (t) => {
    const { store, logIds } = await openQuiet(t, 64, { commitMode })
    const load = (): Promise<unknown> =>
      callers(256, 20, (caller) => store.append(logIds[caller % 64] as string, PAYLOAD))
    const { operations, groups, records } = await trace(store, load)
    assert.deepEqual(kindsOf(operations), [commit], 'nothing but commits')
    assert.equal(operations.length, groups, 'one for each group')
    assert.equal(records, 256 * 20)
    assert.ok(records / groups >= 100, `${records} records in ${groups} groups`)
  })
}

test('LogStore.append() puts four appends of one tick into one group', async (t) => {
  const { store } = await openQuiet(t, 4)
  const load = (): Promise<unknown> =>
    Promise.all([0, 1, 2, 3].map((i) => store.append(`log-${i}`, PAYLOAD)))
  const { operations, groups, records } = await trace(store, load)
  assert.deepEqual([operations.length, groups, records], [1, 1, 4])
})

test('LogStore.append() puts what microtasks append into the group of their tick', async (t) => {
  const { store } = await openQuiet(t, 1)
  const load = async (): Promise<void> => {
    const first = store.append('log-0', PAYLOAD)
    await Promise.resolve()
    await Promise.all([first, store.append('log-0', PAYLOAD)])
  }
  assert.equal((await trace(store, load)).groups, 1)
})

test('LogStore.appendBatch() of 64 callers fills groups with 100 records and more', async (t) => {
  const { store, logIds } = await openQuiet(t, 64)
  const batch = [PAYLOAD, PAYLOAD, PAYLOAD, PAYLOAD]
  const load = (): Promise<unknown> =>
    callers(64, 50, (caller) => store.appendBatch(logIds[caller] as string, batch))
  const { groups, records } = await trace(store, load)
  assert.equal(records, 64 * 50 * 4)
  assert.ok(records / groups >= 100, `${records} records in ${groups} groups`)
})

test('LogStore.read() neither writes nor syncs', async (t) => {
  const { store, logIds } = await openQuiet(t, 8, { segmentSizeBytes: 64 * 1024 })
  await callers(64, 100, (caller) => store.append(logIds[caller % 8] as string, PAYLOAD))
  await store.whenQuiet()
  assert.ok(store.store.metrics().bifrost_segments > 3, 'the records fill several segments')
  const load = async (): Promise<void> => {
    for (const logId of logIds) assert.ok((await store.count(logId)) >= 800)
  }
  const { operations } = await trace(store, load)
  assert.ok(operations.length > 0)
  for (const { kind } of operations) assert.match(kind, /^(open|size|read|close)$/)
})

test('LogStore.append() asks a disk that has no room for zeros only once', async (t) => {
  const { store } = await openQuiet(t, 1)
  // Uses up the zeros that are there, so that the next small group takes new ones along.
  await store.appendBatch('log-0', [new Uint8Array(3 * 1024 * 1024)])
  const isLarge = (operation: Operation): boolean => (operation.length ?? 0) > 512 * 1024
  store.fileSystem.faults.fail(isLarge, { code: 'ENOSPC' }, Infinity)
  const lengths = async (): Promise<boolean[]> => {
    const { operations } = await trace(store, () => store.append('log-0', PAYLOAD))
    return operations.filter(({ kind }) => kind === 'commit').map(isLarge)
  }
  assert.deepEqual(await lengths(), [true, false])
  assert.deepEqual(await lengths(), [false])
})

test('LogStore.append() adds no sync to a commit that rolls to a prepared segment', async (t) => {
  const { store } = await openQuiet(t, 1, { segmentSizeBytes: 64 * 1024 })
  const { operations, groups } = await trace(store, async () => {
    for (let i = 0; i < 30; i++) {
      await store.append('log-0', new Uint8Array(8 * 1024))
      await store.whenQuiet()
    }
  })
  const commits = operations.filter(({ kind }) => kind === 'commit')
  assert.equal(commits.length, groups)
  assert.ok(new Set(commits.map(({ path }) => path)).size > 3, 'it rolled')
  const last = new Map<string, string>()
  for (const { kind, path } of operations) {
    // A file that was committed to is not synced again.
    if (kind === 'sync') assert.notEqual(last.get(path), 'commit', path)
    last.set(path, kind)
  }
})
