/** Appends of many callers against the best peer, and against the floor. */
import type { Arena } from '../measures/arena.ts'
import { caseName } from '../measures/arena.ts'
import { contest, type Entrant, type Outcome } from '../measures/contest.ts'
import { PEERS, readyPeers } from '../stores/peer-packages.ts'
import type { StoreKind } from '../stores/store.ts'
import { count } from '../support/figures.ts'
import { indexOfBest, median, ratioOf } from '../support/statistics.ts'
import type { Target } from './target.ts'
import { atLeast, type Verdict } from './verdict.ts'

interface Aim {
  readonly name: string
  readonly callers: number
  readonly size: number
  readonly ofBestPeer?: number
  readonly ofFloor?: number
}

const AIMS: readonly Aim[] = [
  { name: 'callers-1', callers: 1, size: 100, ofFloor: 0.9 },
  { name: 'callers-16', callers: 16, size: 100, ofBestPeer: 1.1 },
  { name: 'callers-256', callers: 256, size: 100, ofBestPeer: 1.3, ofFloor: 0.75 },
  { name: 'callers-256-1k', callers: 256, size: 1024, ofBestPeer: 1.3, ofFloor: 0.75 },
  { name: 'callers-2048', callers: 2048, size: 100, ofBestPeer: 1.3, ofFloor: 0.65 },
  { name: 'callers-256-16k', callers: 256, size: 16 * 1024, ofBestPeer: 1 },
]

export const APPEND_TARGETS: readonly Target[] = AIMS.map((aim) => ({
  name: aim.name,
  measure: (arena) => measure(arena, aim),
}))

async function measure(arena: Arena, aim: Aim): Promise<Verdict[]> {
  const peers = aim.ofBestPeer === undefined ? [] : readyPeers(PEERS)
  const kinds: StoreKind[] = ['bifrost', ...(aim.ofFloor === undefined ? [] : ['floor' as const])]
  const outcomes = await contest(
    arena,
    [...kinds, ...peers].map((kind) => entrant(kind, aim)),
  )
  arena.report.keep(aim.name, outcomes)
  arena.report.text(...ratesOf(outcomes))
  const [ours, ...others] = outcomes as [Outcome, ...Outcome[]]
  return [...againstFloor(aim, ours, others), ...againstPeers(aim, ours, others)]
}

function entrant(kind: StoreKind, { callers, size }: Aim): Entrant {
  return { name: kind, contents: { kind }, work: { callers, size } }
}

function ratesOf(outcomes: readonly Outcome[]): string[] {
  return outcomes.map(
    ({ name, rates }) => `  ${name.padEnd(16)} ${count(median(rates)).padStart(12)} records/s`,
  )
}

function againstFloor(aim: Aim, ours: Outcome, others: readonly Outcome[]): Verdict[] {
  const floor = others.find(({ name }) => name === 'floor')
  if (floor === undefined || aim.ofFloor === undefined) return []
  const work = `${caseName(aim.callers, aim.size)}: of the floor`
  return [atLeast(work, aim.ofFloor, ratioOf(ours.rates, floor.rates))]
}

function againstPeers(aim: Aim, ours: Outcome, others: readonly Outcome[]): Verdict[] {
  const peers = others.filter(({ name }) => name !== 'floor')
  if (peers.length === 0 || aim.ofBestPeer === undefined) return []
  const best = peers[indexOfBest(peers.map(({ rates }) => rates))] as Outcome
  const work = `${caseName(aim.callers, aim.size)}: of the best peer (${best.name})`
  return [atLeast(work, aim.ofBestPeer, ratioOf(ours.rates, best.rates))]
}
