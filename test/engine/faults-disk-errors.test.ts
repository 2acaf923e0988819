/** Errors of rolls, renames and unlinks, and the order of syncs: each case by its name. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { describe, test, type TestContext } from 'node:test'
import { NodeFileSystem } from '../../engine/node-file-system.ts'
import { rejection } from '../support/expect-error.ts'
import { FaultFileSystem } from '../support/fault-file-system.ts'
import type { Match, OperationKind } from '../support/faults.ts'
import { requireRecovered, SMALL } from '../support/recovery-checks.ts'
import { SimStore } from '../support/sim-store.ts'
import { FILLING, segmentAt } from '../support/stores.ts'
import { numbered, TestStore, turn, type TestStoreOptions } from '../support/test-store.ts'

const isOf =
  (end: string, ...kinds: OperationKind[]): Match =>
  ({ kind, path }) =>
    kinds.includes(kind) && path.endsWith(end)

const isCommit: Match = ({ kind }) => kind === 'commit' || kind === 'commitSync'

/** A group's commit, and not a put-back, which starts at the start of a page. */
const isGroup: Match = (operation) => isCommit(operation) && (operation.position ?? 0) % 4096 !== 0

function open(t: TestContext, options: TestStoreOptions = {}): Promise<TestStore> {
  return TestStore.open(t, { ...SMALL, logs: ['log', 'other'], ...options })
}

/** That a store opens again after a kill with exactly these records in its log. */
async function requireAfterKill(
  t: TestContext,
  store: TestStore,
  payloads: readonly unknown[],
): Promise<void> {
  const { store: again } = await requireRecovered(t, await store.killed(t))
  assert.deepEqual(await again.payloads('log'), payloads)
}

describe('EIO on write; EMFILE on roll; EIO on rename or unlink', () => {
  test('EIO on write: a typed error, nothing lost, the store consistent', async (t) => {
    const store = await open(t)
    await store.append('log', 'before')
    store.faults.fail(isCommit, { code: 'EIO' })
    await rejection(store.append('log', 'unknown'), 'STORE_FAILED')
    await requireAfterKill(t, store, ['before'])
  })

  test('EMFILE on roll: only the group that needs the file is rejected', async (t) => {
    const store = await open(t)
    store.faults.fail(isOf('3.segment', 'open'), { code: 'EMFILE' }, 2)
    await store.append('other', FILLING)
    await store.append('other', FILLING)
    await store.whenQuiet()
    const error = await rejection(store.append('log', 'needs a roll'), 'WRITE_FAILED')
    assert.equal((error.cause as NodeJS.ErrnoException).code, 'EMFILE')
    assert.equal(await store.append('log', 'has it'), 1)
    await requireAfterKill(t, store, ['has it'])
  })

  test('EIO on rename: the old metadata stands, the store goes on, it is tried again', async (t) => {
    const store = await open(t)
    const metadata = fs.readFileSync(`${store.dir}/metadata`)
    await store.append('log', 1)
    const failing = store.faults.fail(isOf('metadata.new', 'rename'), { code: 'EIO' })
    store.clock.tick(600)
    await store.whenQuiet()
    assert.equal(failing.hits, 1)
    assert.deepEqual(fs.readFileSync(`${store.dir}/metadata`), metadata)
    assert.equal(await store.append('log', 2), 2)
    store.clock.tick(600)
    await store.whenQuiet()
    assert.notDeepEqual(fs.readFileSync(`${store.dir}/metadata`), metadata)
    await requireAfterKill(t, store, [1, 2])
  })

  test('EIO on the sync of a temporary file: it is discarded, never renamed', async (t) => {
    const store = await open(t)
    await store.append('log', 1)
    const before = store.faults.trace.length
    store.faults.fail(isOf('metadata.new', 'sync'), { code: 'EIO' })
    store.clock.tick(600)
    await store.whenQuiet()
    const isRename = isOf('metadata.new', 'rename')
    assert.ok(!store.faults.trace.slice(before).some(isRename))
    store.clock.tick(600)
    await store.whenQuiet()
    const steps = store.faults.trace
      .slice(before)
      .filter(({ path }) => path.endsWith('metadata.new'))
      .map(({ kind, outcome }) => (outcome === 'EIO' ? `${kind} failed` : kind))
    const again = steps.slice(steps.indexOf('sync failed') + 1)
    assert.deepEqual(again, ['close', 'unlink', 'open', 'write', 'sync', 'close', 'rename'])
  })

  test('EIO on unlink: the segment stays a leftover, and goes at the next open', async (t) => {
    const store = await open(t)
    await store.append('log', 1)
    await store.append('other', FILLING)
    await store.append('log', 2)
    await store.trim('log', 1)
    store.faults.fail(isOf('1.segment', 'unlink'), { code: 'EIO' }, Infinity)
    assert.equal(await store.trim('other', 1), 1)
    await store.whenQuiet()
    assert.equal(store.store.failure, undefined)
    assert.ok(fs.existsSync(segmentAt(store.dir, 1)))
    const dir = await store.killed(t)
    const { store: again } = await requireRecovered(t, dir)
    assert.ok(!fs.existsSync(segmentAt(dir, 1)))
    assert.deepEqual(await again.payloads('log', 2), [2])
  })

  const OPEN_ERRORS: [string, Match][] = [
    ['a read of the tail', isOf('1.segment', 'read')],
    ['the open of a segment', isOf('1.segment', 'open')],
    ['the read of the metadata', isOf('metadata', 'read')],
    ['the write of the tail', isOf('1.segment', 'write')],
    ['the sync of the tail', isOf('1.segment', 'sync')],
    ['the cut of the tail', isOf('1.segment', 'truncate')],
    ['the sync of the directory', ({ kind }) => kind === 'syncDirectory'],
    ['the list of the directory', ({ kind }) => kind === 'list'],
    ['the write of the metadata', isOf('metadata.new', 'write')],
    ['the rename of the metadata', isOf('metadata.new', 'rename')],
  ]
  for (const [what, match] of OPEN_ERRORS) {
    test(`EIO at open is OPEN_FAILED, never a torn tail: ${what}`, async (t) => {
      const before = await open(t)
      await before.appendEach('log', numbered(3))
      const dir = await before.killed(t)
      const files = new FaultFileSystem(new NodeFileSystem())
      const failing = files.faults.fail(match, { code: 'EIO' })
      const error = await rejection(TestStore.open(t, { ...SMALL, dir, files }), 'OPEN_FAILED')
      assert.equal(failing.hits, 1)
      assert.equal((error.cause as NodeJS.ErrnoException).code, 'EIO')
      assert.equal(error.retryable, true)
      const store = await TestStore.open(t, { ...SMALL, dir })
      assert.deepEqual(
        await store.payloads('log'),
        numbered(3),
        'the lock was let go, nothing lost',
      )
    })
  }

  test('EIO on a read is READ_FAILED, and the read succeeds later', async (t) => {
    const store = await open(t)
    await store.append('log', 1)
    store.faults.fail(isOf('1.segment', 'read'), { code: 'EIO' })
    const error = await rejection(store.readOnce('log', 1), 'READ_FAILED')
    assert.equal((error.cause as NodeJS.ErrnoException).code, 'EIO')
    assert.deepEqual(await store.payloads('log'), [1])
  })
})

describe('Directory not synced after a new segment or a rename', () => {
  test('it is synced before the first ack in the segment', async (t) => {
    const store = await open(t)
    for (let i = 0; i < 4; i++) await store.append('other', FILLING)
    const { trace } = store.faults
    for (const segment of [2, 3, 4]) {
      const file = `${segment}.segment`
      const opened = trace.findIndex(isOf(file, 'open'))
      const commit = trace.findIndex(isOf(file, 'commit'))
      const sync = trace.findIndex(({ kind }, i) => i > opened && kind === 'syncDirectory')
      assert.ok(opened >= 0 && sync < commit, `segment ${segment}`)
      const named = trace.findIndex(
        ({ kind, path }, i) => i > sync && kind === 'rename' && path.endsWith('metadata.new'),
      )
      assert.ok(named < commit, `the metadata names segment ${segment} before its first group`)
    }
  })

  test('a rename of the metadata is followed by a sync of the directory', async (t) => {
    const store = await open(t)
    await store.append('log', 1)
    const before = store.faults.trace.length
    store.clock.tick(600)
    await store.whenQuiet()
    const kinds = store.faults.trace.slice(before).map(({ kind }) => kind)
    assert.deepEqual(kinds.slice(-2), ['rename', 'syncDirectory'])
  })
})

test('Old segment not synced at a roll: every group of it is durable before the roll', async () => {
  const sim = new SimStore(11)
  await sim.open()
  await sim.create('log')
  for (let i = 0; i < 3; i++) await sim.append('log', FILLING)
  const { end } = mapSegmentOf(sim, 1)
  assert.ok(sim.disk.isDurable('/store/0000000001.segment', 0, end))
  sim.disk.crash('power')
  await sim.open()
  assert.equal((await sim.payloads('log')).length, 3)
})

function mapSegmentOf(sim: SimStore, segment: number): { readonly end: number } {
  const path = `/store/${String(segment).padStart(10, '0')}.segment`
  const bytes = sim.disk.readFile(path)
  return { end: bytes.findLastIndex((byte) => byte !== 0) + 1 }
}

describe('Offsets burnt by a failed commit', () => {
  test('they are used again, without a gap, in every log of the group', async (t) => {
    const store = await open(t)
    await store.append('log', 1)
    store.faults.fail(isGroup, { code: 'ENOSPC' })
    const big = new Uint8Array(70_000)
    const failed = [store.append('log', big), store.append('other', big), store.append('log', big)]
    for (const append of failed) await rejection(append, 'WRITE_FAILED')
    assert.deepEqual(await Promise.all([store.append('log', 2), store.append('other', 1)]), [2, 1])
    assert.deepEqual(await store.payloads('log'), [1, 2])
  })
})

describe("A commit's error not looked at, the append acked", () => {
  test('every ack follows its own commit: of many groups only the one that failed is rejected', async (t) => {
    const store = await open(t, { batchCommitCount: 1 })
    const acked: unknown[] = []
    for (let i = 1; i <= 30; i++) {
      const fails = i % 3 === 0
      if (fails) store.faults.fail(isGroup, { code: 'ENOSPC' })
      const payload = new Uint8Array(fails ? 70_000 : 10).fill(i)
      if (fails) await rejection(store.append('log', payload), 'WRITE_FAILED')
      else {
        await store.append('log', payload)
        acked.push(payload)
      }
    }
    assert.deepEqual(await store.payloads('log'), acked)
    await requireAfterKill(t, store, acked)
  })

  test('no ack while the commit is under way, nor when it fails', async (t) => {
    const store = await open(t)
    const hold = store.hold(isCommit)
    let outcome = 'pending'
    const append = store.append('log', 1)
    append.then(
      () => (outcome = 'acked'),
      () => (outcome = 'rejected'),
    )
    store.faults.fail(isCommit, { code: 'EIO', afterEffect: true })
    await hold.reached
    for (let i = 0; i < 20; i++) await turn()
    assert.equal(outcome, 'pending')
    hold.release()
    await rejection(append, 'STORE_FAILED')
  })
})
