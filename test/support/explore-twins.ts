/**
 * Two copies of one store that were written apart, and then mixed: a group of the one stands at its
 * very place in the other. All of it checks but for the chain; it must not pass for the other's.
 */
import assert from 'node:assert/strict'
import { LogError } from '../../codec/errors.ts'
import { FRAME_HEADER_BYTES, GROUP_HEADER_BYTES } from '../../codec/format.ts'
import { segmentPath } from '../../engine/file-names.ts'
import type { Bifrost } from '../../loglets/bifrost.ts'
import { Violation } from './explore-oracle.ts'
import { DEFAULT_SETTINGS } from './explore-plan.ts'
import type { RunOptions, RunResult } from './explore-kinds.ts'
import { optionsOf, SimStore, STORE_DIR } from './explore-store.ts'
import { Random } from './random.ts'
import { SimDisk } from './sim-disk.ts'

const OPTIONS = optionsOf(DEFAULT_SETTINGS, () => undefined)
const LOG = 'log'

/** Where a group lies in segment 1. */
interface Range {
  readonly start: number
  readonly end: number
}

export async function runTwins(
  seed: number,
  { layer = (same) => same }: RunOptions,
): Promise<RunResult> {
  const random = new Random(seed)
  const disk = new SimDisk({ seed })
  disk.makeDirectory(STORE_DIR)
  const open = (copy: SimDisk): Promise<SimStore> =>
    copy.run(SimStore.open(copy.process, layer(copy.fileSystem), OPTIONS))
  const records = random.between(3, 8)
  const bytes = random.between(20, 700)
  await write(disk, await open(disk), [`common ${'-'.repeat(bytes)}`])
  const [mine, theirs] = ['mine', 'them'].map((word) => payloads(word, records, bytes))
  assert.ok(mine !== undefined && theirs !== undefined)
  const twin = disk.fork(seed + 1)
  const groups = await write(disk, await open(disk), mine)
  await write(twin, await open(twin), theirs)
  // The last group of the mixture is one's own: otherwise it is wholly the other's history.
  transplant(twin, disk, groups[random.below(groups.length - 1)] as Range)
  await requireNoMixture(disk, open, mine)
  return { cycles: 3, operations: disk.faults.operationCount, wasFaulty: false }
}

function payloads(word: string, count: number, bytes: number): string[] {
  return Array.from({ length: count }, (_, i) => `${word} ${i} ${'-'.repeat(bytes)}`)
}

/** Appends each payload in a group of its own, and closes. Returns where the groups lie. */
async function write(
  disk: SimDisk,
  { store }: SimStore,
  texts: readonly string[],
): Promise<Range[]> {
  await disk.run(store.createLog(LOG))
  const groups: Range[] = []
  for (const text of texts) {
    await disk.run(store.append(LOG, text))
    groups.push(groupOf(disk, text))
  }
  await disk.run(store.close())
  return groups
}

/** The group that holds nothing but this text. */
function groupOf(disk: SimDisk, text: string): Range {
  const bytes = Buffer.from(disk.readFile(segmentPath(STORE_DIR, 1)))
  const at = bytes.indexOf(text)
  assert.notEqual(at, -1)
  const longHeader = text.length > 255 ? 3 : 2
  const envelope = 11 + (text.length < 32 ? 1 : longHeader)
  const start = at - envelope - FRAME_HEADER_BYTES - GROUP_HEADER_BYTES
  return { start, end: at + text.length }
}

function transplant(from: SimDisk, to: SimDisk, { start, end }: Range): void {
  const path = segmentPath(STORE_DIR, 1)
  const bytes = to.readFile(path)
  bytes.set(from.readFile(path).subarray(start, end), start)
  to.writeFile(path, bytes)
}

async function requireNoMixture(
  disk: SimDisk,
  open: (copy: SimDisk) => Promise<SimStore>,
  mine: readonly string[],
): Promise<void> {
  let session: SimStore
  try {
    session = await open(disk)
  } catch (error) {
    if (LogError.is(error, 'CORRUPT')) return
    throw error
  }
  const seen = await disk.run(allOf(session.store))
  const wrong = seen.find((payload, i) => i > 0 && payload !== mine[i - 1])
  if (wrong !== undefined || seen.length !== mine.length + 1) {
    throw new Violation(`a mixture of two stores was opened, with ${String(wrong).slice(0, 12)}`)
  }
}

async function allOf(store: Bifrost): Promise<unknown[]> {
  const { lsn } = await store.findTail(LOG)
  const seen: unknown[] = []
  for await (const record of store.createReader(LOG, { to: lsn - 1 })) {
    if (record.kind === 'data') seen.push(record.payload)
  }
  return seen
}
