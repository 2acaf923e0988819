/** What explorations have found, each as the shortest story that shows it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LogError } from '../../codec/errors.ts'
import { segmentPath } from '../../engine/file-names.ts'
import { DEFAULT_SETTINGS } from '../support/explore-plan.ts'
import { optionsOf, SimStore, STORE_DIR } from '../support/explore-store.ts'
import { rejection } from '../support/expect-error.ts'
import { SimDisk } from '../support/sim-disk.ts'

const OPTIONS = optionsOf(DEFAULT_SETTINGS, () => undefined)
const LARGE = 'x'.repeat(40 * 1024)

async function openOn(disk: SimDisk, readOnly = false): Promise<SimStore> {
  const process = readOnly ? disk.spawn() : disk.process
  return disk.run(SimStore.open(process, process.fileSystem, { ...OPTIONS, readOnly }))
}

function diskWithRoot(seed: number): SimDisk {
  const disk = new SimDisk({ seed })
  disk.makeDirectory('/data')
  return disk
}

/** Appends until the first segment can be trimmed away. */
async function fillSegments(disk: SimDisk, { store }: SimStore): Promise<void> {
  for (let i = 0; i < 5; i++) await disk.run(store.append('log', LARGE))
}

async function trimAll(disk: SimDisk, { store }: SimStore): Promise<void> {
  const { lsn } = await disk.run(store.findTail('log'))
  await disk.run(store.trim('log', lsn - 1))
  const isThere = (): boolean => disk.contents().has('/data/store/0000000001.segment')
  for (let i = 0; isThere() && i < 1000; i++) await disk.run(pause(disk, 1))
  assert.ok(!isThere(), 'segment 1 is given back')
}

function pause(disk: SimDisk, ms: number): Promise<void> {
  return new Promise((resolve) => {
    disk.clock.setTimer(resolve, ms)
  })
}

test('A read-only open takes segments for dead that were trimmed since the newest began', async () => {
  const disk = diskWithRoot(1)
  const writer = await openOn(disk)
  await disk.run(writer.store.createLog('log'))
  await fillSegments(disk, writer)
  await trimAll(disk, writer)
  const follower = await openOn(disk, true)
  assert.deepEqual((await disk.run(follower.look()))[0]?.records, [])
})

test('A follower whose segment was trimmed away goes on in a later one', async () => {
  const disk = diskWithRoot(2)
  const writer = await openOn(disk)
  await disk.run(writer.store.createLog('log'))
  await disk.run(writer.store.append('log', 'small'))
  await disk.run(pause(disk, 2000))
  const follower = await openOn(disk, true)
  const reader = follower.store.createReader('log')
  assert.equal((await disk.run(reader.readNext()))?.kind, 'data')
  // All of it happens between two polls of the follower.
  await fillSegments(disk, writer)
  await trimAll(disk, writer)
  await disk.run(writer.store.append('log', 'last'))
  await disk.run(pause(disk, 3000))
  const gap = await disk.run(reader.readNext())
  assert.deepEqual(gap, { kind: 'trim-gap', lsn: 2, until: 6 })
  const last = await disk.run(reader.readNext())
  assert.equal(last?.kind === 'data' && last.payload, 'last')
})

test('A reader of a store that failed is closed with it', async () => {
  const disk = diskWithRoot(3)
  const { store } = await openOn(disk)
  await disk.run(store.createLog('log'))
  for (let i = 0; i < 3; i++) await disk.run(store.append('log', i))
  const reader = store.createReader('log')
  disk.faults.fail(({ kind }) => kind === 'commit', { code: 'EIO' })
  await rejection(disk.run(store.append('log', 3)), 'STORE_FAILED')
  assert.equal((await disk.run(reader.readNext()))?.kind, 'data', 'what is durable is read')
  await disk.run(store.close())
  await disk.run(
    (async () => {
      for (;;) if ((await reader.readNext()) === undefined) break
    })().catch((error: unknown) => {
      assert.ok(LogError.is(error, 'CLOSED'), String(error))
    }),
  )
  assert.deepEqual(disk.openFiles, [])
})

test('A file that nothing vouches for may begin with what another segment left there', async () => {
  const disk = diskWithRoot(4)
  const writer = await openOn(disk)
  await disk.run(writer.store.createLog('log'))
  await fillSegments(disk, writer)
  await disk.run(pause(disk, 2000))
  disk.crash('power')
  const segments = [...disk.contents().keys()].filter((path) => path.endsWith('.segment'))
  const next = segmentPath(STORE_DIR, segments.length + 1)
  disk.writeFile(next, disk.readFile(segmentPath(STORE_DIR, 1)).subarray(0, 512))
  const again = await openOn(disk)
  const labels = again.store.recovery.findings.map(({ label }) => label)
  assert.ok(labels.includes('R5'), labels.join(' '))
  assert.equal((await disk.run(again.look()))[0]?.records.length, 5)
  assert.ok(
    disk.readFile(next).every((byte) => byte === 0),
    'it is emptied',
  )
})
