/** The resident set must not follow the number of records. */
import { growth } from '../measures/memory.ts'
import { mebibytes, ratio } from '../support/figures.ts'
import type { Target } from './target.ts'
import { onceAtMost } from './verdict.ts'

const RECORDS = 10_000_000
const STEPS = 20
/** Half a million records each; the first two are the first million. */
const FIRST_STEPS = 2
const MOST_BYTES = 200 * 1024 * 1024
/** What a garbage collector's heap wanders by without growing. */
const MOST_GROWTH = 1.15

export const MEMORY_TARGET: Target = {
  name: 'memory',
  async measure(arena) {
    const figures = await growth(arena, {
      name: 'memory',
      contents: { kind: 'bifrost' },
      records: RECORDS,
      steps: STEPS,
    })
    arena.report.keep('memory', figures)
    const { empty, sizes } = figures
    arena.report.text(`  resident, in steps: ${sizes.map(mebibytes).join(', ')}`)
    const first = Math.max(...sizes.slice(0, FIRST_STEPS))
    const later = Math.max(...sizes.slice(FIRST_STEPS))
    const work = 'RSS over 10 M records:'
    return [
      onceAtMost(`${work} greatest, of the first million's`, MOST_GROWTH, later / first, ratio),
      onceAtMost(
        `${work} greatest, over an empty process`,
        MOST_BYTES,
        Math.max(first, later) - empty,
        mebibytes,
      ),
    ]
  },
}
