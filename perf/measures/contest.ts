/** Appends by several sides in turn, and what came of it for each. */
import type { HistogramSnapshot } from '../../index.ts'
import { merged, type Percentiles } from '../support/latencies.ts'
import { median } from '../support/statistics.ts'
import type { AppendArguments, AppendResult } from '../worker/appends.ts'
import type { Side } from '../worker/side.ts'
import type { Arena, Contents } from './arena.ts'

/** A store, and how it is appended to. */
export interface Entrant {
  readonly name: string
  readonly contents: Contents
  readonly work: Omit<AppendArguments, 'ms' | 'leadMs'>
}

export interface Outcome {
  readonly name: string
  /** Records a second, in each round. */
  readonly rates: readonly number[]
  /** Of all rounds together, in ms, if calls were timed. */
  readonly latency: Percentiles | undefined
  /** The same as an HDR histogram per round, in ns, for other tools. */
  readonly latencies: readonly string[]
  readonly recordsPerSync: number | undefined
  /** Records in a group commit, as Bifrost counts them, warm-up included. */
  readonly groups: HistogramSnapshot | undefined
  /** In ms, in each round, if the event loop was watched. */
  readonly loopDelays: readonly number[]
  /** The median share of the time in which the thread did something. */
  readonly busy: number
  /** The median CPU time of a record, of all threads together, in ms. */
  readonly cpuMs: number
}

/** Lets all of them append in turn, each in a process and with a store of its own. */
export async function contest(arena: Arena, entrants: readonly Entrant[]): Promise<Outcome[]> {
  const sides: { readonly side: Side; readonly entrant: Entrant }[] = []
  for (const entrant of entrants) {
    sides.push({ side: await arena.enter(entrant.name, entrant.contents), entrant })
  }
  const { roundMs: ms, leadMs } = arena
  const results = await arena.takeTurns(sides, ({ side, entrant }) =>
    side.ask('appends', { ...entrant.work, ms, leadMs }),
  )
  const outcomes: Outcome[] = []
  for (const [index, { side, entrant }] of sides.entries()) {
    outcomes.push(outcomeOf(entrant.name, results[index] ?? [], await groupsOf(side, entrant)))
  }
  await arena.clear()
  return outcomes
}

async function groupsOf(side: Side, entrant: Entrant): Promise<HistogramSnapshot | undefined> {
  if (entrant.contents.kind !== 'bifrost') return undefined
  return (await side.ask('metrics')).bifrost_localloglet_write_batch_count
}

function outcomeOf(
  name: string,
  results: readonly AppendResult[],
  groups: HistogramSnapshot | undefined,
): Outcome {
  const latencies = results.flatMap(({ latencies }) => latencies ?? [])
  const perSync = results.flatMap(({ counted }) =>
    counted === undefined ? [] : [counted.records / counted.syncs],
  )
  return {
    name,
    rates: results.map(({ records, seconds }) => records / seconds),
    latency: latencies.length === 0 ? undefined : merged(latencies).percentiles(),
    latencies,
    recordsPerSync: perSync.length === 0 ? undefined : median(perSync),
    groups,
    loopDelays: results.flatMap(({ loopDelayP99 }) => loopDelayP99 ?? []),
    busy: median(results.map(({ busy }) => busy)),
    cpuMs: median(results.map(({ cpuMicros }) => cpuMicros / 1000)),
  }
}
