/** Small invocations of four records: what a workflow engine writes. */
import { contest } from '../measures/contest.ts'
import type { Shape } from '../worker/appends.ts'
import { reportOutcomes, type Benchmark } from './benchmark.ts'

const SIZE = 100
const CALLERS = [1, 64, 256]
const SHAPES: readonly (readonly [Shape, string])[] = [
  ['batch', 'appendBatch'],
  ['four', 'append, four at once'],
  ['stream', 'appendStream'],
]

export const BURST: Benchmark = {
  name: 'burst',
  about: 'invocations of 4 records of 100 B; a latency is that of all four',
  async run(arena) {
    const outcomes = await contest(
      arena,
      CALLERS.flatMap((callers) =>
        SHAPES.map(([shape, name]) => ({
          name: `${callers === 1 ? '1 caller' : `${callers} callers`}, ${name}`,
          contents: { kind: 'bifrost' as const },
          work: { callers, size: SIZE, shape, timed: true },
        })),
      ),
    )
    reportOutcomes(arena, BURST, outcomes)
  },
}
