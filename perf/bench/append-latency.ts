/** One caller who awaits each append, at three sizes, and with the thread blocked for each sync. */
import { caseName } from '../measures/arena.ts'
import { contest, type Entrant } from '../measures/contest.ts'
import { reportOutcomes, type Benchmark } from './benchmark.ts'

const SIZES = [100, 1024, 16 * 1024]

const ENTRANTS: readonly Entrant[] = (['async', 'inline'] as const).flatMap((commitMode) =>
  SIZES.map((size) => ({
    name: `${caseName(1, size)}, ${commitMode}`,
    contents: { kind: 'bifrost', options: { commitMode } },
    work: { callers: 1, size, timed: true },
  })),
)

export const APPEND_LATENCY: Benchmark = {
  name: 'append-latency',
  about: 'one caller awaits each append',
  async run(arena) {
    reportOutcomes(arena, APPEND_LATENCY, await contest(arena, ENTRANTS))
  },
}
