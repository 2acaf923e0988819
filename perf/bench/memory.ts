/** What the process holds, over many records, over many logs, and with a reader far behind. */
import { growth, type Growth, type GrowthCase } from '../measures/memory.ts'
import { mebibytes } from '../support/figures.ts'
import type { Benchmark } from './benchmark.ts'

const STEPS = 10
const HEADS = ['Case', 'empty process', 'after a tenth', 'at the end', 'greatest']

const CASES: readonly GrowthCase[] = [
  { name: '10 M records', contents: { kind: 'bifrost' }, records: 10_000_000, steps: STEPS },
  {
    name: '1 M records, 10,000 logs',
    contents: { kind: 'bifrost', logs: 10_000 },
    records: 1_000_000,
    steps: STEPS,
  },
  {
    name: '1 M records, a slow reader',
    contents: { kind: 'bifrost' },
    records: 1_000_000,
    steps: STEPS,
    slowReader: true,
  },
]

export const MEMORY: Benchmark = {
  name: 'memory',
  about: 'resident set of the process, 256 callers, 100 B',
  async run(arena) {
    const grown: Growth[] = []
    for (const one of CASES) grown.push(await growth(arena, one))
    arena.report.keep(MEMORY.name, grown)
    arena.report.table(`${MEMORY.name}: ${MEMORY.about}`, HEADS, grown.map(cells))
  },
}

function cells({ name, empty, sizes }: Growth): string[] {
  const figures = [empty, sizes[0] ?? 0, sizes.at(-1) ?? 0, Math.max(...sizes)]
  return [name, ...figures.map(mebibytes)]
}
