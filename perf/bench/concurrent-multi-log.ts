/** Many callers, many logs. */
import { caseName } from '../measures/arena.ts'
import { contest } from '../measures/contest.ts'
import { plural } from '../support/figures.ts'
import { reportOutcomes, type Benchmark } from './benchmark.ts'

const SIZE = 100
const CALLERS = [16, 256, 2048]
const LOGS = [1, 10, 1000]

export const CONCURRENT_MULTI_LOG: Benchmark = {
  name: 'concurrent-multi-log',
  about: 'each caller awaits its append, which goes to each log in turn',
  async run(arena) {
    const outcomes = await contest(
      arena,
      CALLERS.flatMap((callers) =>
        LOGS.map((logs) => ({
          name: `${caseName(callers, SIZE)}, ${plural(logs, 'log')}`,
          contents: { kind: 'bifrost' as const, logs },
          work: { callers, size: SIZE, timed: true },
        })),
      ),
    )
    reportOutcomes(arena, CONCURRENT_MULTI_LOG, outcomes)
  },
}
