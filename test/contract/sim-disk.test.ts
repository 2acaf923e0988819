/**
 * What the simulated disk may do to bytes and sizes when the power goes does happen with some
 * seed, and what a disk never does happens with none.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StoreFile } from '../../engine/file-system.ts'
import { SimDisk } from '../support/sim-disk.ts'
import { PAGE_BYTES as PAGE, SECTOR_BYTES as SECTOR } from '../support/sim-medium.ts'
import { PATH, filled, joined, outcomesOf, sectorsOf, syncedFile } from '../support/sim-outcomes.ts'
import { commit } from './file-system-contract.ts'

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
    assert.ok(bytes.length >= SECTOR && bytes.length <= 5 * SECTOR)
    sizes.add(bytes.length === SECTOR ? 'old' : bytes.length === 5 * SECTOR ? 'new' : 'between')
    if (bytes.length % SECTOR !== 0) sizes.add('inside a sector')
    return sectorsOf(disk).slice(1, 2)
  })
  assert.deepEqual([...sizes].sort(), ['between', 'inside a sector', 'new', 'old'])
  assert.deepEqual([...gaps].sort(), ['', '0', '?', 'b'])
})

test('SimDisk.crash() leaves nothing beyond the end of a file', async () => {
  const outcomes = await outcomesOf(100, async (disk) => {
    const file = await syncedFile(disk, filled('a', SECTOR))
    await disk.run(file.write(filled('b', 3 * SECTOR), SECTOR))
    disk.crash('power')
    const { length } = disk.readFile(PATH)
    const again = await disk.run(disk.fileSystem.open(PATH, 'write'))
    await disk.run(again.truncate(5 * SECTOR))
    const grown = disk.readFile(PATH).subarray(length)
    return grown.every((byte) => byte === 0) ? 'zeros' : 'bytes'
  })
  assert.deepEqual(outcomes, new Set(['zeros']))
})

test('SimDisk.crash() may show a deleted file in one that grew, most of all in its place', async () => {
  const counts = new Map<string, number>()
  await outcomesOf(400, async (disk) => {
    disk.writeFile('/d/deleted', joined('wxyz'))
    await disk.run(disk.fileSystem.unlink('/d/deleted'))
    await disk.run(disk.fileSystem.syncDirectory('/d'))
    const file = await syncedFile(disk, new Uint8Array(0))
    await disk.run(file.truncate(4 * SECTOR))
    disk.crash('power')
    const second = sectorsOf(disk).slice(1, 2)
    counts.set(second, (counts.get(second) ?? 0) + 1)
    return second
  })
  assert.deepEqual([...counts.keys()].sort(), ['', '0', '?', 'w', 'x', 'y', 'z'])
  assert.ok((counts.get('x') ?? 0) > 2 * (counts.get('w') ?? 0))
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
  await copy.run(other.sync())
  assert.equal(sectorsOf(disk), 'ba')
  assert.equal(sectorsOf(copy), 'ca')
  const outcomes = new Set<string>()
  for (let seed = 1; seed <= 30; seed++) {
    const lost = disk.fork(seed)
    lost.crash('power')
    outcomes.add(sectorsOf(lost))
  }
  assert.deepEqual([...outcomes].sort(), ['aa', 'ba'])
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
