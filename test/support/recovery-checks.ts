/**
 * What every recovery must hold to, whatever it found: a refusal touches nothing; what was settled
 * is not settled again; and a crash anywhere on the way leads to the same store.
 */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { LogErrorCode, LogErrorOf } from '../../codec/errors.ts'
import { METADATA_FILE } from '../../engine/file-names.ts'
import { LogStore } from '../../engine/log-store.ts'
import type { RecoveryLabel, RecoveryReport } from '../../engine/metrics.ts'
import { resolveStoreOptions, type StoreOptions } from '../../engine/options.ts'
import { assertUntouched, pictureOf } from './corrupt.ts'
import { rejection } from './expect-error.ts'
import { SimDisk, type CrashKind } from './sim-disk.ts'
import { SimCrash } from './sim-scheduler.ts'
import { viewOf, type LogView } from './store-view.ts'
import { copyOf, TestStore, type TestStoreOptions } from './test-store.ts'

/** Options that keep stores small, and simulated disks fast. */
export const SMALL: TestStoreOptions = {
  segmentSizeBytes: 64 * 1024,
  reserveBytes: 4096,
}
const SIM_DIR = '/store'

/** Opens a damaged store, which must be refused; nothing in its directory may have been touched. */
export async function requireRefused<C extends LogErrorCode>(
  t: TestContext,
  dir: string,
  code: C,
): Promise<LogErrorOf<C>> {
  const before = pictureOf(dir)
  const error = await rejection(TestStore.open(t, { ...SMALL, dir }), code)
  assertUntouched(dir, before)
  return error
}

/** What opening a store led to. */
export interface Recovered {
  readonly store: TestStore
  readonly view: readonly LogView[]
  readonly report: RecoveryReport
  /** The labels of what was found, each once, in order. */
  readonly labels: readonly RecoveryLabel[]
}

/**
 * Opens a damaged store, which must come to life, and holds its recovery to what all must hold to.
 * The directory is then as the recovery left it, with the store open.
 */
export async function requireRecovered(t: TestContext, dir: string): Promise<Recovered> {
  const damaged = await copyOf(t, dir)
  const store = await TestStore.open(t, { ...SMALL, dir })
  const view = await viewOf(store.store)
  const report = store.store.recovery
  const labels = [...new Set(report.findings.map(({ label }) => label))].sort()
  await requireSettled(t, store, view)
  await requireSameAfterCrashes(damaged, view)
  return { store, view, report, labels }
}

/** A second recovery, after a kill, finds the same store, drops nothing and repairs nothing. */
async function requireSettled(
  t: TestContext,
  store: TestStore,
  view: readonly LogView[],
): Promise<void> {
  const left = await store.killed(t)
  const before = segmentsIn(left)
  const again = await TestStore.open(t, { ...SMALL, dir: left })
  const { droppedBytes, droppedFrames, metadataRebuilt } = again.store.recovery
  assert.deepEqual({ droppedBytes, droppedFrames, metadataRebuilt }, NOTHING, 'it was settled')
  assert.deepEqual(await viewOf(again.store), view)
  assert.deepEqual(segmentsIn(left), before, 'a second recovery changes no segment')
}

const NOTHING = { droppedBytes: 0, droppedFrames: 0, metadataRebuilt: false }

/** The bytes of all segments up to the last one that is not zero: zeros may come and go. */
function segmentsIn(dir: string): Map<string, string> {
  const names = fs.readdirSync(dir).filter((name) => name.endsWith('.segment'))
  return new Map(
    names.map((name) => {
      const bytes = fs.readFileSync(join(dir, name)).toString('latin1')
      return [name, bytes.replace(/\0+$/, '')]
    }),
  )
}

/**
 * Crashes the recovery at every second of its operations, on a simulated disk, and recovers from
 * that: at the odd ones or at the even ones, as the store has it.
 */
async function requireSameAfterCrashes(dir: string, view: readonly LogView[]): Promise<void> {
  const disk = diskOf(dir)
  const whole = disk.fork(1)
  assert.deepEqual(await openAndView(whole), view, 'the simulated disk agrees')
  const operations = await countOperations(disk)
  const first = 1 + (view.reduce((sum, { tail }) => sum + tail, 0) % 2)
  for (let k = first; k <= operations; k += 2) {
    const kind: CrashKind = k % 3 === 0 ? 'kill' : 'power'
    const crashed = disk.fork(k)
    crashed.crashAtOperation(k, kind)
    // With another seed an open may take fewer operations, as reads may be short: then it is over.
    const isOver = await openOn(crashed).then(() => true, isCrash)
    if (isOver) crashed.crash(kind)
    const seen = await openAndView(crashed)
    assert.deepEqual(seen, view, `after a crash (${kind}) at operation ${k} of the recovery`)
  }
}

function isCrash(error: unknown): false {
  if (error instanceof SimCrash) return false
  throw error
}

/** A simulated disk with a store's files on it, durable. */
export function diskOf(dir: string, seed = 1): SimDisk {
  const disk = new SimDisk({ seed })
  disk.makeDirectory(SIM_DIR)
  for (const name of fs.readdirSync(dir)) {
    disk.writeFile(join(SIM_DIR, name), new Uint8Array(fs.readFileSync(join(dir, name))))
  }
  return disk
}

/** How many operations the open of a store takes, up to the moment when it is there. */
async function countOperations(disk: SimDisk): Promise<number> {
  const counted = disk.fork(1)
  const before = counted.faults.operationCount
  await openOn(counted)
  return counted.faults.operationCount - before
}

function openOn(disk: SimDisk, options: Partial<StoreOptions> = {}): Promise<LogStore> {
  const resolved = resolveStoreOptions({ dir: SIM_DIR, ...limitsOf(SMALL), ...options })
  const { fileSystem, clock } = disk
  return disk.run(LogStore.open(resolved, { fileSystem, clock }))
}

function limitsOf({ segmentSizeBytes, reserveBytes }: TestStoreOptions): Partial<StoreOptions> {
  return { segmentSizeBytes, reserveBytes }
}

async function openAndView(disk: SimDisk): Promise<readonly LogView[]> {
  return disk.run(viewOf(await openOn(disk)))
}

/** Where the metadata of a store is. */
export function metadataPath(dir: string): string {
  return join(dir, METADATA_FILE)
}
