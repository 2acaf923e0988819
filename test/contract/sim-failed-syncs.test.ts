/** What is on the simulated disk after a sync or a commit that failed, and how it is mended. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StoreFile } from '../../engine/file-system.ts'
import type { SimDisk } from '../support/sim-disk.ts'
import { SECTOR_BYTES as SECTOR } from '../support/sim-medium.ts'
import { PATH, filled, outcomesOf, sectorsOf, syncedFile } from '../support/sim-outcomes.ts'
import { commit } from './file-system-contract.ts'

test('A failed sync leaves pages that look written, and a later sync does not write them', async () => {
  const outcomes = await outcomesOf(100, async (disk) => {
    const file = await fileWithFailedSync(disk)
    assert.equal(sectorsOf(disk), 'bb')
    await disk.run(file.sync())
    assert.equal(disk.isDurable(PATH, 0, SECTOR), false)
    disk.crash('power')
    return sectorsOf(disk)
  })
  assert.deepEqual([...outcomes].sort(), ['aa', 'ab', 'ba', 'bb'])
})

test('A failed sync is mended by writing to the page again, all of it', async () => {
  const outcomes = await outcomesOf(100, async (disk) => {
    const file = await fileWithFailedSync(disk)
    await disk.run(file.write(filled('b', 10), 0))
    await disk.run(file.sync())
    disk.crash('power')
    return sectorsOf(disk)
  })
  assert.deepEqual(outcomes, new Set(['bb']))
})

test('A failed sync outlives a kill: only what is written again is durable', async () => {
  const outcomes = await outcomesOf(200, async (disk) => {
    await fileWithFailedSync(disk)
    disk.crash('kill')
    const seen = sectorsOf(disk)
    const file = await disk.run(disk.fileSystem.open(PATH, 'write'))
    await disk.run(file.sync())
    disk.crash('power')
    return `${seen} ${sectorsOf(disk)}`
  })
  // Where memory was short, the page was read again from the disk: then it stays what it is.
  const expected = ['aa aa', 'ab ab', 'ba ba', 'bb aa', 'bb ab', 'bb ba', 'bb bb']
  assert.deepEqual([...outcomes].sort(), expected)
})

test('A failed sync may take along what was written to its pages while it ran', async () => {
  const outcomes = await outcomesOf(100, async (disk) => {
    const file = await syncedFile(disk, filled('a', 2 * SECTOR))
    await disk.run(file.write(filled('b', SECTOR), 0))
    disk.faults.failOperation(1, { code: 'EIO' })
    const hold = disk.faults.hold(({ kind }) => kind === 'sync')
    const failing = file.sync()
    await disk.run(file.write(filled('c', SECTOR), SECTOR))
    hold.release()
    await assert.rejects(disk.run(failing), { code: 'EIO' })
    await disk.run(file.sync())
    return disk.isDurable(PATH, 0, 2 * SECTOR) ? 'written again' : 'lost'
  })
  assert.deepEqual([...outcomes].sort(), ['lost', 'written again'])
})

test('A failed sync is not mended by cutting the page in two', async () => {
  const outcomes = await outcomesOf(100, async (disk) => {
    const file = await fileWithFailedSync(disk)
    await disk.run(file.truncate(10))
    await disk.run(file.sync())
    disk.crash('power')
    return sectorsOf(disk)
  })
  assert.deepEqual([...outcomes].sort(), ['a', 'b'])
})

test('A failed commit may be on the disk or not, in any part, until it is written again', async () => {
  const run = (putBack: boolean): Promise<Set<string>> =>
    outcomesOf(300, async (disk) => {
      const file = await syncedFile(disk, filled('a', 2 * SECTOR))
      disk.faults.fail(({ kind }) => kind === 'commit', { code: 'EIO' })
      await assert.rejects(disk.run(commit(file, [filled('b', 2 * SECTOR)], 0)), { code: 'EIO' })
      if (putBack) await disk.run(file.write(filled('a', 2 * SECTOR), 0))
      await disk.run(file.sync())
      disk.crash('power')
      return sectorsOf(disk)
    })
  const torn = await run(false)
  for (const outcome of ['aa', 'ab', 'ba', 'bb']) assert.ok(torn.has(outcome), outcome)
  assert.deepEqual(await run(true), new Set(['aa']))
})

/** Two durable sectors 'a' of one page, written over with 'b', whose sync failed. */
async function fileWithFailedSync(disk: SimDisk): Promise<StoreFile> {
  const file = await syncedFile(disk, filled('a', 2 * SECTOR))
  await disk.run(file.write(filled('b', 2 * SECTOR), 0))
  disk.faults.failOperation(1, { code: 'EIO' })
  await assert.rejects(disk.run(file.sync()), { code: 'EIO' })
  return file
}
