/** `npm run perf:compare REF`: this tree against another commit, in turn, as ratios. */
import { caseName, type Arena } from './measures/arena.ts'
import { contest, type Entrant } from './measures/contest.ts'
import { selected } from './support/arguments.ts'
import { count, quartiles, ratio } from './support/figures.ts'
import { main } from './support/main.ts'
import { median, ratioOf } from './support/statistics.ts'
import { Worktree } from './support/worktree.ts'
import { scansOf } from './measures/read-back.ts'

interface Series {
  readonly rates: readonly number[]
}

/** A case, measured for this tree and for the other library. */
interface Comparison {
  readonly name: string
  measure(arena: Arena, library: string): Promise<readonly [here: Series, there: Series]>
}

type Work = Entrant['work']

const WORKS: readonly (readonly [string, Work, logs?: number])[] = [
  ...([1, 16, 256, 2048] as const).map((callers) => named({ callers, size: 100 })),
  named({ callers: 256, size: 1024 }),
  named({ callers: 256, size: 16 * 1024 }),
  ['256 callers, 100 B, 1,000 logs', { callers: 256, size: 100 }, 1000],
  ['64 callers, appendBatch of 4', { callers: 64, size: 100, shape: 'batch' }],
]

function named(work: Work): readonly [string, Work] {
  return [caseName(work.callers, work.size), work]
}

const APPENDS: readonly Comparison[] = WORKS.map(([name, work, logs]) => ({
  name,
  async measure(arena, library) {
    const outcomes = await contest(arena, [
      { name: 'here', contents: { kind: 'bifrost', logs }, work },
      { name: 'there', contents: { kind: 'bifrost', logs, library }, work },
    ])
    return outcomes as unknown as readonly [Series, Series]
  },
}))

const SCANS: readonly Comparison[] = (['chunks', 'records'] as const).map((by) => ({
  name: by === 'chunks' ? 'read-back, chunks()' : 'read-back, for await',
  measure: (arena, library) => scansOf(arena, by, library),
}))

const COMPARISONS: readonly Comparison[] = [...APPENDS, ...SCANS]

const USAGE = `Usage: npm run perf:compare -- <commit> [names] [options]

Compares this tree with another commit, in all cases, or only in what has one of the names in its own:
${COMPARISONS.map(({ name }) => `  ${name}`).join('\n')}
`

const HEADS = ['Case', 'here, records/s', 'there', 'here / there', 'half of the rounds']

async function run(arena: Arena): Promise<number> {
  const [ref, ...names] = arena.options.names
  if (ref === undefined) throw new Error('Which commit? npm run perf:compare -- <commit>')
  arena.report.text(`Building ${ref} …`)
  const other = new Worktree(ref, `${arena.scratch.dir}-worktree`)
  try {
    await compare(arena, other, names)
  } finally {
    other.remove()
  }
  return 0
}

async function compare(arena: Arena, other: Worktree, names: readonly string[]): Promise<void> {
  const rows: string[][] = []
  for (const comparison of selected(COMPARISONS, names)) {
    const [here, there] = await comparison.measure(arena, other.library)
    arena.report.keep(comparison.name, { here, there })
    const spread = ratioOf(here.rates, there.rates)
    const rates = [here, there].map(({ rates }) => count(median(rates)))
    const row = [comparison.name, ...rates, ratio(spread.median), quartiles(spread, ratio)]
    arena.report.text(`  ${row.join('  ')}`)
    rows.push(row)
  }
  arena.report.table(`This tree against ${other.commit}`, HEADS, rows)
}

await main({ name: 'compare', usage: USAGE, run })
