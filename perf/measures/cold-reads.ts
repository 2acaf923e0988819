/** What readers of cold data cost those who commit. */
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { merged, type Percentiles } from '../support/latencies.ts'
import { ratioOf, type Spread } from '../support/statistics.ts'
import { COLD_LOGS, type ColdReadResult } from '../worker/cold-reads.ts'
import type { Arena } from './arena.ts'

const CALLERS = 16
const SIZE = 100
/** 1 GB: far more than indexes and caches of the store hold. */
const RECORDS = 1_000_000
const COLD_SIZE = 1000
const FILLERS = 256

export interface ColdReads {
  readonly commits: Percentiles
  readonly commitsAlone: Percentiles
  readonly appends: Percentiles
  readonly appendsAlone: Percentiles
  /** The 99th percentile with readers, as a multiple of the one without, round by round. */
  readonly commitRatio: Spread
  readonly appendRatio: Spread
  readonly recordsRead: number
  readonly bytesRead: number
}

export async function coldReads(arena: Arena): Promise<ColdReads> {
  const dir = arena.freshDir('cold-reads')
  await fillColdLogs(arena, dir)
  const side = await arena.enter('cold reads', { kind: 'bifrost', logs: COLD_LOGS + 1 }, dir)
  const [alone = [], beside = []] = await arena.takeTurns([0, COLD_LOGS], async (readers) => {
    dropPageCache(dir)
    return side.ask('coldReads', { readers, callers: CALLERS, size: SIZE, ms: arena.roundMs })
  })
  await arena.clear()
  return compare(alone, beside)
}

async function fillColdLogs(arena: Arena, dir: string): Promise<void> {
  const side = await arena.enter('fill', { kind: 'bifrost', logs: COLD_LOGS }, dir)
  arena.report.progress('filling cold logs')
  await side.ask('fill', { records: arena.records(RECORDS), size: COLD_SIZE, callers: FILLERS })
  await side.stop()
}

/**
 * Has the kernel forget what it holds of the files. Node.js has no posix_fadvise, but coreutils' dd
 * has: with a count of 0 it means the whole file. Pages that are not yet on the disk stay.
 */
function dropPageCache(dir: string): void {
  for (const name of readdirSync(dir)) {
    const args = [`if=${join(dir, name)}`, 'iflag=nocache', 'count=0', 'status=none']
    const { status } = spawnSync('dd', args, { stdio: 'ignore' })
    if (status !== 0) throw new Error('dd could not drop the page cache of a file')
  }
}

function compare(alone: readonly ColdReadResult[], beside: readonly ColdReadResult[]): ColdReads {
  const all = (results: readonly ColdReadResult[], what: 'commits' | 'appends'): Percentiles =>
    merged(results.map((result) => result[what])).percentiles()
  const p99s = (results: readonly ColdReadResult[], what: 'commits' | 'appends'): number[] =>
    results.map((result) => merged([result[what]]).percentiles().p99)
  const total = (what: 'recordsRead' | 'bytesRead'): number =>
    beside.reduce((sum, result) => sum + result[what], 0)
  return {
    commits: all(beside, 'commits'),
    commitsAlone: all(alone, 'commits'),
    appends: all(beside, 'appends'),
    appendsAlone: all(alone, 'appends'),
    commitRatio: ratioOf(p99s(beside, 'commits'), p99s(alone, 'commits')),
    appendRatio: ratioOf(p99s(beside, 'appends'), p99s(alone, 'appends')),
    recordsRead: total('recordsRead'),
    bytesRead: total('bytesRead'),
  }
}
