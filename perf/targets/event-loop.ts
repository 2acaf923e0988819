/** Whether others in the process get their turn. */
import { contest } from '../measures/contest.ts'
import { duration } from '../support/figures.ts'
import { spreadOf } from '../support/statistics.ts'
import type { Target } from './target.ts'
import { atMost } from './verdict.ts'

const MOST_MS = 5

export const EVENT_LOOP_TARGET: Target = {
  name: 'event-loop',
  async measure(arena) {
    const work = { callers: 256, size: 100, watched: true }
    const outcomes = await contest(arena, [
      { name: 'watched', contents: { kind: 'bifrost' }, work },
    ])
    arena.report.keep('event-loop', outcomes)
    const delays = outcomes.flatMap(({ loopDelays }) => loopDelays)
    const name =
      "256 callers, 100 B: the event loop's delay, p99 (of a timer of 1 ms, itself included)"
    return [atMost(name, MOST_MS, spreadOf(delays), duration)]
  },
}
