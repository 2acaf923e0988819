/**
 * What a payload byte costs in bytes written to the device, and in bytes kept on the disk.
 *
 * The device's own counter (/proc/diskstats) is what tells: it has the journal of the file system in
 * it, but also what everybody else writes, so that is measured before and after, and taken off. The
 * counter of the process (/proc/self/io) is of no use: where the page cache holds a file in large
 * folios, it counts a whole one, up to a MiB, for every write into it.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { deviceBytesWritten } from '../support/machine.ts'
import type { Arena } from './arena.ts'
import { allocatedBytes, keptBytes } from './files.ts'

const SIZE = 100
const CALLERS = 256
const RECORDS = 1_000_000
const IDLE_MS = 1000

export interface ByteCosts {
  readonly payloadBytes: number
  /** Written to the device meanwhile; NaN where it has no counter. */
  readonly deviceBytes: number
  /** What everybody else wrote in that time, by what they wrote before and after. */
  readonly othersBytes: number
  /** Blocks of all files, after a clean close. */
  readonly allocatedBytes: number
  /** Bytes of all files up to the last one that is not zero: without room for what comes next. */
  readonly keptBytes: number
}

export async function byteCosts(arena: Arena): Promise<ByteCosts> {
  const dir = arena.freshDir('bytes')
  const side = await arena.enter('bytes', { kind: 'bifrost' }, dir)
  const records = arena.records(RECORDS)
  const rateBefore = await idleRate(dir)
  const startedAt = performance.now()
  const before = deviceBytesWritten(dir)
  await side.ask('fill', { records, size: SIZE, callers: CALLERS })
  const deviceBytes = deviceBytesWritten(dir) - before
  const ms = performance.now() - startedAt
  const rateAfter = await idleRate(dir)
  await side.stop()
  const costs = {
    payloadBytes: records * SIZE,
    deviceBytes,
    othersBytes: ms * ((rateBefore + rateAfter) / 2),
    allocatedBytes: allocatedBytes(dir),
    keptBytes: keptBytes(dir),
  }
  await arena.clear()
  return costs
}

/** Bytes a millisecond that are written while we write nothing. */
async function idleRate(dir: string): Promise<number> {
  const before = deviceBytesWritten(dir)
  await sleep(IDLE_MS)
  return (deviceBytesWritten(dir) - before) / IDLE_MS
}
