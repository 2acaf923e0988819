/** Injected faults, and a disk that is full: on the simulated disk and, where they can be, on real files. */
import assert from 'node:assert/strict'
import { constants } from 'node:os'
import { test, type TestContext } from 'node:test'
import type { FileSystem, StoreFile } from '../../engine/file-system.ts'
import { NodeFileSystem } from '../../engine/node-file-system.ts'
import { FaultFileSystem } from '../support/fault-file-system.ts'
import type { FaultPlan } from '../support/faults.ts'
import { fsError } from '../support/fs-error.ts'
import { SimDisk } from '../support/sim-disk.ts'
import { temporaryDirectory } from '../support/temp-dir.ts'
import { commit } from './file-system-contract.ts'

const PAGE = 4096

interface Ground {
  readonly fileSystem: FileSystem
  readonly faults: FaultPlan
  readonly directory: string
  run<T>(promise: Promise<T>): Promise<T>
}

const GROUNDS: Record<string, (t: TestContext) => Promise<Ground>> = {
  SimDisk: () => {
    const disk = new SimDisk({ seed: 11 })
    disk.makeDirectory('/d')
    const { fileSystem, faults } = disk
    return Promise.resolve({
      fileSystem,
      faults,
      directory: '/d',
      run: (promise) => disk.run(promise),
    })
  },
  FaultFileSystem: async (t) => {
    const fileSystem = new FaultFileSystem(new NodeFileSystem())
    const directory = await temporaryDirectory(t)
    return { fileSystem, faults: fileSystem.faults, directory, run: (promise) => promise }
  },
}

for (const [name, makeGround] of Object.entries(GROUNDS)) {
  const onGround = (title: string, body: (ground: Ground) => Promise<void>): void => {
    test(`${name}: ${title}`, async (t) => {
      const ground = await makeGround(t)
      await ground.run(body(ground))
    })
  }

  for (const code of ['EIO', 'ENOSPC', 'EMFILE', 'EDQUOT', 'EFBIG', 'EACCES']) {
    const { errno } = fsError(code, 'write', '')
    onGround(`FaultPlan.fail() makes every kind of operation fail with ${code}`, async (ground) => {
      for (const [kind, call] of Object.entries(await callsOf(ground))) {
        const injection = ground.faults.fail((operation) => operation.kind === kind, { code })
        await assert.rejects(call(), { errno }, kind)
        assert.equal(injection.hits, 1, kind)
      }
    })
  }

  onGround('FaultPlan.failOperation() fails the k-th, once', async ({ faults, ...ground }) => {
    const file = await ground.fileSystem.open(`${ground.directory}/file`, 'create')
    faults.failOperation(2, { code: 'EIO' })
    assert.equal(await file.size(), 0)
    await assert.rejects(file.size(), { code: 'EIO' })
    assert.equal(await file.size(), 0)
    await file.close()
  })

  onGround('FaultPlan.failOperation() fails all from the k-th on if sticky', async (ground) => {
    const file = await ground.fileSystem.open(`${ground.directory}/file`, 'create')
    const injection = ground.faults.failOperation(2, { code: 'EIO' }, true)
    assert.equal(await file.size(), 0)
    await assert.rejects(file.size(), { code: 'EIO' })
    await assert.rejects(file.sync(), { code: 'EIO' })
    injection.remove()
    assert.equal(await file.size(), 0)
    await file.close()
  })

  onGround('a short write stores a part and says so', async ({ faults, ...ground }) => {
    const file = await ground.fileSystem.open(`${ground.directory}/file`, 'create')
    for (const write of writesOf(file)) {
      await file.truncate(0)
      faults.failOperation(1, { short: true })
      const written = await write(new Uint8Array(1000).fill(1))
      assert.ok(written > 0 && written < 1000)
      assert.equal(await file.size(), written)
    }
    await file.close()
  })

  onGround('a short write with a code makes the next write fail with it', async (ground) => {
    const file = await ground.fileSystem.open(`${ground.directory}/file`, 'create')
    for (const write of writesOf(file)) {
      ground.faults.failOperation(1, { short: true, code: 'ENOSPC' })
      const written = await write(new Uint8Array(1000).fill(1))
      assert.ok(written > 0 && written < 1000)
      await assert.rejects(write(new Uint8Array(10)), { code: 'ENOSPC' })
      assert.equal(await write(new Uint8Array(10)), 10)
    }
    await file.close()
  })

  onGround('Injection.remove() takes back what was to follow a short write', async (ground) => {
    const file = await ground.fileSystem.open(`${ground.directory}/file`, 'create')
    const injection = ground.faults.failOperation(1, { short: true, code: 'ENOSPC' })
    await file.write(new Uint8Array(1000), 0)
    injection.remove()
    assert.equal(await file.write(new Uint8Array(10), 0), 10)
    await file.close()
  })

  onGround('a fault after the effect reports an error for what was done', async (ground) => {
    const { fileSystem, directory, faults } = ground
    const file = await fileSystem.open(`${directory}/file`, 'create')
    faults.failOperation(1, { code: 'EIO', afterEffect: true })
    await assert.rejects(file.write(new Uint8Array(100), 0), { code: 'EIO' })
    assert.equal(await file.size(), 100)
    faults.failOperation(1, { code: 'EIO', afterEffect: true })
    await assert.rejects(fileSystem.rename(`${directory}/file`, `${directory}/b`), { code: 'EIO' })
    assert.deepEqual(await fileSystem.list(directory), ['b'])
    await file.close()
  })

  onGround('a close that fails has closed the file', async ({ faults, ...ground }) => {
    const path = `${ground.directory}/lock`
    const file = await ground.fileSystem.open(path, 'create')
    assert.equal(await ground.fileSystem.tryLock(file), true)
    faults.failOperation(1, { code: 'EIO' })
    await assert.rejects(file.close(), { code: 'EIO' })
    const next = await ground.fileSystem.open(path, 'write')
    assert.equal(await ground.fileSystem.tryLock(next), true)
    await next.close()
  })

  onGround('FaultPlan.hold() keeps operations back until it is released', async (ground) => {
    const file = await ground.fileSystem.open(`${ground.directory}/file`, 'create')
    const hold = ground.faults.hold(({ kind }) => kind === 'commit')
    const order: string[] = []
    const committed = commit(file, [new Uint8Array(10)], 0).then(() => order.push('commit'))
    for (let round = 0; round < 10; round++) await file.sync()
    order.push('syncs')
    hold.release()
    await committed
    assert.deepEqual(order, ['syncs', 'commit'])
    await file.close()
  })

  onGround('FaultPlan counts and traces all calls with their outcomes', async (ground) => {
    const { fileSystem, directory, faults } = ground
    const file = await fileSystem.open(`${directory}/file`, 'create')
    await commit(file, [new Uint8Array(10), new Uint8Array(5)], 7)
    await assert.rejects(fileSystem.unlink(`${directory}/none`))
    await file.close()
    assert.equal(faults.operationCount, 4)
    const path = `${directory}/file`
    const trace = faults.trace.map(({ index, kind, path, position, length, outcome }) => {
      return [index, kind, path, position, length, outcome]
    })
    assert.deepEqual(trace, [
      [1, 'open', path, undefined, undefined, 'ok'],
      [2, 'commit', path, 7, 15, '15'],
      [3, 'unlink', `${directory}/none`, undefined, undefined, 'ENOENT'],
      [4, 'close', path, undefined, undefined, 'ok'],
    ])
    assert.equal(faults.count('commit'), 1)
    assert.equal(faults.count('open', '/file'), 1)
    assert.equal(faults.count('open', '/other'), 0)
  })
}

test('FaultFileSystem.delay() starts a call later', async (t) => {
  const fileSystem = new FaultFileSystem(new NodeFileSystem())
  const file = await fileSystem.open(`${await temporaryDirectory(t)}/file`, 'create')
  fileSystem.delay(({ kind }) => kind === 'sync', 20)
  const order: string[] = []
  const sync = file.sync().then(() => order.push('sync'))
  await file.size().then(() => order.push('size'))
  await sync
  assert.deepEqual(order, ['size', 'sync'])
  await file.close()
})

test('An injected EDQUOT looks as it does in Node.js, which has no name for it', () => {
  const error = fsError('EDQUOT', 'write', '/file')
  assert.equal(error.errno, -constants.errno.EDQUOT)
  assert.equal(error.code, `Unknown system error -${constants.errno.EDQUOT}`)
})

test('SimDisk lets a change that fails with EIO happen or not', async () => {
  const outcomes = new Set<string>()
  for (let seed = 1; seed <= 40; seed++) {
    const disk = new SimDisk({ seed })
    disk.writeFile('/d/a', new Uint8Array(10))
    const { fileSystem } = disk
    const file = await disk.run(fileSystem.open('/d/a', 'write'))
    for (const call of [() => file.truncate(0), () => fileSystem.unlink('/d/a')]) {
      disk.faults.failOperation(1, { code: 'EIO' })
      await assert.rejects(disk.run(call()), { code: 'EIO' })
    }
    const names = (await disk.run(fileSystem.list('/d'))).join(' ')
    outcomes.add(`${await disk.run(file.size())} ${names}`)
  }
  assert.deepEqual([...outcomes].sort(), ['0 ', '0 a', '10 ', '10 a'])
})

test('SimDisk that is full writes what has room, then ENOSPC', async () => {
  const { disk, file } = await fullDisk()
  assert.equal(disk.usedBytes, 4 * PAGE)
  await assert.rejects(disk.run(file.write(new Uint8Array(10), 4 * PAGE)), { code: 'ENOSPC' })
  await assert.rejects(disk.run(commit(file, [new Uint8Array(10)], 4 * PAGE)), { code: 'ENOSPC' })
  assert.throws(() => file.commitSync([new Uint8Array(10)], 4 * PAGE), { code: 'ENOSPC' })
  assert.equal(await disk.run(file.size()), 4 * PAGE)
})

test('SimDisk that is full takes writes over what is there, names, and empty files', async () => {
  const { disk, file } = await fullDisk()
  assert.equal(await disk.run(file.write(new Uint8Array(3 * PAGE), PAGE)), 3 * PAGE)
  assert.equal(await disk.run(commit(file, [new Uint8Array(PAGE)], 0)), PAGE)
  const empty = await disk.run(disk.fileSystem.open('/d/empty', 'create'))
  await disk.run(disk.fileSystem.rename('/d/empty', '/d/renamed'))
  await assert.rejects(disk.run(empty.write(new Uint8Array(1), 0)), { code: 'ENOSPC' })
})

test('SimDisk gives space back by truncate, and by unlink once no handle is open', async () => {
  const { disk, file } = await fullDisk()
  await disk.run(file.truncate(PAGE + 1))
  assert.equal(disk.usedBytes, 2 * PAGE)
  const other = await disk.run(disk.fileSystem.open('/d/other', 'create'))
  assert.equal(await disk.run(other.write(new Uint8Array(3 * PAGE), 0)), 2 * PAGE)
  await disk.run(disk.fileSystem.unlink('/d/file'))
  assert.equal(disk.usedBytes, 4 * PAGE)
  await disk.run(file.close())
  assert.equal(disk.usedBytes, 2 * PAGE)
  assert.equal(await disk.run(other.write(new Uint8Array(3 * PAGE), 2 * PAGE)), 2 * PAGE)
})

test('SimDisk gives space back when a rename replaces a file', async () => {
  const { disk, file } = await fullDisk()
  await disk.run(file.close())
  await disk.run(disk.fileSystem.open('/d/empty', 'create'))
  await disk.run(disk.fileSystem.rename('/d/empty', '/d/file'))
  assert.equal(disk.usedBytes, 0)
})

test('SimDisk counts space anew after a crash', async () => {
  for (let seed = 1; seed <= 30; seed++) {
    const { disk } = await fullDisk(seed)
    await disk.run(disk.fileSystem.unlink('/d/file'))
    disk.crash('power')
    const isBack = disk.contents().has('/d/file')
    assert.equal(disk.usedBytes, isBack ? 4 * PAGE : 0)
  }
})

test('SimDisk writes over what an undone unlink brought back without taking space', async () => {
  for (let seed = 1; seed <= 30; seed++) {
    const { disk, file } = await fullDisk(seed)
    await disk.run(file.close())
    await disk.run(disk.fileSystem.unlink('/d/file'))
    disk.crash('power')
    if (!disk.contents().has('/d/file')) continue
    const again = await disk.run(disk.fileSystem.open('/d/file', 'write'))
    assert.equal(await disk.run(again.write(new Uint8Array(10).fill(2), 0)), 10)
    assert.ok(disk.isDurable('/d/file', 512, 4 * PAGE))
  }
})

test('SimDisk writes over what an undone cut brought back without taking space', async () => {
  let undone = 0
  for (let seed = 1; seed <= 60; seed++) {
    const { disk, file } = await fullDisk(seed)
    await disk.run(file.truncate(0))
    await disk.run(file.truncate(5 * PAGE))
    disk.crash('power')
    if (disk.readFile('/d/file').length !== 4 * PAGE) continue
    undone += 1
    assert.equal(disk.usedBytes, 4 * PAGE)
    const again = await disk.run(disk.fileSystem.open('/d/file', 'write'))
    assert.equal(await disk.run(again.write(new Uint8Array(10).fill(2), 0)), 10)
    assert.ok(disk.isDurable('/d/file', 512, 4 * PAGE))
  }
  assert.ok(undone > 0)
})

test('SimDisk with a limit on files writes what it allows, then EFBIG', async () => {
  const disk = new SimDisk({ seed: 1, maxFileBytes: 1000 })
  const file = await disk.run(disk.fileSystem.open('/file', 'create'))
  assert.equal(await disk.run(commit(file, [new Uint8Array(1500)], 0)), 1000)
  await assert.rejects(disk.run(file.write(new Uint8Array(1), 1000)), { code: 'EFBIG' })
})

async function fullDisk(seed = 5): Promise<{ disk: SimDisk; file: StoreFile }> {
  const disk = new SimDisk({ seed, capacityBytes: 4 * PAGE })
  disk.makeDirectory('/d')
  const file = await disk.run(disk.fileSystem.open('/d/file', 'create'))
  await disk.run(disk.fileSystem.syncDirectory('/d'))
  assert.equal(await disk.run(file.write(new Uint8Array(5 * PAGE).fill(1), 0)), 4 * PAGE)
  await disk.run(file.sync())
  return { disk, file }
}

/** The two asynchronous ways to write to the start of a file. */
function writesOf(file: StoreFile): ((bytes: Uint8Array) => Promise<number>)[] {
  return [(bytes) => file.write(bytes, 0), (bytes) => commit(file, [bytes], 0)]
}

/** One call of each kind, on files that are there. */
async function callsOf({
  fileSystem,
  directory,
}: Ground): Promise<Record<string, () => Promise<unknown>>> {
  const file = await fileSystem.open(`${directory}/file`, 'create')
  const closing = await fileSystem.open(`${directory}/closing`, 'create')
  const bytes = new Uint8Array(100).fill(1)
  return {
    makeDirectory: () => fileSystem.makeDirectory(`${directory}/sub`),
    list: () => fileSystem.list(directory),
    open: () => fileSystem.open(`${directory}/file`, 'read'),
    read: () => file.read(bytes, 0, 10, 0),
    write: () => file.write(bytes, 0),
    commit: () => commit(file, [bytes], 0),
    commitSync: () => Promise.resolve().then(() => file.commitSync([bytes], 0)),
    sync: () => file.sync(),
    truncate: () => file.truncate(0),
    size: () => file.size(),
    close: () => closing.close(),
    fileSize: () => fileSystem.fileSize(`${directory}/file`),
    tryLock: () => fileSystem.tryLock(file),
    realPath: () => fileSystem.realPath(directory),
    syncDirectory: () => fileSystem.syncDirectory(directory),
    unlink: () => fileSystem.unlink(`${directory}/closing`),
    rename: () => fileSystem.rename(`${directory}/file`, `${directory}/renamed`),
  }
}
