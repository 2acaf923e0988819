/** What the simulated disk may do to names when the power goes, and what it never does. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SimDisk } from '../support/sim-disk.ts'
import { SECTOR_BYTES as SECTOR } from '../support/sim-medium.ts'
import { PATH, filled, namesIn, outcomesOf, sectorsOf } from '../support/sim-outcomes.ts'
import { commit } from './file-system-contract.ts'

test('SimDisk.crash() keeps or loses each new name by itself until the directory is synced', async () => {
  const scenario = (sync: boolean) => async (disk: SimDisk) => {
    const { fileSystem } = disk
    for (const name of ['a', 'b']) await disk.run(fileSystem.open(`/d/${name}`, 'create'))
    if (sync) await disk.run(fileSystem.syncDirectory('/d'))
    disk.crash('power')
    return namesIn(disk)
  }
  assert.deepEqual([...(await outcomesOf(100, scenario(false)))].sort(), ['', 'a', 'a b', 'b'])
  assert.deepEqual(await outcomesOf(50, scenario(true)), new Set(['a b']))
})

test('StoreFile.sync() does not make a new name durable', async () => {
  const outcomes = await outcomesOf(50, async (disk) => {
    const file = await disk.run(disk.fileSystem.open(PATH, 'create'))
    await disk.run(commit(file, [filled('a', SECTOR)], 0))
    await disk.run(file.sync())
    disk.crash('power')
    return namesIn(disk)
  })
  assert.deepEqual([...outcomes].sort(), ['', 'file'])
})

test('SimDisk.crash() may undo an unlink, with the bytes, until the directory is synced', async () => {
  const scenario = (sync: boolean) => async (disk: SimDisk) => {
    disk.writeFile(PATH, filled('a', SECTOR))
    await disk.run(disk.fileSystem.unlink(PATH))
    if (sync) await disk.run(disk.fileSystem.syncDirectory('/d'))
    disk.crash('power')
    return namesIn(disk) === '' ? 'gone' : sectorsOf(disk)
  }
  assert.deepEqual([...(await outcomesOf(50, scenario(false)))].sort(), ['a', 'gone'])
  assert.deepEqual(await outcomesOf(50, scenario(true)), new Set(['gone']))
})

test('A rename leaves the old file or the new one under the name, never neither', async () => {
  const scenario = (sync: boolean) => async (disk: SimDisk) => {
    disk.writeFile(PATH, filled('a', SECTOR))
    disk.writeFile('/d/new', filled('b', SECTOR))
    await disk.run(disk.fileSystem.rename('/d/new', PATH))
    if (sync) await disk.run(disk.fileSystem.syncDirectory('/d'))
    disk.crash('power')
    return `${sectorsOf(disk)}: ${namesIn(disk)}`
  }
  const unsynced = await outcomesOf(100, scenario(false))
  assert.deepEqual([...unsynced].sort(), ['a: file new', 'b: file'])
  assert.deepEqual(await outcomesOf(50, scenario(true)), new Set(['b: file']))
})

test('Changes of one name survive in their order, so that a renamed file is not lost', async () => {
  const outcomes = await outcomesOf(200, async (disk) => {
    disk.writeFile('/d/a', filled('a', SECTOR))
    await disk.run(disk.fileSystem.rename('/d/a', '/d/b'))
    await disk.run(disk.fileSystem.open('/d/a', 'create'))
    disk.crash('power')
    return [...disk.contents()].map(([path, { length }]) => `${path} ${length}`).join(', ')
  })
  assert.deepEqual([...outcomes].sort(), ['/d/a 0, /d/b 512', '/d/a 512', '/d/b 512'])
})

test('A rename into another directory is durable as a whole when one of the two is synced', async () => {
  const outcomes = await outcomesOf(100, async (disk) => {
    disk.makeDirectory('/e')
    await disk.run(disk.fileSystem.open('/e/file', 'create'))
    await disk.run(disk.fileSystem.rename('/e/file', PATH))
    await disk.run(disk.fileSystem.syncDirectory('/d'))
    disk.crash('power')
    return [...disk.contents().keys()].join(' ')
  })
  assert.deepEqual(outcomes, new Set([PATH]))
})

test('FileSystem.syncDirectory() covers nothing that was changed after it began', async () => {
  const outcomes = await outcomesOf(100, async (disk) => {
    const { fileSystem } = disk
    await disk.run(fileSystem.open('/d/a', 'create'))
    const hold = disk.faults.hold(({ kind }) => kind === 'syncDirectory')
    const sync = fileSystem.syncDirectory('/d')
    await disk.run(fileSystem.open('/d/b', 'create'))
    hold.release()
    await disk.run(sync)
    disk.crash('power')
    return namesIn(disk)
  })
  assert.deepEqual([...outcomes].sort(), ['a', 'a b'])
})

test('A directory sync that fails covers nothing, and the next one covers all', async () => {
  const scenario = (again: boolean) => async (disk: SimDisk) => {
    await disk.run(disk.fileSystem.open(PATH, 'create'))
    disk.faults.failOperation(1, { code: 'EIO' })
    await assert.rejects(disk.run(disk.fileSystem.syncDirectory('/d')), { code: 'EIO' })
    if (again) await disk.run(disk.fileSystem.syncDirectory('/d'))
    disk.crash('power')
    return namesIn(disk)
  }
  assert.deepEqual([...(await outcomesOf(50, scenario(false)))].sort(), ['', 'file'])
  assert.deepEqual(await outcomesOf(50, scenario(true)), new Set(['file']))
})

test('FileSystem.makeDirectory() is durable after a sync of the parent, and not before', async () => {
  const outcomes = await outcomesOf(200, async (disk) => {
    await disk.run(disk.fileSystem.makeDirectory('/new'))
    const isSynced = disk.seed % 2 === 0
    if (isSynced) await disk.run(disk.fileSystem.syncDirectory('/'))
    disk.crash('power')
    const names = [...disk.directories()].filter((path) => path === '/new')
    assert.ok(!isSynced || names.length === 1)
    return names.join(' ')
  })
  assert.deepEqual([...outcomes].sort(), ['', '/new'])
})
