/** Order, time and death on a simulated machine. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SimCrash } from '../support/sim-scheduler.ts'
import { SimDisk } from '../support/sim-disk.ts'
import { commit } from './file-system-contract.ts'

const BYTES = new Uint8Array(1000).fill(1)

test('SimDisk.run() settles as the promise does', async () => {
  const disk = new SimDisk({ seed: 1 })
  assert.equal(await disk.run(Promise.resolve(5)), 5)
  await assert.rejects(disk.run(Promise.reject(new Error('no'))), /^Error: no$/)
})

test('SimDisk.run() ends operations in an order that the seed decides', async () => {
  const orderOf = async (seed: number): Promise<string> => {
    const disk = new SimDisk({ seed })
    const order: number[] = []
    const opens = [1, 2, 3, 4].map(async (name) => {
      await disk.fileSystem.open(`/${name}`, 'create')
      order.push(name)
    })
    await disk.run(Promise.all(opens))
    return order.join('')
  }
  const orders = new Set<string>()
  for (let seed = 1; seed <= 300; seed++) orders.add(await orderOf(seed))
  assert.equal(orders.size, 24)
  assert.equal(await orderOf(9), await orderOf(9))
})

test('SimDisk.run() lets a commit be read before it is durable', async () => {
  const seen = new Set<string>()
  for (let seed = 1; seed <= 50; seed++) {
    const disk = new SimDisk({ seed })
    const file = await disk.run(disk.fileSystem.open('/file', 'create'))
    await disk.run(disk.fileSystem.syncDirectory('/'))
    const committed = commit(file, [BYTES], 0)
    for (let round = 0; round < 3; round++) {
      const size = await disk.run(file.size())
      const isUnderWay = disk.pending.length > 0
      if (isUnderWay)
        seen.add(size === 0 ? 'nothing' : `read, ${String(disk.isDurable('/file', 0, size))}`)
    }
    await disk.run(committed)
    assert.ok(disk.isDurable('/file', 0, 1000))
  }
  assert.deepEqual([...seen].sort(), ['nothing', 'read, false'])
})

test('SimDisk.run() rejects with the seed and the trace if nothing can go on', async () => {
  const disk = new SimDisk({ seed: 42 })
  await disk.run(disk.fileSystem.open('/file', 'create'))
  const never = new Promise<void>(() => undefined)
  await assert.rejects(disk.run(never), (error: Error) => {
    assert.match(error.message, /Nothing can go on/)
    assert.match(error.message, /seed 42/)
    assert.match(error.message, /#1 open \/file = ok/)
    return true
  })
})

test('SimDisk.run() names the operations that are held when it can not go on', async () => {
  const disk = new SimDisk({ seed: 1 })
  disk.faults.hold(({ kind }) => kind === 'list')
  await assert.rejects(disk.run(disk.fileSystem.list('/')), /#1 list \/ \(held\)/)
})

test('SimDisk.run() waits for immediates and ticks of what it runs', async () => {
  const disk = new SimDisk({ seed: 1 })
  const chain = async (): Promise<string> => {
    await new Promise((resolve) => setImmediate(resolve))
    await new Promise<void>((resolve) => {
      process.nextTick(resolve)
    })
    const file = await disk.fileSystem.open('/file', 'create')
    await new Promise((resolve) => setImmediate(resolve))
    await file.close()
    return 'done'
  }
  assert.equal(await disk.run(chain()), 'done')
})

test('SimDisk.clock fires timers in their order, without real time', async () => {
  const disk = new SimDisk({ seed: 1 })
  const start = disk.clock.now()
  const fired: string[] = []
  await disk.run(
    new Promise<void>((resolve) => {
      disk.clock.setTimer(() => {
        fired.push(`late ${Math.floor((disk.clock.now() - start) / 3_600_000)}`)
        resolve()
      }, 3_600_000)
      disk.clock.setTimer(() => fired.push('early'), 1000)
      disk.clock.clearTimer(disk.clock.setTimer(() => fired.push('never'), 500))
    }),
  )
  assert.deepEqual(fired, ['early', 'late 1'])
  assert.equal(disk.timerCount, 0)
})

test('SimDisk.clock does not fire a timer early while operations go on', async () => {
  const disk = new SimDisk({ seed: 3 })
  const start = disk.clock.now()
  let firedAfterMs = -1
  disk.clock.setTimer(() => {
    firedAfterMs = disk.clock.now() - start
  }, 20)
  while (firedAfterMs < 0) await disk.run(disk.fileSystem.list('/'))
  assert.ok(firedAfterMs >= 20 && firedAfterMs < 30, String(firedAfterMs))
})

test('SimDisk.jumpClock() moves the clock back and leaves timers alone', async () => {
  const disk = new SimDisk({ seed: 1 })
  const start = disk.clock.now()
  const timer = new Promise<void>((resolve) => {
    disk.clock.setTimer(resolve, 1000)
  })
  disk.jumpClock(-60_000)
  assert.equal(disk.clock.now(), start - 60_000)
  await disk.run(timer)
  assert.equal(disk.clock.now(), start - 59_000)
})

test('SimDisk.crashAtOperation() ends the run before the operation is told', async () => {
  for (const kind of ['kill', 'power'] as const) {
    for (let k = 1; k <= 4; k++) {
      const disk = new SimDisk({ seed: k })
      disk.crashAtOperation(k, kind)
      const told: string[] = []
      await assert
        .rejects(disk.run(threeCalls(disk, told)), SimCrash)
        .then(() => assert.ok(k <= 3))
        .catch((error: unknown) => {
          if (k <= 3) throw error
        })
      assert.equal(told.length, k - 1)
    }
  }
})

test('SimDisk.crash() cuts the old process off: nothing settles, fires or changes', async () => {
  const disk = new SimDisk({ seed: 5 })
  const { fileSystem, clock } = disk
  const file = await disk.run(fileSystem.open('/file', 'create'))
  await disk.run(fileSystem.syncDirectory('/'))
  const heard: string[] = []
  const listen = (name: string, promise: Promise<unknown>): void => {
    promise.then(
      () => heard.push(name),
      () => heard.push(name),
    )
  }
  listen('pending', file.sync())
  clock.setTimer(() => heard.push('timer'), 10)
  disk.crash('power')
  const before = disk.contents()
  listen('write', file.write(BYTES, 0))
  listen('open', fileSystem.open('/other', 'create'))
  listen('list', fileSystem.list('/'))
  file.commit([BYTES], 0, () => heard.push('commit'))
  clock.setTimer(() => heard.push('late timer'), 10)
  assert.throws(() => file.commitSync([BYTES], 0), SimCrash)
  for (let round = 0; round < 20; round++) await disk.run(disk.fileSystem.list('/'))
  await assert.rejects(disk.run(new Promise(() => undefined)), /Nothing can go on/)
  assert.deepEqual(heard, [])
  assert.deepEqual(disk.contents(), before)
})

test('SimDisk.crash() makes commitSync() of a dead process throw, so that nothing goes on', async () => {
  const disk = new SimDisk({ seed: 5 })
  const file = await disk.run(disk.fileSystem.open('/file', 'create'))
  disk.crash('kill')
  assert.throws(() => file.commitSync([BYTES], 0), SimCrash)
  assert.equal(disk.readFile('/file').length, 0)
})

test('SimDisk.crashAtOperation() tears a commitSync(), which throws', async () => {
  const sizes = new Set<number>()
  for (let seed = 1; seed <= 60; seed++) {
    const disk = new SimDisk({ seed })
    const file = await disk.run(disk.fileSystem.open('/file', 'create'))
    await disk.run(disk.fileSystem.syncDirectory('/'))
    disk.crashAtOperation(1, 'kill')
    assert.throws(() => file.commitSync([BYTES], 0), SimCrash)
    sizes.add(disk.readFile('/file').length)
  }
  assert.deepEqual([...sizes].sort(), [0, 1000, 512])
})

test('SimDisk.crash() closes files and lets go of locks', async () => {
  for (const kind of ['kill', 'power'] as const) {
    const disk = new SimDisk({ seed: 1 })
    disk.writeFile('/lock', new Uint8Array(0))
    const file = await disk.run(disk.fileSystem.open('/lock', 'write'))
    assert.equal(await disk.run(disk.fileSystem.tryLock(file)), true)
    assert.deepEqual(disk.openFiles, ['/lock'])
    disk.crash(kind)
    assert.deepEqual(disk.openFiles, [])
    const next = await disk.run(disk.fileSystem.open('/lock', 'write'))
    assert.equal(await disk.run(disk.fileSystem.tryLock(next)), true)
  }
})

test('SimDisk.kill() ends one process and leaves the others', async () => {
  const disk = new SimDisk({ seed: 1 })
  const writer = disk.spawn()
  const file = await disk.run(writer.fileSystem.open('/file', 'create'))
  assert.equal(await disk.run(writer.fileSystem.tryLock(file)), true)
  const reader = await disk.run(disk.fileSystem.open('/file', 'read'))
  assert.equal(await disk.run(disk.fileSystem.tryLock(reader)), false)
  disk.kill(writer)
  assert.equal(writer.isAlive, false)
  assert.equal(await disk.run(disk.fileSystem.tryLock(reader)), true)
  assert.deepEqual(disk.openFiles, ['/file'])
})

test('SimDisk fails the run when a file is misused', async () => {
  const disk = new SimDisk({ seed: 1 })
  const open = (path: string) => disk.run(disk.fileSystem.open(path, 'create'))
  const closedInUse = await open('/a')
  disk.faults.hold(({ kind }) => kind === 'read')
  void closedInUse.read(new Uint8Array(10), 0, 10, 0)
  await assert.rejects(disk.run(closedInUse.close()), /closed while something is under way/)
  const closed = await open('/b')
  await disk.run(closed.close())
  await assert.rejects(disk.run(closed.size()), /used after it was closed/)
  const twice = await open('/c')
  void commit(twice, [BYTES], 0)
  assert.throws(() => twice.commitSync([BYTES], 0), /a second commit/)
})

async function threeCalls(disk: SimDisk, told: string[]): Promise<void> {
  const file = await disk.fileSystem.open('/file', 'create')
  told.push('open')
  await file.write(BYTES, 0)
  told.push('write')
  await file.close()
  told.push('close')
}
