/** Writes and syncs that fail: each case of docs and field, by its name, with the right answer. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { describe, test, type TestContext } from 'node:test'
import type { LogError } from '../../codec/errors.ts'
import { NodeFileSystem } from '../../engine/node-file-system.ts'
import { mapSegment } from '../support/corrupt.ts'
import { rejection } from '../support/expect-error.ts'
import { FaultFileSystem } from '../support/fault-file-system.ts'
import type { Fault, Match, OperationKind } from '../support/faults.ts'
import { fsError } from '../support/fs-error.ts'
import { fillDisk, isGrowth } from '../support/full-disk.ts'
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

describe('fdatasync fails once, the retry says OK, the pages are gone', () => {
  test('the store has failed for good: nothing is retried, everybody is told', async (t) => {
    for (const commitMode of ['async', 'inline'] as const) {
      const store = await open(t, { commitMode, batchCommitCount: 2 })
      await store.append('log', 'before')
      const failing = store.faults.fail(isCommit, { code: 'EIO', afterEffect: true })
      const calls = [1, 2, 3, 4, 5].map((i) => store.append('log', i))
      const trim = store.trim('log', 1)
      for (const call of [...calls, trim]) await rejection(call, 'STORE_FAILED')
      const error = await rejection(store.append('log', 'later'), 'STORE_FAILED')
      assert.equal(error.retryable, false)
      assert.equal((error.cause as NodeJS.ErrnoException).code, 'EIO')
      assert.equal(store.store.failure?.code, 'STORE_FAILED')
      assert.equal(failing.hits, 1, 'it is not tried again')
      assert.equal(store.cell('log').ended?.code, 'STORE_FAILED')
      assert.deepEqual(await store.payloads('log'), ['before'], 'what was released can be read')
    }
  })

  test('the store records no clean close, and writes nothing more', async (t) => {
    const store = await open(t)
    store.faults.fail(isCommit, { code: 'EIO' })
    await rejection(store.append('log', 1), 'STORE_FAILED')
    const failedAt = store.faults.operationCount
    store.clock.tick(10_000)
    await store.close()
    const changes = store.faults.trace.filter(
      ({ index, kind }) => index > failedAt && !['close', 'read', 'size'].includes(kind),
    )
    assert.deepEqual(changes, [])
    const again = await open(t, { dir: store.dir })
    assert.notEqual(again.store.recovery.findings.length, 0)
  })

  test('what a reopen shows is on the disk, though the sync of it had failed', async () => {
    let survived = 0
    for (let seed = 1; seed <= 15; seed++) {
      const sim = new SimStore(seed)
      await sim.open()
      await sim.create('log')
      await sim.append('log', 'before')
      sim.disk.faults.fail(isCommit, { code: 'EIO' })
      await rejection(sim.append('log', 'unknown'), 'STORE_FAILED')
      sim.disk.crash('kill')
      await sim.open()
      const shown = await sim.payloads('log')
      if (shown.length === 2) survived++
      sim.disk.crash('power')
      await sim.open()
      assert.deepEqual(await sim.payloads('log'), shown, sim.disk.describe())
    }
    assert.ok(survived > 0, 'in some runs the page cache still had the group')
  })

  test('on reopen the tail is rewritten, then synced, before anything is released', async () => {
    const sim = new SimStore(5)
    await sim.open()
    await sim.create('log')
    await sim.append('log', 'before')
    sim.disk.crash('kill')
    const since = sim.disk.faults.trace.length
    await sim.open()
    const steps = sim.disk.faults.trace
      .slice(since)
      .filter(({ path }) => path.endsWith('1.segment'))
    const write = steps.findLastIndex(({ kind }) => kind === 'write')
    const sync = steps.findLastIndex(({ kind }) => kind === 'sync')
    assert.ok(write >= 0 && sync > write)
  })
})

for (const code of ['ENOSPC', 'EDQUOT', 'EFBIG']) {
  describe(`${code} after part of a group was written; space freed; append again`, () => {
    const faults: [string, Fault][] = [
      ['nothing of it was written', { code }],
      ['Short write, then no room', { code, short: true }],
    ]
    for (const [what, fault] of faults) {
      for (const commitMode of ['async', 'inline'] as const) {
        test(`the group is rejected, the next one lands right there: ${what}, ${commitMode}`, async (t) => {
          const store = await open(t, { commitMode })
          await store.append('log', 'before')
          const { end } = mapSegment(segmentAt(store.dir, 1))
          const bytes = fs.readFileSync(segmentAt(store.dir, 1))
          const full = store.faults.fail(isGroup, fault, Infinity)
          const error = await rejection(store.appendBatch('log', numbered(3)), 'WRITE_FAILED')
          assert.equal(error.retryable, true)
          assert.equal((error.cause as NodeJS.ErrnoException).code, fsError(code, '', '').code)
          assert.deepEqual(fs.readFileSync(segmentAt(store.dir, 1)), bytes, 'not a byte is left')
          assert.equal(store.store.failure, undefined)
          assert.deepEqual(await store.payloads('log'), ['before'])
          full.remove()
          assert.equal(await store.append('log', 'after'), 2, 'no offset is burnt')
          const next = mapSegment(segmentAt(store.dir, 1)).groups.at(-1)
          assert.equal(next?.position, end)
          await requireAfterKill(t, store, ['before', 'after'])
        })
      }
    }

    test('a rejected append never appears, not even after a crash', async () => {
      for (let seed = 1; seed <= 8; seed++) {
        const sim = new SimStore(seed)
        await sim.open()
        await sim.create('log')
        await sim.append('log', 'before')
        sim.disk.faults.fail(isGroup, { code, short: seed % 2 === 0 }, 2)
        await rejection(sim.append('log', new Uint8Array(9000).fill(7)), 'WRITE_FAILED')
        sim.disk.crash(seed % 3 === 0 ? 'kill' : 'power')
        const report = await sim.open()
        assert.deepEqual(await sim.payloads('log'), ['before'])
        assert.equal(report.droppedBytes, 0, sim.disk.describe())
      }
    })
  })
}

describe('No room for a group', () => {
  test('appends and creates are rejected, trims, seals and deletes of the group are done', async (t) => {
    const store = await open(t, { logs: ['log', 'other', 'third'] })
    await store.appendEach('log', numbered(5))
    const full = store.faults.fail(isGroup, { code: 'ENOSPC' }, 1)
    const outcomes = await Promise.allSettled([
      store.append('log', new Uint8Array(70_000)),
      store.trim('log', 3),
      store.store.createLogs(['new']),
      store.seal('other', 'full'),
      store.store.deleteLog('third'),
      store.append('log', 'x', { expectedTail: 6 }),
    ])
    assert.equal(full.hits, 1, 'the group was tried once, then what gives space back alone')
    const codes = outcomes.map((outcome) =>
      outcome.status === 'fulfilled' ? 'ok' : (outcome.reason as LogError).code,
    )
    const failed = 'WRITE_FAILED'
    assert.deepEqual(codes, [failed, 'ok', failed, 'ok', 'ok', failed])
    assert.equal(store.store.log('new'), undefined)
    assert.equal(store.cell('log').facts.trimPoint, 3)
    assert.equal(store.cell('other').facts.seal?.reason, 'full')
    await store.store.createLogs(['new'])
    assert.equal(store.cell('new').facts.id, 5, 'the id that was burnt is not used again')
    const { view } = await requireRecovered(t, await store.killed(t))
    assert.deepEqual(
      view.map(({ logId, trimPoint, isSealed }) => [logId, trimPoint, isSealed]),
      [
        ['log', 3, false],
        ['other', 0, true],
        ['new', 0, false],
      ],
    )
  })

  test('a trim that an append of its group would have let go further stays behind', async (t) => {
    const store = await open(t)
    await store.appendEach('log', numbered(5))
    store.faults.fail(isGroup, { code: 'ENOSPC' }, 1)
    const append = store.append('log', new Uint8Array(70_000))
    const trim = store.trim('log', 100)
    await rejection(append, 'WRITE_FAILED')
    assert.equal(await trim, 5)
    assert.equal(await store.append('log', 'next'), 6)
  })

  test('a trim that has no room in the segment goes to the reserve, and is there after a crash', async (t) => {
    const store = await open(t)
    await store.appendEach('log', numbered(5))
    const full = store.faults.fail(
      (operation) => isGroup(operation) && operation.path.endsWith('1.segment'),
      { code: 'ENOSPC' },
      Infinity,
    )
    assert.equal(await store.trim('log', 3), 3)
    assert.ok(full.hits >= 1)
    const { header, groups } = mapSegment(segmentAt(store.dir, 2))
    assert.deepEqual([header.segment, groups.length, groups[0]?.frames[0]?.kind], [2, 1, 2])
    const { store: again } = await requireRecovered(t, await store.killed(t))
    assert.deepEqual(await again.payloads('log', 4), numbered(2, 4))
  })

  test('what gives space back is WRITE_FAILED only when the reserve is used up too', async (t) => {
    const store = await open(t)
    await store.append('log', 1)
    store.faults.fail(isGroup, { code: 'ENOSPC' }, Infinity)
    store.faults.fail(isOf('2.segment', 'commit'), { code: 'ENOSPC' }, 1)
    await rejection(store.trim('log', 1), 'WRITE_FAILED')
    assert.equal(store.store.failure, undefined)
    assert.equal(store.cell('log').facts.trimPoint, 0)
  })

  test('the put-back failing too is a failure of the store', async (t) => {
    for (const kind of ['truncate', 'sync'] as const) {
      const store = await open(t)
      await store.append('log', 'before')
      store.faults.fail(isGroup, { code: 'ENOSPC' }, 2)
      store.faults.fail(isOf('1.segment', kind), { code: 'EIO' })
      await rejection(store.append('log', new Uint8Array(70_000)), 'STORE_FAILED')
      assert.deepEqual(await store.payloads('log'), ['before'])
    }
  })
})

describe('The disk is full at open, and stays full', () => {
  /** A store of three segments, left by a kill. */
  async function left(t: TestContext): Promise<string> {
    const store = await open(t)
    for (let i = 0; i < 2; i++) {
      await store.append('log', `in segment ${i + 1}`)
      await store.append('other', FILLING)
    }
    await store.append('log', 'in segment 3')
    return store.killed(t)
  }

  test('it opens, recovers, reads; trim works and gives space back; appends then go on', async (t) => {
    const dir = await left(t)
    const files = new FaultFileSystem(new NodeFileSystem())
    const full = files.faults.fail(isGrowth, { code: 'ENOSPC' }, Infinity)
    const store = await TestStore.open(t, { ...SMALL, dir, files })
    assert.deepEqual(await store.payloads('log'), ['in segment 1', 'in segment 2', 'in segment 3'])
    await rejection(store.append('log', new Uint8Array(100_000)), 'WRITE_FAILED')
    await rejection(store.store.createLogs(['x'.repeat(255)].concat(numbered(500))), 'WRITE_FAILED')
    assert.equal(await store.trim('other', 2), 2)
    assert.equal(await store.trim('log', 2), 2)
    await store.whenQuiet()
    assert.ok(!fs.existsSync(segmentAt(dir, 1)) && !fs.existsSync(segmentAt(dir, 2)))
    full.remove()
    assert.equal(await store.append('log', new Uint8Array(100_000)), 4)
    assert.equal(store.store.failure, undefined)
  })

  test('a clean mark that cannot be rewritten is removed before anything is written', async (t) => {
    const closed = await open(t)
    await closed.append('log', 1)
    await closed.close()
    const files = new FaultFileSystem(new NodeFileSystem())
    files.faults.fail(isGrowth, { code: 'ENOSPC' }, Infinity)
    const store = await TestStore.open(t, { ...SMALL, dir: closed.dir, files })
    assert.ok(!fs.existsSync(`${closed.dir}/metadata`))
    assert.equal(await store.trim('log', 1), 1)
    const { view } = await requireRecovered(t, await store.killed(t))
    assert.deepEqual(
      view.map(({ trimPoint }) => trimPoint),
      [1, 0],
    )
  })

  test('close resolves, unclean, and the next open recovers', async (t) => {
    const store = await open(t)
    await store.append('log', 1)
    fillDisk(store)
    await store.close()
    const again = await open(t, { dir: store.dir })
    assert.deepEqual(await again.payloads('log'), [1])
    assert.notEqual(again.store.recovery.findings.length, 0)
  })
})

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
