/** Space comes back: oldest segments first, after a durable frame, whoever reads meanwhile. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { describe, test, type TestContext } from 'node:test'
import { flipBit, segmentFiles } from '../support/corrupt.ts'
import { rejection } from '../support/expect-error.ts'
import type { Match, OperationKind } from '../support/faults.ts'
import { copyOf, TestStore, turn, type TestStoreOptions } from '../support/test-store.ts'

const SMALL: TestStoreOptions = {
  logs: ['a', 'b', 'tail'],
  segmentSizeBytes: 64 * 1024,
  reserveBytes: 4096,
  indexCacheBytes: 0,
}
/** A record of this size fills a segment. */
const FILLING = 66 * 1024

const isOf =
  (end: string, kind: OperationKind): Match =>
  (operation) =>
    operation.kind === kind && operation.path.endsWith(end)

/** A store with one record of a log in each of its segments, and a last segment with little. */
async function filled(
  t: TestContext,
  logs: readonly string[],
  options: TestStoreOptions = {},
): Promise<TestStore> {
  const store = await TestStore.open(t, { ...SMALL, ...options })
  for (const log of logs) await store.append(log, new Uint8Array(FILLING))
  await store.append('tail', 'in the segment that is written to')
  await store.whenQuiet()
  return store
}

/** The numbers of the segments that are there and hold a group. */
function segments(store: TestStore): number[] {
  return segmentFiles(store.dir).map((name) => Number.parseInt(name, 10))
}

/** Waits until an operation of a kind was called. */
async function untilCalled(store: TestStore, match: Match, times: number): Promise<void> {
  while (store.faults.trace.filter(match).length < times) await turn()
}

describe('DeadSegments.look()', () => {
  test('unlinks what a trim left without a record, the oldest first', async (t) => {
    const store = await filled(t, ['a', 'a', 'a', 'a'])
    await store.trim('a', 2)
    await store.whenQuiet()
    assert.deepEqual(segments(store), [3, 4, 5])
    const unlinked = store.faults.trace.filter(isOf('.segment', 'unlink'))
    assert.deepEqual(
      unlinked.map(({ path }) => path),
      [store.segmentPath(1), store.segmentPath(2)],
    )
    assert.deepEqual(
      (await store.read('a', 3)).map(({ offset }) => offset),
      [3, 4],
    )
  })

  test('has the frame that says so durable before the first unlink, and syncs the directory after', async (t) => {
    const store = await filled(t, ['a', 'a', 'a'])
    const from = store.faults.trace.length
    await store.trim('a', 2)
    await store.whenQuiet()
    const kinds = store.faults.trace
      .slice(from)
      .filter(({ path }) => !path.includes('metadata') && !path.includes('.index'))
      .map(({ kind }) => kind)
      .filter((kind) => ['commit', 'unlink', 'syncDirectory'].includes(kind))
    const tail = ['commit', 'commit', 'unlink', 'unlink', 'syncDirectory']
    assert.deepEqual(kinds, tail, 'the trim, what is dead, the unlinks')
  })

  test('unlinks nothing while the frame that says so is not durable', async (t) => {
    const store = await filled(t, ['a', 'a', 'a'])
    let commits = 0
    const declared = store.hold(({ kind }) => kind === 'commit' && ++commits > 1)
    await store.trim('a', 2)
    await declared.reached
    for (let i = 0; i < 50; i++) await turn()
    assert.deepEqual(segments(store), [1, 2, 3, 4])
    declared.release()
    await store.whenQuiet()
    assert.deepEqual(segments(store), [3, 4])
  })

  test('leaves a segment behind one that is needed, and takes both when that ends', async (t) => {
    const store = await filled(t, ['a', 'b', 'a', 'a'])
    await store.trim('b', 1)
    await store.whenQuiet()
    assert.deepEqual(segments(store), [1, 2, 3, 4, 5])
    await store.trim('a', 1)
    await store.whenQuiet()
    assert.deepEqual(segments(store), [3, 4, 5])
  })

  test('never takes the segment that is written to', async (t) => {
    const store = await filled(t, ['a', 'a'])
    await store.trim('tail', 1)
    assert.equal(await store.trim('a', 100), 2)
    await store.whenQuiet()
    assert.deepEqual(segments(store), [3])
    assert.equal(await store.append('a', 'next'), 3)
  })

  test('gives the space of a deleted log back', async (t) => {
    const store = await filled(t, ['a', 'a', 'a', 'b'])
    await store.store.deleteLog('a')
    await store.whenQuiet()
    assert.deepEqual(segments(store), [4, 5])
    assert.deepEqual((await store.read('b')).length, 1)
  })

  test('gives the space back that a roll made free', async (t) => {
    const store = await filled(t, [])
    await store.trim('tail', 1)
    await store.append('b', new Uint8Array(FILLING))
    await store.trim('b', 1)
    await store.whenQuiet()
    assert.deepEqual(segments(store), [2])
  })

  test('keeps no descriptor of what it unlinked', async (t) => {
    const store = await filled(t, ['a', 'a', 'a'])
    await store.read('a')
    await store.trim('a', 2)
    await store.whenQuiet()
    const open = fs.readdirSync('/proc/self/fd').map((fd) => {
      try {
        return fs.readlinkSync(`/proc/self/fd/${fd}`)
      } catch {
        return ''
      }
    })
    assert.deepEqual(
      open.filter((path) => path.startsWith(store.segmentPath(1))),
      [],
    )
    assert.deepEqual(
      open.filter((path) => path.startsWith(store.segmentPath(2))),
      [],
    )
  })

  test('tries again on the next occasion what could not be unlinked', async (t) => {
    const store = await filled(t, ['a', 'a', 'a'])
    store.faults.fail(isOf('1.segment', 'unlink'), { code: 'EIO' })
    assert.equal(await store.trim('a', 1), 1)
    await store.whenQuiet()
    assert.deepEqual(segments(store), [1, 2, 3, 4])
    assert.equal(await store.trim('a', 2), 2)
    await store.whenQuiet()
    assert.deepEqual(segments(store), [3, 4])
    assert.equal(store.store.failure, undefined)
  })

  test('leaves to the next open what it could not unlink', async (t) => {
    const store = await filled(t, ['a', 'a', 'a'])
    store.faults.fail(isOf('1.segment', 'unlink'), { code: 'EIO' }, Infinity)
    await store.trim('a', 2)
    await store.whenQuiet()
    await store.close()
    assert.ok(fs.existsSync(store.segmentPath(1)))
    const again = await TestStore.open(t, { ...SMALL, dir: store.dir })
    assert.deepEqual(segments(again), [3, 4])
  })

  test('keeps a segment with damage, behind which anything may be', async (t) => {
    const store = await filled(t, ['a', 'a', 'a'])
    await store.close()
    fs.rmSync(store.segmentPath(1).replace('segment', 'index'))
    flipBit(store.segmentPath(1), 40_000)
    const again = await TestStore.open(t, { ...SMALL, dir: store.dir })
    assert.equal(await again.trim('a', 2), 2)
    await again.whenQuiet()
    assert.deepEqual(segments(again), [1, 2, 3, 4])
  })

  test('is done in full by the next open when the process ends between frame and unlink', async (t) => {
    const store = await filled(t, ['a', 'a', 'a'])
    const hold = store.hold(isOf('.segment', 'unlink'))
    await store.trim('a', 2)
    await hold.reached
    const left = await copyOf(t, store.dir)
    hold.release()
    const again = await TestStore.open(t, { ...SMALL, dir: left })
    assert.deepEqual(segments(again), [3, 4])
    assert.deepEqual((await again.readOnce('a', 1)).outcome, { kind: 'trim-gap', until: 2 })
  })
})

describe('SegmentReader.read() beside DeadSegments', () => {
  test('A trim raced a read: it is a trim gap when the records went beneath the read', async (t) => {
    const store = await filled(t, ['a', 'a', 'a'])
    const hold = store.hold(isOf('1.segment', 'open'))
    const read = store.readOnce('a', 1)
    await hold.reached
    await store.trim('a', 2)
    await untilCalled(store, isOf('1.segment', 'unlink'), 1)
    hold.release()
    const { outcome, records } = await read
    assert.deepEqual(outcome, { kind: 'trim-gap', until: 2 })
    assert.deepEqual(records, [])
  })

  test('finds its record when the segments that it searches are unlinked meanwhile', async (t) => {
    const store = await filled(t, ['a', 'a', 'a', 'a', 'a', 'a', 'a', 'a'])
    await store.trim('a', 1)
    await store.whenQuiet()
    const isCommit = ({ kind }: { kind: OperationKind }): boolean => kind === 'commit'
    // The trim's own commit goes through; the one that declares segments dead waits.
    let commits = 0
    const declared = store.hold((operation) => isCommit(operation) && ++commits > 1)
    await store.trim('a', 6)
    await declared.reached
    const search = store.hold(isOf('.index', 'open'))
    const read = store.readOnce('a', 7)
    await search.reached
    declared.release()
    await untilCalled(store, isOf('6.segment', 'unlink'), 1)
    search.release()
    const { outcome, records } = await read
    assert.deepEqual(outcome, { kind: 'data', next: 8 })
    assert.equal(records[0]?.offset, 7)
  })

  test('is UNKNOWN_LOG when the log is deleted beneath the read', async (t) => {
    const store = await filled(t, ['a', 'a', 'b'])
    const hold = store.hold(isOf('1.segment', 'open'))
    const read = store.readOnce('a', 1)
    read.catch(() => undefined)
    await hold.reached
    await store.store.deleteLog('a')
    await untilCalled(store, isOf('1.segment', 'unlink'), 1)
    hold.release()
    await rejection(read, 'UNKNOWN_LOG')
  })
})
