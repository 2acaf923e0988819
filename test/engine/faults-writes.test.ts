/** Writes and syncs that fail, and disks that are full: each case by its name. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { describe, test, type TestContext } from 'node:test'
import { LogError } from '../../codec/errors.ts'
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
import { numbered, TestStore, type TestStoreOptions } from '../support/test-store.ts'

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

  /** Appends until there is no room; resolves with how many had some. */
  async function appendUntilFull(store: TestStore): Promise<number> {
    for (let written = 0; ; written++) {
      try {
        await store.append('log', new Uint8Array(500))
      } catch (error) {
        assert.ok(LogError.is(error, 'WRITE_FAILED'), String(error))
        return written
      }
    }
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

  test('appends leave the zeros of the reserve to what gives space back', async (t) => {
    for (const commitMode of ['async', 'inline'] as const) {
      const store = await open(t, { commitMode })
      await store.appendEach('log', numbered(150))
      const full = fillDisk(store)
      let written = 150 + (await appendUntilFull(store))
      for (let upTo = 1; upTo <= 60; upTo++) assert.equal(await store.trim('log', upTo), upTo)
      assert.equal(mapSegment(segmentAt(store.dir, 2)).header.segment, 2, 'the reserve is in use')
      written += await appendUntilFull(store)
      await rejection(store.store.createLogs(['x'.repeat(255)]), 'WRITE_FAILED')
      for (let upTo = 61; upTo <= 100; upTo++) assert.equal(await store.trim('log', upTo), upTo)
      await store.seal('other', 'still possible')
      await store.store.deleteLog('other')
      const dir = await store.killed(t)
      full.remove()
      store.clock.tick(1000)
      assert.equal(await store.append('log', 'there is room'), written + 1)
      const { store: again } = await requireRecovered(t, dir)
      assert.deepEqual(again.cell('log').facts.trimPoint, 100)
      assert.equal(again.cell('log').facts.tail, written + 1)
      assert.equal(again.store.log('other'), undefined)
    }
  })

  test('trims go on through crashes and reopens while the disk stays full', async (t) => {
    const store = await open(t)
    await store.appendEach('log', numbered(150))
    let dir = await store.killed(t)
    for (let round = 0; round < 4; round++) {
      const files = new FaultFileSystem(new NodeFileSystem())
      files.faults.fail(isGrowth, { code: 'ENOSPC' }, Infinity)
      const again = await TestStore.open(t, { ...SMALL, dir, files })
      for (let i = 1; i <= 20; i++) {
        const upTo = 20 * round + i
        assert.equal(await again.trim('log', upTo), upTo)
      }
      dir = await again.killed(t)
    }
    const { store: last } = await requireRecovered(t, dir)
    assert.equal((await last.read('log', 81)).length, 70)
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
