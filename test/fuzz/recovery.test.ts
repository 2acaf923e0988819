/**
 * Recovery, the audit behind verify, and readers over mutated stores: nothing is thrown but a
 * LogError, nothing runs on without end or allocates by a length that it found, no reader gets a
 * record that was never written, and a store whose metadata vouches for it loses nothing in silence.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LogError } from '../../codec/errors.ts'
import { auditStore } from '../../engine/store-audit.ts'
import { lookAround, type DamagedLog } from '../support/explore-damage.ts'
import { Violation } from '../support/explore-oracle.ts'
import { DEFAULT_SETTINGS } from '../support/explore-plan.ts'
import { optionsOf, SimStore, STORE_DIR } from '../support/explore-store.ts'
import { numberOf } from '../support/explore-suite.ts'
import { Random } from '../support/random.ts'
import type { SimDisk } from '../support/sim-disk.ts'
import { watchAllocations } from './fuzz-allocations.ts'
import { forge } from './fuzz-forgery.ts'
import { mutate, type Files } from './fuzz-mutations.ts'
import { fuzzedStores, segmentAt, type FuzzedStore } from './fuzz-stores.ts'

const SECONDS = numberOf('FUZZ_SECONDS', 10, 30) / 2
const FIXED = 150
/** Far more than any open, audit or look takes. */
const MAX_OPERATIONS = 30_000
const MAX_ALLOCATION = 16 * 1024 * 1024
const OPTIONS = optionsOf(DEFAULT_SETTINGS, () => undefined)
/** How an open may be refused. There is no I/O error here, so it is never OPEN_FAILED. */
const REFUSALS: ReadonlySet<string> = new Set(['CORRUPT', 'UNSUPPORTED_VERSION'])

type Change = (files: Files, random: Random) => readonly string[]

test('Mutated stores: recovery, audit and readers', async (t) => {
  const stores = await fuzzedStores()
  const change: Change = (files, random) => {
    const times = random.pick([1, 1, 1, 2, 4])
    return Array.from({ length: times }, () => mutate(files, random)).flat()
  }
  const from = Date.now() % 2 ** 30
  t.diagnostic(`fresh seeds from ${from}`)
  await fuzz({ from: 1, count: FIXED }, stores, change, false)
  const runs = await fuzz({ from, seconds: SECONDS }, stores, change, false)
  t.diagnostic(`${runs} fresh mutations`)
})

test('Groups that check and hold anything: recovery, audit and readers', async (t) => {
  const stores = await fuzzedStores()
  const change: Change = (files, random) => {
    const path = forge(files, random)
    return path === undefined ? [] : [path]
  }
  const from = Date.now() % 2 ** 30
  t.diagnostic(`fresh seeds from ${from}`)
  await fuzz({ from: 1, count: FIXED }, stores, change, true)
  const runs = await fuzz({ from, seconds: SECONDS }, stores, change, true)
  t.diagnostic(`${runs} fresh forgeries`)
})

interface Range {
  readonly from: number
  readonly count?: number
  readonly seconds?: number
}

async function fuzz(
  { from, count = Infinity, seconds = Infinity }: Range,
  stores: readonly FuzzedStore[],
  change: Change,
  isForged: boolean,
): Promise<number> {
  const until = performance.now() + seconds * 1000
  let seed = from
  const tell = (): void => console.error(`uncaught, with seed ${seed}`)
  process.on('uncaughtExceptionMonitor', tell)
  const allocations = watchAllocations()
  try {
    for (; seed < from + count && performance.now() < until; seed++) {
      await fuzzOnce(seed, stores, change, isForged)
      assert.ok(allocations.largest <= MAX_ALLOCATION, `${allocations.largest} bytes at once`)
    }
  } catch (error) {
    throw new Error(`seed ${seed}: ${String(error)}`, { cause: error })
  } finally {
    allocations.stop()
    process.off('uncaughtExceptionMonitor', tell)
  }
  return seed - from
}

async function fuzzOnce(
  seed: number,
  stores: readonly FuzzedStore[],
  change: Change,
  isForged: boolean,
): Promise<void> {
  const random = new Random(seed)
  const store = random.pick(stores)
  const disk = store.base.disk.fork(seed)
  const changed = changeFiles(disk, (files) => change(files, random))
  disk.faults.failOperation(MAX_OPERATIONS, { code: 'EIO' }, true)
  await audit(disk)
  const opened = await open(disk)
  if (opened === undefined) return
  if (isForged) await disk.run(readOn(opened))
  else judge(store, changed, await disk.run(lookAround(opened)))
  await use(disk, opened)
}

function changeFiles(
  disk: SimDisk,
  change: (files: Files) => readonly string[],
): readonly string[] {
  const files = new Map([...disk.contents()].filter(([path]) => !path.endsWith('lock')))
  const changed = [...new Set(change(files))]
  for (const path of changed) disk.writeFile(path, files.get(path) as Uint8Array)
  return changed
}

async function audit(disk: SimDisk): Promise<void> {
  try {
    await disk.run(auditStore(disk.fileSystem, STORE_DIR))
  } catch (error) {
    if (!LogError.is(error, 'UNSUPPORTED_VERSION')) throw error
  }
}

async function open(disk: SimDisk): Promise<SimStore | undefined> {
  try {
    return await disk.run(SimStore.open(disk.process, disk.fileSystem, OPTIONS))
  } catch (error) {
    if (error instanceof LogError && REFUSALS.has(error.code)) return undefined
    throw error
  }
}

/** Reads each log up to what a reader is refused. */
async function readOn({ store }: SimStore): Promise<void> {
  for (const logId of store.logIds()) {
    const { lsn } = await store.findTail(logId)
    const reader = store.createReader(logId, { to: Math.max(1, lsn - 1), follow: false })
    try {
      while ((await reader.readNext()) !== undefined);
    } catch (error) {
      if (!(error instanceof LogError)) throw error
    }
  }
}

/** No record is wrong; and what the metadata vouches for is there, or its absence is an error. */
function judge(
  { base, isClosed }: FuzzedStore,
  changed: readonly string[],
  seen: readonly DamagedLog[],
): void {
  base.oracle.requireExtent(new Map(), seen)
  const isVouchedFor = isClosed && changed.every((path) => segmentAt(path) !== undefined)
  if (isVouchedFor) base.oracle.requireLegal(seen)
}

/** Whatever it opened with, it goes on working, or says why not. */
async function use(disk: SimDisk, { store }: SimStore): Promise<void> {
  const logIds = [...store.logIds(), 'another']
  const outcomes = await disk.run(
    Promise.allSettled([
      store.createLog('another'),
      ...logIds.flatMap((logId) => [
        store.append(logId, 'again'),
        store.trim(logId, 1),
        store.seal(logId),
        store.deleteLog(logId),
      ]),
    ]),
  )
  await disk.run(store.close())
  for (const outcome of outcomes) {
    if (outcome.status === 'fulfilled' || outcome.reason instanceof LogError) continue
    throw new Violation(`something else than a LogError: ${String(outcome.reason)}`)
  }
}
