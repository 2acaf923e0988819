/** Reading back what is there: a log alone, one of a thousand that are interleaved, the peers'. */
import type { StoreKind } from '../stores/store.ts'
import type { ScanArguments, ScanResult } from '../worker/reads.ts'
import type { Side } from '../worker/side.ts'
import type { Arena, Contents } from './arena.ts'

export const READ_RECORDS = 1_000_000
const SIZE = 100
const FILLERS = 256
const INTERLEAVED_LOGS = 1000
/** So many of the interleaved logs are read, one after the other: enough to measure. */
const INTERLEAVED_READ = 50

export interface Scanner {
  readonly name: string
  readonly rates: readonly number[]
}

/** A way to read what a side has stored. */
interface Reading {
  readonly name: string
  readonly side: Side
  readonly args: ScanArguments
  readonly expected: number
}

/** The kinds of store, read back each in its fastest way, and Bifrost also record by record. */
export async function readBack(arena: Arena, kinds: readonly StoreKind[]): Promise<Scanner[]> {
  const readings: Reading[] = []
  for (const kind of kinds) {
    const side = await filled(arena, kind, { kind })
    const expected = arena.records(READ_RECORDS)
    if (kind === 'bifrost') {
      readings.push({ name: 'bifrost, chunks()', side, args: { by: 'chunks' }, expected })
      readings.push({ name: 'bifrost, for await', side, args: { by: 'records' }, expected })
    } else readings.push({ name: kind, side, args: {}, expected })
  }
  return readAll(arena, readings)
}

/** A log that is alone in its store, and some of a thousand: each by chunks and record by record. */
export async function readInterleaved(arena: Arena): Promise<Scanner[]> {
  const alone = await filled(arena, 'alone', { kind: 'bifrost' })
  const many = await filled(arena, 'interleaved', { kind: 'bifrost', logs: INTERLEAVED_LOGS })
  const records = arena.records(READ_RECORDS)
  const step = INTERLEAVED_LOGS / INTERLEAVED_READ
  const logs = Array.from({ length: INTERLEAVED_READ }, (_, index) => index * step)
  const readings = (['chunks', 'records'] as const).flatMap((by): Reading[] => [
    { name: `alone, ${by}`, side: alone, args: { by }, expected: records },
    {
      name: `one of 1,000, ${by}`,
      side: many,
      args: { by, logs },
      expected: (records / INTERLEAVED_LOGS) * INTERLEAVED_READ,
    },
  ])
  return readAll(arena, readings)
}

/** A log that is alone, written and read by this build and by another one. */
export async function scansOf(
  arena: Arena,
  by: 'chunks' | 'records',
  library: string,
): Promise<readonly [here: Scanner, there: Scanner]> {
  const expected = arena.records(READ_RECORDS)
  const here = await filled(arena, 'here', { kind: 'bifrost' })
  const there = await filled(arena, 'there', { kind: 'bifrost', library })
  const readings = [here, there].map((side) => ({ name: side.name, side, args: { by }, expected }))
  return (await readAll(arena, readings)) as unknown as readonly [Scanner, Scanner]
}

async function filled(arena: Arena, name: string, contents: Contents): Promise<Side> {
  const side = await arena.enter(name, contents)
  arena.report.progress(`filling ${name}`)
  await side.ask('fill', { records: arena.records(READ_RECORDS), size: SIZE, callers: FILLERS })
  return side
}

async function readAll(arena: Arena, readings: readonly Reading[]): Promise<Scanner[]> {
  const results = await arena.takeTurns(readings, async ({ name, side, args, expected }) => {
    const result = await side.ask('scan', args)
    requireAll(name, result, expected)
    return result.records / result.seconds
  })
  await arena.clear()
  return readings.map(({ name }, index) => ({ name, rates: results[index] ?? [] }))
}

/** A scan that misses records is no scan. */
function requireAll(name: string, { records, bytes }: ScanResult, expected: number): void {
  if (records >= expected && bytes === records * SIZE) return
  throw new Error(`${name} read ${records} records of ${expected}, ${bytes} bytes`)
}
