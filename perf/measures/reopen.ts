/**
 * How long opening takes, by how many records there are and by how the store was left. Each open is
 * in a new process, as it is after a crash or a deployment, and what it read is in the page cache.
 */
import type { Side } from '../worker/side.ts'
import type { Arena } from './arena.ts'
import { tailSegmentBytes } from './files.ts'

const SIZE = 100
const FILL_CALLERS = 64
const FILL_BATCH = 100
/** Appended before each close or kill, so that the store is one that was in use. */
const LAST_RECORDS = 256

export type Ending = 'close' | 'kill'

export interface Reopening {
  readonly records: number
  readonly ending: Ending
  /** In ms, in each round. */
  readonly times: readonly number[]
  /** What is in the last segment, which is what an open after a kill has to read. */
  readonly tailBytes: number
}

/** Fills a store with each number of records, and reopens all of them in turn after each ending. */
export async function reopenings(arena: Arena, sizes: readonly number[]): Promise<Reopening[]> {
  const stores: { readonly records: number; readonly dir: string }[] = []
  for (const records of sizes) stores.push({ records, dir: await fillStore(arena, records) })
  const all: Reopening[] = []
  for (const ending of ['close', 'kill'] as const) {
    const times = await arena.takeTurns(stores, ({ dir }) => reopen(arena, dir, ending))
    stores.forEach(({ records, dir }, index) => {
      const tailBytes = tailSegmentBytes(dir)
      all.push({ records, ending, times: times[index] ?? [], tailBytes })
    })
  }
  await arena.clear()
  return all
}

async function fillStore(arena: Arena, records: number): Promise<string> {
  const dir = arena.freshDir(`reopen-${records}`)
  const side = await arena.enter('fill', { kind: 'bifrost' }, dir)
  arena.report.progress(`filling ${records} records`)
  await side.ask('fill', { records, size: SIZE, callers: FILL_CALLERS, batch: FILL_BATCH })
  await side.stop()
  return dir
}

/** Opens a store, uses it and leaves it as told; resolves with how long the next open takes. */
async function reopen(arena: Arena, dir: string, ending: Ending): Promise<number> {
  const before = await arena.enter('use', { kind: 'bifrost' }, dir)
  await before.ask('fill', { records: LAST_RECORDS, size: SIZE, callers: LAST_RECORDS })
  await leave(before, ending)
  const after = arena.start('reopen', { kind: 'bifrost' }, dir)
  const ms = await after.ask('open')
  await after.stop()
  return ms
}

async function leave(side: Side, ending: Ending): Promise<void> {
  if (ending === 'close') await side.stop()
  else await side.kill()
}
