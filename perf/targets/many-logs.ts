/** Appends to a thousand logs, against the same appends to one. */
import { contest, type Outcome } from '../measures/contest.ts'
import { ratioOf } from '../support/statistics.ts'
import type { Target } from './target.ts'
import { atLeast } from './verdict.ts'

const AIM = 0.9
const WORK = { callers: 256, size: 100 }

export const MANY_LOGS_TARGET: Target = {
  name: 'logs-1000',
  async measure(arena) {
    const outcomes = await contest(arena, [
      { name: '1,000 logs', contents: { kind: 'bifrost', logs: 1000 }, work: WORK },
      { name: '1 log', contents: { kind: 'bifrost' }, work: WORK },
    ])
    arena.report.keep('logs-1000', outcomes)
    const [many, one] = outcomes as [Outcome, Outcome]
    return [atLeast('256 callers, 1,000 logs: of 1 log', AIM, ratioOf(many.rates, one.rates))]
  },
}
