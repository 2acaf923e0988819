/**
 * `npm run perf:peers`: the same appends by Bifrost and by what people would pick instead, each
 * acknowledged only after a sync, in turn and in one run; and scans of what is there.
 */
import { caseName, type Arena } from './measures/arena.ts'
import { contest, type Outcome } from './measures/contest.ts'
import { readBack } from './measures/read-back.ts'
import { PEERS, readyPeers, SCANNED_PEERS } from './stores/peer-packages.ts'
import type { StoreKind } from './stores/store.ts'
import { selected } from './support/arguments.ts'
import { count, quartiles, ratio } from './support/figures.ts'
import { main } from './support/main.ts'
import { indexOfBest, median, ratioOf, spreadOf } from './support/statistics.ts'

/** Whatever was measured of a side: records a second, in each round. */
interface Series {
  readonly name: string
  readonly rates: readonly number[]
}

interface Comparison {
  readonly name: string
  readonly title: string
  measure(arena: Arena): Promise<readonly Series[]>
}

const CASES = [
  [1, 100],
  [16, 100],
  [256, 100],
  [2048, 100],
  [256, 1024],
  [256, 16 * 1024],
] as const

const APPENDS: readonly Comparison[] = CASES.map(([callers, size]) => ({
  name: `append-${callers}-${size}`,
  title: `Appends, ${caseName(callers, size)}`,
  measure: (arena) =>
    compareAppends(arena, ['bifrost', 'floor', ...readyPeers(PEERS)], callers, size),
}))

const INLINE: Comparison = {
  name: 'inline',
  title: "Appends that block the thread, 1 caller, 100 B (Bifrost: commitMode 'inline')",
  async measure(arena) {
    const [peer] = readyPeers(['better-sqlite3-single'])
    const work = { callers: 1, size: 100 }
    return contest(arena, [
      { name: 'bifrost', contents: { kind: 'bifrost', options: { commitMode: 'inline' } }, work },
      ...(peer === undefined ? [] : [{ name: peer, contents: { kind: peer }, work }]),
    ])
  },
}

const SCAN: Comparison = {
  name: 'scan',
  title: 'Scans of 1 M records of 100 B (the floor checks nothing)',
  measure: (arena) => readBack(arena, ['bifrost', 'floor', ...readyPeers(SCANNED_PEERS)]),
}

const COMPARISONS: readonly Comparison[] = [...APPENDS, INLINE, SCAN]

const USAGE = `Usage: npm run perf:peers -- [names] [options]

Compares all cases, or only what has one of the names in its own:
${COMPARISONS.map(({ name }) => `  ${name}`).join('\n')}
`

function compareAppends(
  arena: Arena,
  kinds: readonly StoreKind[],
  callers: number,
  size: number,
): Promise<readonly Outcome[]> {
  return contest(
    arena,
    kinds.map((kind) => ({ name: kind, contents: { kind }, work: { callers, size } })),
  )
}

const HEADS = ['Store', 'records/s', 'half of the rounds', 'of the best peer', 'of the floor']

async function run(arena: Arena): Promise<number> {
  for (const comparison of selected(COMPARISONS, arena.options.names)) {
    const series = await comparison.measure(arena)
    arena.report.keep(comparison.name, series)
    arena.report.table(comparison.title, HEADS, rowsOf(series))
  }
  return 0
}

function rowsOf(series: readonly Series[]): string[][] {
  const floor = series.find(({ name }) => name === 'floor')
  const peers = series.filter(({ name }) => name !== 'floor' && !name.startsWith('bifrost'))
  const best = peers[peers.length === 0 ? 0 : indexOfBest(peers.map(({ rates }) => rates))]
  return series
    .toSorted((a, b) => median(b.rates) - median(a.rates))
    .map((one) => {
      const spread = spreadOf(one.rates)
      return [
        one.name,
        count(spread.median),
        quartiles(spread, count),
        against(one, best),
        against(one, floor),
      ]
    })
}

function against(one: Series, other: Series | undefined): string {
  if (other === undefined) return ''
  const { median: middle, low, high } = ratioOf(one.rates, other.rates)
  if (one === other) return ratio(middle)
  return `${ratio(middle)} (${quartiles({ median: middle, low, high }, ratio)})`
}

await main({ name: 'peers', usage: USAGE, run })
