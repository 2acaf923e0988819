/** A store that another opener writes, followed without a lock and without changing a byte. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { test, type TestContext } from 'node:test'
import { Bifrost, LogError } from '../../index.ts'
import { flipBit, putBytes } from '../support/corrupt.ts'
import { rejection } from '../support/expect-error.ts'
import { temporaryDirectory } from '../support/temp-dir.ts'
import { killedStore, segmentAt } from '../support/stores.ts'

const SEGMENT = 64 * 1024

async function openWriter(t: TestContext, dir?: string): Promise<{ writer: Bifrost; dir: string }> {
  const path = dir ?? (await temporaryDirectory(t))
  const writer = await Bifrost.open({ dir: path, logs: ['log'], segmentSizeBytes: SEGMENT })
  t.after(() => writer.close())
  return { writer, dir: path }
}

async function openFollower(t: TestContext, dir: string): Promise<Bifrost> {
  const follower = await Bifrost.open({ dir, readOnly: true })
  t.after(() => follower.close())
  return follower
}

/** Waits for something that comes within the second that a follower may be behind. */
async function until(what: () => boolean | Promise<boolean>): Promise<void> {
  for (let i = 0; !(await what()); i++) {
    assert.ok(i < 200, 'it comes in time')
    await sleep(50)
  }
}

async function tailOf(bifrost: Bifrost): Promise<number> {
  return (await bifrost.findTail('log')).lsn
}

test('Bifrost.open() read-only shows what another opener made durable, and what comes', async (t) => {
  const { writer, dir } = await openWriter(t)
  for (let i = 1; i <= 10; i++) await writer.append('log', i)
  const follower = await openFollower(t, dir)
  assert.ok((await tailOf(follower)) >= 10, 'one group behind at most')
  const seen: unknown[] = []
  const reading = (async () => {
    for await (const record of follower.createReader('log', { to: 500 })) {
      if (record.kind === 'data') seen.push(record.payload)
    }
  })()
  for (let i = 11; i <= 500; i++) await writer.append('log', i)
  await reading
  assert.deepEqual(
    seen,
    Array.from({ length: 500 }, (_, i) => i + 1),
  )
})

test('ReadOnlyStore shows the last group within a second of idleness', async (t) => {
  const { writer, dir } = await openWriter(t)
  await writer.append('log', 1)
  await writer.append('log', 2)
  const follower = await openFollower(t, dir)
  await until(async () => (await tailOf(follower)) === 3)
})

test('ReadOnlyStore follows rolls, trims, seals, creates and deletes', async (t) => {
  const { writer, dir } = await openWriter(t)
  const follower = await openFollower(t, dir)
  for (let i = 0; i < 200; i++) await writer.append('log', 'x'.repeat(1000))
  await writer.trim('log', 150)
  await writer.createLog('other')
  await writer.append('other', 'here')
  await writer.seal('log', 'moved')
  await until(async () => (await follower.findTail('log')).sealed)
  const tail = await follower.findTail('log')
  assert.deepEqual(tail, { sealed: true, reason: 'moved', lsn: 201, last: 200 })
  assert.equal(await follower.getTrimPoint('log'), 150)
  const records = follower.createReader('log', { follow: false })
  assert.deepEqual(await records.readNext(), { kind: 'trim-gap', lsn: 1, until: 150 })
  assert.equal((await records.readNext())?.lsn, 151)
  await until(() => follower.logIds().includes('other'))
  await writer.deleteLog('other')
  await until(() => !follower.logIds().includes('other'))
  await rejection(follower.findTail('other'), 'UNKNOWN_LOG')
})

test('ReadOnlyStore gives a trim gap for a segment that vanished beneath it', async (t) => {
  const { writer, dir } = await openWriter(t)
  for (let i = 0; i < 200; i++) await writer.append('log', 'x'.repeat(1000))
  const follower = await openFollower(t, dir)
  await writer.trim('log', 199)
  await until(() => !fs.existsSync(segmentAt(dir, 1)))
  const reader = follower.createReader('log', { follow: false })
  const first = await reader.readNext()
  assert.ok(first?.kind === 'trim-gap' || first?.kind === 'data')
  await until(async () => (await follower.getTrimPoint('log')) === 199)
})

test('ReadOnlyStore refuses changes with READ_ONLY, and takes logs that are there', async (t) => {
  const { writer, dir } = await openWriter(t)
  await writer.append('log', 1)
  const follower = await openFollower(t, dir)
  await until(() => follower.logIds().includes('log'))
  await rejection(follower.append('log', 1), 'READ_ONLY')
  await rejection(follower.appendBatch('log', [1]), 'READ_ONLY')
  await rejection(follower.appendMany([{ logId: 'log', payload: 1 }]), 'READ_ONLY')
  await rejection(follower.trim('log', 1), 'READ_ONLY')
  await rejection(follower.seal('log'), 'READ_ONLY')
  await rejection(follower.deleteLog('log'), 'READ_ONLY')
  await rejection(follower.createLog('new'), 'READ_ONLY')
  await follower.createLog('log')
  assert.equal(follower.status, 'open')
})

/** Names, sizes and times of all files. */
function picture(dir: string): unknown {
  return fs.readdirSync(dir).map((name) => {
    const { size, mtimeMs, ctimeMs } = fs.statSync(join(dir, name))
    return [name, size, mtimeMs, ctimeMs]
  })
}

test('Read-only open of a torn store changes not one byte or mtime, and hides the torn part', async (t) => {
  const dir = await killedStore(t)
  const bytes = fs.readFileSync(segmentAt(dir, 1))
  let end = bytes.length
  while (bytes[end - 1] === 0) end--
  putBytes(segmentAt(dir, 1), Math.ceil(end / 8) * 8, new Uint8Array(300).fill(0x55))
  const before = picture(dir)
  const follower = await Bifrost.open({ dir, readOnly: true })
  const tail = await tailOf(follower)
  assert.ok(tail >= 10 && tail <= 11)
  await follower.close()
  assert.deepEqual(picture(dir), before)
})

test('Read-only open of a damaged store is CORRUPT once looking again has not helped', async (t) => {
  const dir = await killedStore(t)
  const bytes = fs.readFileSync(segmentAt(dir, 1))
  flipBit(segmentAt(dir, 1), bytes.indexOf(Buffer.from('BRGP'), 400) + 60)
  const before = picture(dir)
  const { label, file } = await rejection(Bifrost.open({ dir, readOnly: true }), 'CORRUPT')
  assert.equal(label, 'R4')
  assert.equal(file, '0000000001.segment')
  assert.deepEqual(picture(dir), before)
})

test('Read-only open is OPEN_FAILED where there is no store, and makes nothing', async (t) => {
  const dir = await temporaryDirectory(t)
  await rejection(Bifrost.open({ dir, readOnly: true }), 'OPEN_FAILED')
  await rejection(Bifrost.open({ dir: join(dir, 'none'), readOnly: true }), 'OPEN_FAILED')
  assert.deepEqual(fs.readdirSync(dir), [])
})

test('ReadOnlyStore.shutdown() ends parked readers with CLOSED', async (t) => {
  const { writer, dir } = await openWriter(t)
  await writer.append('log', 1)
  const follower = await openFollower(t, dir)
  const parked = rejection(follower.readNextSingle('log', 1), 'CLOSED')
  await follower.close()
  await parked
  await rejection(follower.findTail('log'), 'CLOSED')
})

test('ReadOnlyStore opens beside a writer and beside another follower', async (t) => {
  const { writer, dir } = await openWriter(t)
  await writer.append('log', 1)
  const followers = await Promise.all([openFollower(t, dir), openFollower(t, dir)])
  for (const follower of followers) {
    await until(async () => (await tailOf(follower)) === 2)
    const record = await follower.readNextSingle('log', 0)
    assert.equal(record.kind === 'data' && record.payload, 1)
  }
  await assert.rejects(Bifrost.open({ dir }), (error) => LogError.is(error, 'LOCKED'))
})
