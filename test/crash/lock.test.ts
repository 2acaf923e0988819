/** One store, one writer: two opens, two processes, and machines that can't lock. */
import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { Bifrost, LogError } from '../../index.ts'
import { systemClock } from '../../engine/clock.ts'
import { temporaryDirectory } from '../support/temp-dir.ts'
import { EngineStore } from './engine-store.ts'
import { Holder } from './holder.ts'

async function open(t: TestContext, dir: string, lockTimeoutMs?: number): Promise<Bifrost> {
  const bifrost = await Bifrost.open({ dir, logs: ['held'], lockTimeoutMs })
  t.after(() => bifrost.close())
  return bifrost
}

async function assertLocked(dir: string, sameProcess: boolean, timeoutMs?: number): Promise<void> {
  await assert.rejects(Bifrost.open({ dir, lockTimeoutMs: timeoutMs }), (error) => {
    assert.ok(LogError.is(error, 'LOCKED'), String(error))
    assert.equal(error.dir, dir)
    assert.equal(error.sameProcess, sameProcess)
    assert.match(error.message, sameProcess ? /this process/ : /another process/)
    return true
  })
}

test('Bifrost.open() is LOCKED while this process has the store open', async (t) => {
  const dir = await temporaryDirectory(t)
  const bifrost = await open(t, dir)
  await assertLocked(dir, true)
  assert.equal(await bifrost.append('held', 'still writable'), 1)
  await bifrost.close()
  const again = await open(t, dir)
  assert.equal(await again.append('held', 'open again'), 2)
})

test('Bifrost.open() is LOCKED under another name of the same directory', async (t) => {
  const dir = await temporaryDirectory(t)
  const other = join(await temporaryDirectory(t), 'link')
  symlinkSync(dir, other)
  await open(t, dir)
  await assertLocked(other, true)
})

test('Bifrost.open() lets one of two in that open at once', async (t) => {
  const dir = await temporaryDirectory(t)
  const opens = await Promise.allSettled([1, 2, 3, 4].map(() => open(t, dir)))
  const refused = opens.flatMap((o) => (o.status === 'rejected' ? [o.reason as unknown] : []))
  assert.equal(refused.length, 3)
  for (const reason of refused) assert.ok(LogError.is(reason, 'LOCKED'), String(reason))
})

test('Bifrost.open() is LOCKED while another process has the store open', async (t) => {
  const dir = await temporaryDirectory(t)
  const holder = Holder.start(t, dir)
  assert.equal(await holder.says(), 'open')
  await assertLocked(dir, false)
  await holder.end()
  const bifrost = await open(t, dir)
  assert.equal((await bifrost.findTail('held')).lsn, 2)
})

test('Bifrost.open() in another process is LOCKED while this one has the store', async (t) => {
  const dir = await temporaryDirectory(t)
  await open(t, dir)
  assert.match(await Holder.start(t, dir).says(), /^LOCKED .*another process/)
})

test('Bifrost.open() gets in as soon as kill -9 has ended the holder', async (t) => {
  const dir = await temporaryDirectory(t)
  const holder = Holder.start(t, dir)
  assert.equal(await holder.says(), 'open')
  await holder.kill()
  const bifrost = await open(t, dir)
  assert.equal(await bifrost.append('held', 'after the kill'), 2)
})

test('Bifrost.open() gets in after kill -9 though a child of the holder lives on', async (t) => {
  const dir = await temporaryDirectory(t)
  const holder = Holder.start(t, dir, { HOLDER_SPAWNS: 'yes' })
  const child = Number(await holder.says())
  t.after(() => process.kill(child, 'SIGKILL'))
  assert.equal(await holder.says(), 'open')
  await holder.kill()
  await open(t, dir)
})

test('Bifrost.open() is LOCKED, and does not hang, while the holder is stopped', async (t) => {
  const dir = await temporaryDirectory(t)
  const holder = Holder.start(t, dir)
  assert.equal(await holder.says(), 'open')
  holder.stop()
  await assertLocked(dir, false)
  await assertLocked(dir, false, 100)
  await holder.kill()
  await open(t, dir)
})

test('Bifrost.open() with lockTimeoutMs gets in when the holder lets go', async (t) => {
  const dir = await temporaryDirectory(t)
  const holder = Holder.start(t, dir)
  assert.equal(await holder.says(), 'open')
  const opening = open(t, dir, 60_000)
  await holder.end()
  assert.equal((await (await opening).findTail('held')).lsn, 2)
})

test('Bifrost.open() with lockTimeoutMs is LOCKED when the time has passed', async (t) => {
  const dir = await temporaryDirectory(t)
  await open(t, dir)
  const startedAt = performance.now()
  await assertLocked(dir, true, 150)
  assert.ok(performance.now() - startedAt >= 140, 'it has waited')
})

test('Bifrost.open() lets go of the lock when it fails', async (t) => {
  const dir = await temporaryDirectory(t)
  const bifrost = await open(t, dir)
  await bifrost.append('held', 'something to lose')
  await bifrost.close()
  const [segment] = readdirSync(dir).filter((name) => name.endsWith('.segment'))
  writeFileSync(join(dir, String(segment)), 'not a segment')
  for (let i = 0; i < 2; i++) {
    await assert.rejects(Bifrost.open({ dir }), (error) => LogError.is(error, 'CORRUPT'))
  }
})

test('Bifrost.open() never unlinks or replaces the lock file', async (t) => {
  const dir = await temporaryDirectory(t)
  const file = join(dir, 'lock')
  await (await open(t, dir)).close()
  const { ino } = statSync(file)
  for (let i = 0; i < 3; i++) await (await open(t, dir)).close()
  assert.equal(statSync(file).ino, ino)
})

test('LogStore.shutdown() keeps the lock while a write is stuck', async (t) => {
  const dir = await temporaryDirectory(t)
  const store = await EngineStore.open({ dir }, systemClock)
  await store.store.createLogs(['held'])
  await store.whenQuiet()
  const stuck = store.fileSystem.faults.hold(({ kind }) => kind === 'commit')
  const append = store.append('held', 'never heard of again')
  const outcome = append.catch((error: unknown) => error)
  await new Promise((resolve) => setImmediate(resolve))
  await assert.rejects(store.store.shutdown(20), (error) => LogError.is(error, 'STORE_FAILED'))
  assert.ok(LogError.is(await outcome, 'STORE_FAILED'))
  await assertLocked(dir, true)
  stuck.release()
  await open(t, dir, 60_000)
})

test('Bifrost.open() asks for the lock without ever waiting in the kernel', async (t) => {
  const dir = await temporaryDirectory(t)
  await open(t, dir)
  const holder = Holder.start(t, dir, { FS_EXT_MODE: 'noisy' })
  assert.equal(await holder.says(), 'flock exnb')
  assert.match(await holder.says(), /^LOCKED /)
})

for (const [mode, expected] of [
  ['missing', /^LOCK_UNAVAILABLE .*fs-ext.*npm rebuild fs-ext/],
  ['unbuilt', /^LOCK_UNAVAILABLE .*fs-ext.*npm rebuild fs-ext/],
  ['no-locks', /^LOCK_UNAVAILABLE .*file system could not lock/],
] as const) {
  test(`Bifrost.open() is LOCK_UNAVAILABLE, and makes no store, if fs-ext is ${mode}`, async (t) => {
    const dir = join(await temporaryDirectory(t), 'store')
    mkdirSync(dir)
    assert.match(await Holder.start(t, dir, { FS_EXT_MODE: mode }).says(), expected)
    assert.deepEqual(
      readdirSync(dir).filter((name) => name !== 'lock'),
      [],
    )
  })
}
