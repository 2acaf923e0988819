/** Disks that are really full: nothing is lost, and a trim gives room to go on. */
import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Bifrost, LogError } from '../../index.ts'
import { temporaryDirectory } from '../support/temp-dir.ts'
import { FILLED_STORE, Filler, onceThereIsRoom } from './fill.ts'
import { withSmallDisk } from './small-disk.ts'

const CHILD = fileURLToPath(new URL('./fill-child.js', import.meta.url))
const ALL = Number.MAX_SAFE_INTEGER
const MAX_LOGS = 1000
const TURNS = [
  ['a', 'b'],
  ['b', 'a'],
  ['a', 'b'],
] as const

/** Opens the store, and closes it whatever happens. */
async function withStore(dir: string, use: (bifrost: Bifrost) => Promise<void>): Promise<void> {
  const bifrost = await Bifrost.open({ dir, logs: ['a', 'b'], ...FILLED_STORE })
  try {
    await use(bifrost)
  } finally {
    await bifrost.close()
  }
}

/** Whether a log could be made; false if that is WRITE_FAILED. */
async function tryCreate(bifrost: Bifrost, log: string): Promise<boolean> {
  try {
    await bifrost.createLog(log)
    return true
  } catch (error) {
    assert.ok(LogError.is(error, 'WRITE_FAILED'), String(error))
    return false
  }
}

/** Makes logs until none can be made any more. */
async function fillWithLogs(bifrost: Bifrost): Promise<void> {
  for (let i = 0; i < MAX_LOGS; i++) {
    if (!(await tryCreate(bifrost, `${bifrost.logIds().length}`))) return
  }
  assert.fail(`${MAX_LOGS} logs were made on a full disk`)
}

/** Follows the fill child's output into a filler's ledger, until it says the last word. */
async function follow(child: ChildProcess, filler: Filler, last: string): Promise<void> {
  for await (const line of createInterface({ input: child.stdout as Readable })) {
    const [word, log = '', ...numbers] = line.split(' ')
    const [lsn = 0, id = 0, size = 0] = numbers.map(Number)
    if (word === 'ack') filler.take(log, lsn, id, size)
    if (word === 'rejected') filler.rejected = Number(log)
    if (word === last) return
  }
  throw new Error('The fill child ended by itself')
}

for (const kind of ['tmpfs', 'ext4'] as const) {
  test(`a full disk (${kind}): appends are WRITE_FAILED, and a trim gives room`, async (t) => {
    await withSmallDisk(t, kind, async (dir) => {
      const filler = new Filler()
      await withStore(dir, async (bifrost) => {
        for (const [log, other] of kind === 'tmpfs' ? TURNS : TURNS.slice(1)) {
          await filler.fill(bifrost)
          assert.equal(bifrost.status, 'open')
          await filler.assertHolds(bifrost)
          const { lsn } = await bifrost.findTail(log)
          assert.equal(await bifrost.trim(log, ALL), lsn - 1)
          await bifrost.trim(other, ALL)
          await filler.appendOnceThereIsRoom(bifrost, log, 1000)
          await filler.assertHolds(bifrost)
        }
      })
      assert.ok(filler.rejected > 0)
      await withStore(dir, (bifrost) => filler.assertHolds(bifrost))
    })
  })

  test(`a full disk (${kind}): no log can be made, but seal and deleteLog work`, async (t) => {
    await withSmallDisk(t, kind, async (dir) => {
      await withStore(dir, async (bifrost) => {
        const filler = new Filler()
        await filler.fill(bifrost)
        await fillWithLogs(bifrost)
        await filler.assertHolds(bifrost)
        assert.equal((await bifrost.seal('b', 'the disk is full')).sealed, true)
        await Promise.all(bifrost.logIds().map((log) => bifrost.deleteLog(log)))
        assert.deepEqual(bifrost.logIds(), [])
        await onceThereIsRoom(() => tryCreate(bifrost, 'a'))
        assert.equal(await bifrost.append('a', 'the first record of another incarnation'), 1)
      })
    })
  })

  test(`a full disk (${kind}): a store opens on it, reads, trims and goes on`, async (t) => {
    await withSmallDisk(t, kind, async (dir) => {
      const filler = new Filler()
      // There is no room to record a clean close, but closing is no failure.
      await withStore(dir, (bifrost) => filler.fill(bifrost))
      await withStore(dir, async (bifrost) => {
        await filler.assertHolds(bifrost)
        await filler.fill(bifrost)
        await filler.assertHolds(bifrost)
        for (const log of ['a', 'b']) await bifrost.trim(log, ALL)
        for (let i = 0; i < 10; i++) await filler.appendOnceThereIsRoom(bifrost, 'b', 10_000)
        await filler.assertHolds(bifrost)
      })
    })
  })

  test(`a full disk (${kind}): kill -9 on it loses nothing`, async (t) => {
    await withSmallDisk(t, kind, async (dir) => {
      const filler = new Filler()
      const child = spawn(process.execPath, [CHILD, dir, 'stop'], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      const gone = once(child, 'exit')
      try {
        await follow(child, filler, 'full')
      } finally {
        child.kill('SIGKILL')
        await gone
      }
      await withStore(dir, async (bifrost) => {
        await filler.assertHolds(bifrost)
        for (const log of ['a', 'b']) await bifrost.trim(log, ALL)
        await filler.appendOnceThereIsRoom(bifrost, 'a', 10_000)
        await filler.assertHolds(bifrost)
      })
    })
  })
}

const LIMITED = [
  ['to the last byte', 'a trim of a segment that takes not one byte more'],
  // Then the trim fits where nothing else does, and all that it can give back is the last segment.
  ['mostly', 'a trim of the only segment'],
] as const

for (const [howFull, what] of LIMITED) {
  test(`a limit on the size of files (ulimit -f): ${what} gives room`, async (t) => {
    const dir = join(await temporaryDirectory(t), 'store')
    // Below the size at which a segment is rolled, so that a commit meets the limit in mid-write.
    const kib = 200
    assert.ok(kib * 1024 < (FILLED_STORE.segmentSizeBytes ?? 0))
    const command = `ulimit -f ${kib} && exec "$0" "$@"`
    const args = ['-c', command, process.execPath, CHILD, dir, 'go on', howFull]
    const child = spawn('bash', args, { stdio: ['ignore', 'pipe', 'inherit'] })
    t.after(() => child.kill('SIGKILL'))
    const filler = new Filler()
    const exit = once(child, 'exit')
    await follow(child, filler, 'closed')
    assert.deepEqual(await exit, [0, null])
    assert.ok(filler.rejected > 0, 'the limit was met')
    for (const name of readdirSync(dir)) {
      assert.ok(statSync(join(dir, name)).size <= kib * 1024, name)
    }
    await withStore(dir, async (bifrost) => {
      assert.equal(bifrost.recovery.droppedBytes, 0)
      await filler.assertHolds(bifrost)
    })
  })
}
