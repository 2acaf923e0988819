/** Closing a store: what is still committed, what is not, and what an operation that is stuck does. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { DirectoryLock } from '../../engine/directory-lock.ts'
import type { Match, OperationKind } from '../support/faults.ts'
import { rejection } from '../support/expect-error.ts'
import { numbered, TestStore, turn } from '../support/test-store.ts'

const SMALL = { segmentSizeBytes: 64 * 1024, reserveBytes: 4096 }
const FILLING = new Uint8Array(66 * 1024)
const GRACE_MS = 5000

const CHANGES: ReadonlySet<OperationKind> = new Set<OperationKind>([
  'write',
  'commit',
  'commitSync',
  'truncate',
  'rename',
  'unlink',
  'makeDirectory',
])

const isOf =
  (file: string, kind: OperationKind): Match =>
  (operation) =>
    operation.kind === kind && operation.path.endsWith(file)

/** What changed a file or a name since an operation was called. */
function changesSince(store: TestStore, index: number): string[] {
  return store.faults.trace
    .filter((entry) => entry.index > index && CHANGES.has(entry.kind))
    .map(({ kind, path }) => `${kind} ${path.slice(store.dir.length)}`)
}

/** Whether somebody in this process could take the store's lock now; lets go of it at once. */
async function isFree(store: TestStore): Promise<boolean> {
  try {
    const lock = await DirectoryLock.take(store, store.dir, 0)
    await lock.release()
    return true
  } catch {
    return false
  }
}

/** Closes a store on which something is stuck, and waits until it gives up. */
async function closeInVain(store: TestStore): Promise<void> {
  const closing = store.close()
  closing.catch(() => undefined)
  for (let i = 0; i < 20; i++) await turn()
  store.clock.tick(GRACE_MS)
  await rejection(closing, 'STORE_FAILED')
}

describe('LogStore.shutdown()', () => {
  test('commits all that was called before it', async (t) => {
    const store = await TestStore.open(t, { logs: ['log'] })
    const appends = numbered(1000).map((payload) => store.append('log', payload))
    const closing = store.close()
    assert.deepEqual(
      await Promise.all(appends),
      numbered(1000).map((_, i) => i + 1),
    )
    await closing
    const again = await TestStore.open(t, { dir: store.dir })
    assert.deepEqual(await again.payloads('log'), numbered(1000))
  })

  test('refuses what comes after it', async (t) => {
    const store = await TestStore.open(t, { logs: ['log'] })
    const closing = store.close()
    await rejection(store.append('log', 'late'), 'CLOSED')
    await rejection(store.appendBatch('log', ['late', 'later']), 'CLOSED')
    await rejection(store.appendMany([['log', 'late']]), 'CLOSED')
    await rejection(store.trim('log', 1), 'CLOSED')
    await rejection(store.seal('log'), 'CLOSED')
    await rejection(store.store.createLogs(['another']), 'CLOSED')
    await rejection(store.store.deleteLog('log'), 'CLOSED')
    await closing
    await rejection(store.append('log', 'late'), 'CLOSED')
    await rejection(store.readOnce('log', 1), 'CLOSED')
  })

  test('returns the same promise when it is called twice', async (t) => {
    const store = await TestStore.open(t, { logs: ['log'] })
    const closing = store.store.shutdown(GRACE_MS)
    assert.equal(store.store.shutdown(GRACE_MS), closing)
    await closing
    assert.equal(store.store.shutdown(GRACE_MS), closing)
  })

  test('does not wait for a delay of the commits', async (t) => {
    const store = await TestStore.open(t, { batchCommitDelayMs: 10_000 })
    const created = store.store.createLogs(['log'])
    await store.close()
    await created
    const again = await TestStore.open(t, { dir: store.dir })
    assert.notEqual(again.store.log('log'), undefined)
  })

  test('lets a roll finish', async (t) => {
    const store = await TestStore.open(t, { logs: ['log'], ...SMALL })
    await store.whenQuiet()
    await store.append('log', FILLING)
    const hold = store.hold(isOf('0000000002.segment', 'commit'))
    const appends = [store.append('log', 'rolls'), store.append('log', 'rolls too')]
    await hold.reached
    const closing = store.close()
    hold.release()
    assert.deepEqual(await Promise.all(appends), [2, 3])
    await closing
    const again = await TestStore.open(t, { dir: store.dir, ...SMALL })
    assert.deepEqual(await again.payloads('log', 2), ['rolls', 'rolls too'])
    assert.deepEqual(again.store.recovery.findings, [])
  })

  test('lets a segment in preparation finish', async (t) => {
    const store = await TestStore.open(t)
    const hold = store.hold(isOf('0000000002.segment', 'sync'))
    await store.store.createLogs(['log'])
    await hold.reached
    const closing = store.close()
    hold.release()
    await closing
    assert.equal(await isFree(store), true)
  })

  test('lets go of the lock when a descriptor does not close properly', async (t) => {
    const store = await TestStore.open(t, { logs: ['log'] })
    await store.append('log', 'a record')
    await store.readOnce('log', 1)
    await store.whenQuiet()
    const broken = store.faults.fail(({ kind }) => kind === 'close', { code: 'EIO' }, Infinity)
    await store.close()
    broken.remove()
    assert.equal(await isFree(store), true)
  })

  test('resolves, unclean, when there is no room for the metadata', async (t) => {
    const store = await TestStore.open(t, { logs: ['log'] })
    await store.append('log', 'a record')
    await store.whenQuiet()
    store.faults.fail(isOf('metadata.new', 'write'), { code: 'ENOSPC' }, Infinity)
    await store.close()
    const again = await TestStore.open(t, { dir: store.dir })
    assert.deepEqual(await again.payloads('log'), ['a record'])
    assert.notEqual(again.store.recovery.findings.length, 0)
  })

  test('is CLOSED for what is not in a group in time, and that is never written', async (t) => {
    const store = await TestStore.open(t, { logs: ['log'], batchCommitCount: 2 })
    await store.whenQuiet()
    const hold = store.hold(({ kind }) => kind === 'commit')
    const inFlight = [store.append('log', 'in flight'), store.append('log', 'in flight too')]
    for (const append of inFlight) append.catch(() => undefined)
    await hold.reached
    const queued = numbered(5).map((payload) => store.append('log', payload))
    for (const append of queued) append.catch(() => undefined)
    await closeInVain(store)
    for (const append of queued) await rejection(append, 'CLOSED')
    for (const append of inFlight) await rejection(append, 'STORE_FAILED')
    hold.release()
    await store.whenQuiet()
    const again = await TestStore.open(t, { dir: store.dir })
    assert.deepEqual(await again.payloads('log'), ['in flight', 'in flight too'])
  })

  test('rejects the same way when it is called again', async (t) => {
    const store = await TestStore.open(t, { logs: ['log'] })
    await store.whenQuiet()
    const hold = store.hold(({ kind }) => kind === 'commit')
    store.append('log', 'stuck').catch(() => undefined)
    await hold.reached
    await closeInVain(store)
    const first = await rejection(store.store.shutdown(GRACE_MS), 'STORE_FAILED')
    assert.equal(await rejection(store.store.shutdown(GRACE_MS), 'STORE_FAILED'), first)
  })
})

/** Where an operation can be stuck, and what brings the store to it. */
const STUCK: Record<string, { readonly at: Match; readonly act: (store: TestStore) => void }> = {
  'the commit of a group': {
    at: isOf('0000000001.segment', 'commit'),
    act: (store) => void store.append('log', 'stuck').catch(() => undefined),
  },
  'a roll that waits for the next file': {
    at: isOf('0000000003.segment', 'write'),
    act: (store) => {
      for (const payload of [FILLING, FILLING, 'stuck']) {
        store.append('log', payload).catch(() => undefined)
      }
    },
  },
  'the sync of the next file': {
    at: isOf('0000000003.segment', 'sync'),
    act: (store) => {
      store.append('log', FILLING).catch(() => undefined)
      store.append('log', 'rolls').catch(() => undefined)
    },
  },
  'the sync of the directory': {
    at: ({ kind }) => kind === 'syncDirectory',
    act: (store) => {
      store.append('log', FILLING).catch(() => undefined)
      store.append('log', 'rolls').catch(() => undefined)
    },
  },
  'the write of the metadata': {
    at: isOf('metadata.new', 'write'),
    act: (store) => {
      store.append('log', 'a record').then(
        () => setImmediate(() => store.clock.tick(600)),
        () => undefined,
      )
    },
  },
  'the sync of the metadata': {
    at: isOf('metadata.new', 'sync'),
    act: () => undefined,
  },
  'an unlink': {
    at: isOf('.segment', 'unlink'),
    act: (store) => {
      const payloads = [FILLING, FILLING, FILLING]
      Promise.all(payloads.map((payload) => store.append('log', payload)))
        .then(() => store.trim('log', 2))
        .catch(() => undefined)
    },
  },
  'the write of an index': {
    at: isOf('.index.new', 'write'),
    act: (store) => {
      store.append('log', FILLING).catch(() => undefined)
      store.append('log', 'rolls').catch(() => undefined)
    },
  },
}

describe('LogStore.shutdown() with an operation that is stuck', () => {
  for (const [name, { at, act }] of Object.entries(STUCK)) {
    test(`A write stuck in the kernel: ${name} keeps the lock until it returns`, async (t) => {
      const store = await TestStore.open(t, { logs: ['log'], ...SMALL, batchCommitCount: 1 })
      await store.whenQuiet()
      const hold = store.hold(at)
      act(store)
      const closing = name === 'the sync of the metadata' ? store.close() : undefined
      closing?.catch(() => undefined)
      await hold.reached
      await closeInVain(store)
      assert.equal(await isFree(store), false, 'the lock stays')
      const index = store.faults.operationCount
      hold.release()
      await store.whenQuiet()
      assert.deepEqual(changesSince(store, index), [], 'nothing more is written')
      assert.equal(await isFree(store), true, 'and then the lock goes')
      const again = await TestStore.open(t, { dir: store.dir, ...SMALL })
      assert.notEqual(again.store.recovery.findings.length, 0, 'no clean close was recorded')
      assert.equal(await again.append('log', 'goes on'), again.cell('log').facts.tail - 1)
    })
  }

  test('A write stuck in the kernel: nothing is put back when it returns without room', async (t) => {
    const store = await TestStore.open(t, { logs: ['log'] })
    await store.whenQuiet()
    store.faults.fail(({ kind }) => kind === 'commit', { code: 'ENOSPC' })
    const hold = store.hold(({ kind }) => kind === 'commit')
    const append = store.append('log', 'stuck')
    append.catch(() => undefined)
    await hold.reached
    await closeInVain(store)
    await rejection(append, 'STORE_FAILED')
    const index = store.faults.operationCount
    hold.release()
    await store.whenQuiet()
    assert.deepEqual(changesSince(store, index), [])
    assert.equal(await isFree(store), true)
  })

  test('tells readers STORE_FAILED, and what was released can be read until it returns', async (t) => {
    const store = await TestStore.open(t, { logs: ['log'] })
    await store.append('log', 'released')
    await store.whenQuiet()
    const hold = store.hold(({ kind }) => kind === 'commit')
    store.append('log', 'stuck').catch(() => undefined)
    await hold.reached
    await closeInVain(store)
    assert.equal(store.cell('log').ended?.code, 'STORE_FAILED')
    assert.deepEqual(await store.payloads('log'), ['released'])
    await rejection(store.append('log', 'late'), 'CLOSED')
  })
})
