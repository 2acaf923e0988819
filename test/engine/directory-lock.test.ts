/** The lock of a directory: one holder, whoever asks and by whatever name, and it goes with close. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { describe, test } from 'node:test'
import { DirectoryLock } from '../../engine/directory-lock.ts'
import { NodeFileSystem } from '../../engine/node-file-system.ts'
import { rejection } from '../support/expect-error.ts'
import { FaultFileSystem } from '../support/fault-file-system.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { SimDisk } from '../support/sim-disk.ts'
import { temporaryDirectory } from '../support/temp-dir.ts'
import { turn } from '../support/test-store.ts'

function environment(): { readonly fileSystem: FaultFileSystem; readonly clock: ManualClock } {
  return { fileSystem: new FaultFileSystem(new NodeFileSystem()), clock: new ManualClock() }
}

describe('DirectoryLock.take()', () => {
  test('Two openers in one process: the second is LOCKED at once, and told by whom', async (t) => {
    const dir = await temporaryDirectory(t)
    const lock = await DirectoryLock.take(environment(), dir, 0)
    const error = await rejection(DirectoryLock.take(environment(), dir, 0), 'LOCKED')
    assert.deepEqual([error.dir, error.sameProcess, error.retryable], [dir, true, true])
    await lock.release()
    await (await DirectoryLock.take(environment(), dir, 0)).release()
  })

  test('is LOCKED by any name of the directory', async (t) => {
    const dir = await temporaryDirectory(t)
    const link = `${dir}-link`
    fs.symlinkSync(dir, link)
    t.after(() => fs.rmSync(link))
    const lock = await DirectoryLock.take(environment(), dir, 0)
    for (const name of [link, `${dir}/`, `${dir}/../${dir.split('/').at(-1) ?? ''}`]) {
      const error = await rejection(DirectoryLock.take(environment(), name, 0), 'LOCKED')
      assert.equal(error.sameProcess, true)
    }
    await lock.release()
  })

  test('leaves the lock file where it is, and closes its descriptor when it fails', async (t) => {
    const dir = await temporaryDirectory(t)
    const lock = await DirectoryLock.take(environment(), dir, 0)
    const second = environment()
    await rejection(DirectoryLock.take(second, dir, 0), 'LOCKED')
    assert.equal(second.fileSystem.faults.count('close', 'lock'), 1)
    await lock.release()
    assert.deepEqual(fs.readdirSync(dir), ['lock'])
  })

  test('tries again until the time is over', async (t) => {
    const dir = await temporaryDirectory(t)
    const lock = await DirectoryLock.take(environment(), dir, 0)
    const waiting = environment()
    const outcomes: string[] = []
    const taking = DirectoryLock.take(waiting, dir, 1000)
    taking.then(
      () => outcomes.push('locked'),
      () => outcomes.push('refused'),
    )
    for (let i = 0; i < 20; i++) {
      while (waiting.clock.timerCount === 0) await turn()
      waiting.clock.tick(20)
    }
    assert.deepEqual(outcomes, [])
    await lock.release()
    while (outcomes.length === 0) {
      waiting.clock.tick(20)
      await turn()
    }
    assert.deepEqual(outcomes, ['locked'])
    await (await taking).release()
  })

  test('is LOCKED in the end when nobody lets go', async (t) => {
    const dir = await temporaryDirectory(t)
    const lock = await DirectoryLock.take(environment(), dir, 0)
    const waiting = environment()
    const taking = DirectoryLock.take(waiting, dir, 100)
    const refusals: unknown[] = []
    taking.catch((error: unknown) => refusals.push(error))
    while (refusals.length === 0) {
      waiting.clock.tick(20)
      await turn()
    }
    await rejection(taking, 'LOCKED')
    const tries = waiting.fileSystem.faults.count('tryLock')
    assert.ok(tries >= 5 && tries <= 7, `${tries} tries`)
    await lock.release()
  })

  test('another process is told apart from this one, and a killed one lets go', async () => {
    const disk = new SimDisk({ seed: 1 })
    disk.makeDirectory('/store')
    const [one, other] = [disk.process, disk.spawn()]
    await disk.run(DirectoryLock.take(other, '/store', 0))
    const refused = disk.run(DirectoryLock.take(one, '/store', 0))
    assert.equal((await rejection(refused, 'LOCKED')).dir, '/store')
    disk.kill(other)
    await disk.run(DirectoryLock.take(one, '/store', 0))
  })

  test('passes on that nobody can lock here', async (t) => {
    const dir = await temporaryDirectory(t)
    const failing = environment()
    failing.fileSystem.faults.fail(({ kind }) => kind === 'tryLock', { code: 'EIO' })
    await assert.rejects(DirectoryLock.take(failing, dir, 0), { code: 'EIO' })
  })
})
