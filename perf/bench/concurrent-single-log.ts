/** Many callers, one log. */
import { caseName } from '../measures/arena.ts'
import { contest } from '../measures/contest.ts'
import { reportOutcomes, type Benchmark } from './benchmark.ts'

const SIZE = 100
const CALLERS = [16, 256, 2048]

export const CONCURRENT_SINGLE_LOG: Benchmark = {
  name: 'concurrent-single-log',
  about: 'each caller awaits its append to the one log',
  async run(arena) {
    const outcomes = await contest(
      arena,
      CALLERS.map((callers) => ({
        name: caseName(callers, SIZE),
        contents: { kind: 'bifrost' },
        work: { callers, size: SIZE, timed: true },
      })),
    )
    reportOutcomes(arena, CONCURRENT_SINGLE_LOG, outcomes)
  },
}
