/** One benchmark of `npm run perf`, and the tables that several of them print. */
import type { Arena } from '../measures/arena.ts'
import type { Outcome } from '../measures/contest.ts'
import { count, duration, percent, quartiles, rounded } from '../support/figures.ts'
import { spreadOf } from '../support/statistics.ts'

export interface Benchmark {
  readonly name: string
  /** What it measures, in a line. */
  readonly about: string
  run(arena: Arena): Promise<void>
}

const APPEND_HEADS = [
  'Case',
  'records/s',
  'half of the rounds',
  'p50',
  'p99',
  'p99.9',
  'records per sync',
  'group p50',
  'group p99',
  'group max',
  'busy',
  'CPU per record',
] as const

/**
 * Prints how fast and how late each was, how many records its group commits carried, and what share
 * of the time its thread was busy: the rest of it, it waited for the disk.
 */
export function reportOutcomes(
  arena: Arena,
  { name, about }: Benchmark,
  outcomes: readonly Outcome[],
): void {
  arena.report.keep(name, outcomes)
  arena.report.table(`${name}: ${about}`, APPEND_HEADS, outcomes.map(cells))
}

function cells({ name, rates, latency, recordsPerSync, groups, busy, cpuMs }: Outcome): string[] {
  const spread = spreadOf(rates)
  const late = [latency?.p50, latency?.p99, latency?.p999]
  const sizes = [recordsPerSync, groups?.p50, groups?.p99, groups?.max]
  return [
    name,
    count(spread.median),
    quartiles(spread, count),
    ...late.map((ms) => (ms === undefined ? '' : duration(ms))),
    ...sizes.map((records) => (records === undefined ? '' : rounded(records))),
    percent(busy),
    duration(cpuMs),
  ]
}
