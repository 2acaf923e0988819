/**
 * What the simulated disk may do to bytes and names when the power goes does happen with some
 * seed, and what a disk never does happens with none. A scenario gives its outcome as a word.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StoreFile } from '../../engine/file-system.ts'
import { SimDisk, type SimDiskOptions } from '../support/sim-disk.ts'
import { commit } from './file-system-contract.ts'

const SECTOR = 512
const PAGE = 4096
const PATH = '/d/file'

test('SimDisk.crash() leaves each sector with any version since the last sync', async () => {
  const outcomes = await outcomesOf(300, async (disk) => {
    const file = await syncedFile(disk, filled('a', 3 * SECTOR))
    await disk.run(file.write(filled('b', 3 * SECTOR), 0))
    await disk.run(file.write(filled('c', SECTOR), SECTOR))
    disk.crash('power')
    return sectorsOf(disk)
  })
  const expected = ['a', 'b'].flatMap((first) =>
    ['a', 'b', 'c'].flatMap((second) => ['a', 'b'].map((third) => first + second + third)),
  )
  assert.deepEqual([...outcomes].sort(), expected.sort())
})

test('SimDisk.crash() keeps what was synced, whatever was done to other sectors', async () => {
  const outcomes = await outcomesOf(200, async (disk) => {
    const file = await syncedFile(disk, filled('a', 3 * SECTOR))
    await disk.run(file.write(filled('b', SECTOR), 0))
    await disk.run(file.write(filled('b', 9 * SECTOR), 2 * SECTOR))
    disk.crash('power')
    return sectorsOf(disk).slice(1, 2)
  })
  assert.deepEqual(outcomes, new Set(['a']))
})

test('SimDisk.crash() leaves a size ahead of the data, behind it, or in between', async () => {
  const sizes = new Set<string>()
  const gaps = await outcomesOf(300, async (disk) => {
    const file = await syncedFile(disk, filled('a', SECTOR))
    await disk.run(file.write(filled('b', 4 * SECTOR), SECTOR))
    disk.crash('power')
    const bytes = disk.readFile(PATH)
    sizes.add(bytes.length < 5 * SECTOR ? (bytes.length > SECTOR ? 'between' : 'old') : 'new')
    assert.ok(bytes.length >= SECTOR && bytes.length <= 5 * SECTOR)
    return sectorsOf(disk).slice(1, 2)
  })
  assert.deepEqual([...sizes].sort(), ['between', 'new', 'old'])
  assert.deepEqual([...gaps].sort(), ['', '0', '?', 'b'])
})

test('SimDisk.crash() may show the bytes of a deleted file in one that grew', async () => {
  const outcomes = await outcomesOf(300, async (disk) => {
    disk.writeFile('/d/deleted', filled('x', 4 * SECTOR))
    await disk.run(disk.fileSystem.unlink('/d/deleted'))
    await disk.run(disk.fileSystem.syncDirectory('/d'))
    const file = await syncedFile(disk, new Uint8Array(0))
    await disk.run(file.truncate(4 * SECTOR))
    disk.crash('power')
    return sectorsOf(disk).slice(0, 1)
  })
  assert.deepEqual([...outcomes].sort(), ['', '0', '?', 'x'])
})

test('SimDisk.crash() shows zeros in a hole that was synced', async () => {
  const outcomes = await outcomesOf(200, async (disk) => {
    disk.writeFile('/d/deleted', filled('x', 4 * SECTOR))
    await disk.run(disk.fileSystem.unlink('/d/deleted'))
    const file = await syncedFile(disk, new Uint8Array(0))
    await disk.run(file.write(filled('a', SECTOR), 3 * SECTOR))
    await disk.run(file.sync())
    disk.crash('power')
    return sectorsOf(disk)
  })
  assert.deepEqual(outcomes, new Set(['000a']))
})

test('SimDisk.crash() may undo a cut that was not synced', async () => {
  const outcomes = await outcomesOf(200, async (disk) => {
    const file = await syncedFile(disk, filled('a', 2 * SECTOR))
    await disk.run(file.truncate(SECTOR))
    disk.crash('power')
    return sectorsOf(disk)
  })
  assert.deepEqual([...outcomes].sort(), ['a', 'a0', 'aa'])
})

test('SimDisk.crash() may bring back what was cut, at its own place, after growing again', async () => {
  const outcomes = await outcomesOf(300, async (disk) => {
    const file = await syncedFile(disk, filled('a', 2 * SECTOR))
    await disk.run(file.truncate(0))
    await disk.run(file.sync())
    await disk.run(file.write(filled('b', 2 * SECTOR), 0))
    disk.crash('power')
    return sectorsOf(disk).slice(1, 2)
  })
  assert.ok(outcomes.has('a') && outcomes.has('b') && outcomes.has('0'))
})

test('StoreFile.sync() covers nothing that was written after it began', async () => {
  const outcomes = await outcomesOf(200, async (disk) => {
    const file = await syncedFile(disk, filled('a', 2 * SECTOR))
    await disk.run(file.write(filled('b', SECTOR), 0))
    const hold = disk.faults.hold((operation) => operation.kind === 'sync')
    const sync = file.sync()
    await disk.run(file.write(filled('c', SECTOR), SECTOR))
    hold.release()
    await disk.run(sync)
    disk.crash('power')
    return sectorsOf(disk)
  })
  assert.deepEqual([...outcomes].sort(), ['ba', 'bc'])
})

test('StoreFile.commit() makes its own bytes durable, and nothing else', async () => {
  const outcomes = await outcomesOf(300, async (disk) => {
    const file = await syncedFile(disk, filled('a', 3 * SECTOR))
    await disk.run(file.write(filled('b', SECTOR), 0))
    await disk.run(commit(file, [filled('c', 100), filled('c', SECTOR - 100)], SECTOR))
    disk.crash('power')
    return sectorsOf(disk)
  })
  assert.deepEqual([...outcomes].sort(), ['aca', 'bca'])
})

test('StoreFile.commit() makes durable a size that reaches its bytes', async () => {
  const outcomes = await outcomesOf(300, async (disk) => {
    const file = await syncedFile(disk, new Uint8Array(0))
    await disk.run(file.write(filled('b', 5 * SECTOR), 0))
    await disk.run(commit(file, [filled('c', SECTOR)], 2 * SECTOR))
    disk.crash('power')
    const bytes = disk.readFile(PATH)
    assert.ok(bytes.length >= 3 * SECTOR)
    assert.equal(sectorsOf(disk)[2], 'c')
    return bytes.length === 3 * SECTOR ? 'enough' : 'more'
  })
  assert.deepEqual([...outcomes].sort(), ['enough', 'more'])
})

test('StoreFile.commitSync() makes its own bytes durable', async () => {
  const outcomes = await outcomesOf(100, async (disk) => {
    const file = await syncedFile(disk, filled('a', SECTOR))
    assert.equal(file.commitSync([filled('b', SECTOR), filled('c', SECTOR)], SECTOR), 2 * SECTOR)
    disk.crash('power')
    return sectorsOf(disk)
  })
  assert.deepEqual(outcomes, new Set(['abc']))
})

test('SimDisk.crash() tears a commit that is under way at any sector, in any subset', async () => {
  const outcomes = await outcomesOf(400, async (disk) => {
    const file = await syncedFile(disk, filled('a', 3 * SECTOR))
    void commit(file, [filled('b', 3 * SECTOR)], 0)
    disk.crash('power')
    return sectorsOf(disk)
  })
  assert.equal(outcomes.size, 8, [...outcomes].join(' '))
})

test('SimDisk.crash() with a kill keeps the page cache; what is under way may stop anywhere', async () => {
  const outcomes = await outcomesOf(300, async (disk) => {
    const file = await syncedFile(disk, filled('a', 3 * SECTOR))
    await disk.run(file.write(filled('b', SECTOR), 0))
    void file.write(filled('c', 2 * SECTOR), SECTOR)
    disk.crash('kill')
    return sectorsOf(disk)
  })
  assert.deepEqual([...outcomes].sort(), ['baa', 'bca', 'bcc'])
})

test('SimDisk.crash() loses or keeps what only survived a kill, when the power goes later', async () => {
  const outcomes = await outcomesOf(100, async (disk) => {
    const file = await syncedFile(disk, filled('a', SECTOR))
    await disk.run(file.write(filled('b', SECTOR), 0))
    disk.crash('kill')
    disk.crash('power')
    return sectorsOf(disk)
  })
  assert.deepEqual([...outcomes].sort(), ['a', 'b'])
})

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
    const isDurable = disk.isDurable(PATH, 0, 2 * SECTOR)
    disk.crash('power')
    return isDurable || seen === sectorsOf(disk) ? 'same' : `saw ${seen}, got ${sectorsOf(disk)}`
  })
  assert.ok(outcomes.has('saw bb, got aa'), [...outcomes].join('; '))
})

test('A failed sync is not mended by cutting the page in two', async () => {
  const outcomes = await outcomesOf(100, async (disk) => {
    const file = await fileWithFailedSync(disk)
    await disk.run(file.truncate(SECTOR + 10))
    await disk.run(file.sync())
    disk.crash('power')
    return sectorsOf(disk).slice(0, 1)
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

test('FileSystem.makeDirectory() is durable when it resolves, and not before', async () => {
  const outcomes = await outcomesOf(200, async (disk) => {
    const making = disk.fileSystem.makeDirectory('/new/store')
    if (disk.seed % 2 === 0) await disk.run(making)
    disk.crash('power')
    const names = [...disk.directories()].filter((path) => path.startsWith('/new'))
    assert.ok(disk.seed % 2 === 1 || names.length === 2)
    return names.join(' ')
  })
  assert.deepEqual([...outcomes].sort(), ['', '/new', '/new /new/store'])
})

test('SimDisk.isDurable() says yes exactly to what no power loss can change', async () => {
  for (let seed = 1; seed <= 60; seed++) {
    const disk = new SimDisk({ seed })
    disk.makeDirectory('/d')
    const file = await workload(disk, 12)
    void file.write(filled('z', 3 * SECTOR), disk.seed * 7)
    const before = disk.readFile(PATH)
    const sectors = Array.from({ length: Math.ceil(before.length / SECTOR) }, (_, sector) => ({
      from: sector * SECTOR,
      to: Math.min(before.length, (sector + 1) * SECTOR),
      isDurable: disk.isDurable(
        PATH,
        sector * SECTOR,
        Math.min(before.length, (sector + 1) * SECTOR),
      ),
      wasLost: false,
    }))
    for (let chance = 0; chance < 60; chance++) {
      const copy = disk.fork(seed * 1000 + chance)
      copy.crash('power')
      const after = copy.contents().get(PATH) ?? new Uint8Array(0)
      for (const sector of sectors) {
        const isSame =
          Buffer.compare(
            after.subarray(sector.from, sector.to),
            before.subarray(sector.from, sector.to),
          ) === 0
        if (!isSame) sector.wasLost = true
      }
    }
    for (const { from, isDurable, wasLost } of sectors) {
      assert.equal(wasLost, !isDurable, `seed ${seed}, byte ${from}\n${disk.describe()}`)
    }
  }
})

test('SimDisk replays exactly: same seed, same calls, same trace, same bytes', async () => {
  const play = async (seed: number): Promise<string> => {
    const disk = new SimDisk({ seed, capacityBytes: 6 * PAGE })
    disk.makeDirectory('/d')
    for (const kind of ['kill', 'power', 'power'] as const) {
      await workload(disk, 25).catch(() => undefined)
      disk.crash(kind)
    }
    const contents = [...disk.contents()].map(
      ([path, bytes]) => [path, Buffer.from(bytes).toString('base64')] as const,
    )
    return JSON.stringify([disk.faults.trace, contents, disk.clock.now()])
  }
  const first = await play(7)
  assert.equal(await play(7), first)
  assert.notEqual(await play(8), first)
})

test('SimDisk.fork() is the same disk, and changes by itself', async () => {
  const disk = new SimDisk({ seed: 1 })
  disk.makeDirectory('/d')
  const file = await syncedFile(disk, filled('a', 2 * SECTOR))
  await disk.run(file.write(filled('b', SECTOR), 0))
  disk.crash('kill')
  const copy = disk.fork(2)
  assert.deepEqual(copy.contents(), disk.contents())
  assert.equal(copy.usedBytes, disk.usedBytes)
  assert.equal(copy.isDurable(PATH, 0, SECTOR), false)
  const other = await copy.run(copy.fileSystem.open(PATH, 'write'))
  await copy.run(other.write(filled('c', SECTOR), 0))
  assert.equal(sectorsOf(disk), 'ba')
  assert.equal(sectorsOf(copy), 'ca')
})

test('SimDisk.flipBit() damages what is durable', () => {
  const disk = new SimDisk({ seed: 1 })
  disk.writeFile(PATH, filled('a', SECTOR))
  disk.flipBit(PATH, 100, 3)
  disk.crash('power')
  const expected = filled('a', SECTOR)
  expected[100] = 0x61 ^ 8
  assert.deepEqual(disk.readFile(PATH), expected)
})

/** All outcomes of a scenario, on disks with the seeds from 1 on. */
async function outcomesOf(
  seeds: number,
  scenario: (disk: SimDisk) => Promise<string>,
  options: Omit<SimDiskOptions, 'seed'> = {},
): Promise<Set<string>> {
  const outcomes = new Set<string>()
  for (let seed = 1; seed <= seeds; seed++) {
    const disk = new SimDisk({ seed, ...options })
    disk.makeDirectory('/d')
    outcomes.add(await scenario(disk))
  }
  return outcomes
}

/** A file whose bytes, size and name are durable, open for writing. */
async function syncedFile(disk: SimDisk, content: Uint8Array): Promise<StoreFile> {
  const file = await disk.run(disk.fileSystem.open(PATH, 'create'))
  if (content.length > 0) await disk.run(file.write(content, 0))
  await disk.run(file.sync())
  await disk.run(disk.fileSystem.syncDirectory('/d'))
  return file
}

/** Two durable sectors 'a' of one page, written over with 'b', whose sync failed. */
async function fileWithFailedSync(disk: SimDisk): Promise<StoreFile> {
  const file = await syncedFile(disk, filled('a', 2 * SECTOR))
  await disk.run(file.write(filled('b', 2 * SECTOR), 0))
  disk.faults.failOperation(1, { code: 'EIO' })
  await assert.rejects(disk.run(file.sync()), { code: 'EIO' })
  return file
}

/** Random writes, commits, cuts and syncs, some of which fail, on one file. */
async function workload(disk: SimDisk, steps: number): Promise<StoreFile> {
  const file = await disk.run(disk.fileSystem.open(PATH, 'open-or-create'))
  await disk.run(disk.fileSystem.syncDirectory('/d'))
  for (let step = 1; step <= steps; step++) {
    const noise = (disk.seed * 7919 + step * 104729) % 1009
    const letter = String.fromCharCode(97 + (step % 26))
    const bytes = filled(letter, 1 + ((noise * 13) % 3000))
    const position = (noise * 31) % 9000
    if (noise % 11 === 0) disk.faults.failOperation(1, { code: 'EIO' })
    const calls: readonly (() => Promise<unknown>)[] = [
      () => file.write(bytes, position),
      () => commit(file, [bytes], position),
      () => file.sync(),
      () => file.truncate(position),
    ]
    const call = calls[noise % calls.length]
    assert(call !== undefined)
    await disk.run(call()).catch(rethrowUnlessInjected)
  }
  return file
}

function rethrowUnlessInjected(error: unknown): void {
  if (!['EIO', 'ENOSPC'].includes((error as { code: string }).code)) throw error
}

function filled(letter: string, length: number): Uint8Array {
  return new Uint8Array(length).fill(letter.charCodeAt(0))
}

/** One letter a sector: the one it is filled with, 0 for zeros, ? for anything else. */
function sectorsOf(disk: SimDisk, path = PATH): string {
  const bytes = disk.readFile(path)
  let word = ''
  for (let at = 0; at < bytes.length; at += SECTOR) {
    const sector = bytes.subarray(at, at + SECTOR)
    const first = sector[0] ?? 0
    const isFilled = sector.every((byte) => byte === first)
    word += isFilled ? (first === 0 ? '0' : String.fromCharCode(first)) : '?'
  }
  return word
}

function namesIn(disk: SimDisk): string {
  return [...disk.contents().keys()].map((path) => path.slice('/d/'.length)).join(' ')
}
