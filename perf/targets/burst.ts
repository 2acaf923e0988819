/** The four records of a small invocation: in one batch, and as four appends at once. */
import { contest, type Outcome } from '../measures/contest.ts'
import { ratio } from '../support/figures.ts'
import { ratioOf } from '../support/statistics.ts'
import type { Shape } from '../worker/appends.ts'
import type { Target } from './target.ts'
import { atLeast, type Verdict } from './verdict.ts'

const LEAST_PER_GROUP = 4
const CALLERS = [1, 256] as const

export const BURST_TARGET: Target = {
  name: 'burst',
  async measure(arena) {
    const verdicts: Verdict[] = []
    for (const callers of CALLERS) {
      const shapes: readonly Shape[] = ['batch', 'four']
      const outcomes = await contest(
        arena,
        shapes.map((shape) => ({
          name: shape,
          contents: { kind: 'bifrost' },
          work: { callers, size: 100, shape },
        })),
      )
      arena.report.keep(`burst-${callers}`, outcomes)
      verdicts.push(...judge(callers, outcomes as [Outcome, Outcome]))
    }
    return verdicts
  },
}

function judge(callers: number, [batch, four]: readonly [Outcome, Outcome]): Verdict[] {
  const who = callers === 1 ? '1 bursty caller' : `${callers} bursty callers`
  const work = `${who}: appendBatch of 4, of 4 appends at once`
  const faster = atLeast(work, 1, ratioOf(batch.rates, four.rates))
  if (callers > 1) return [faster]
  return [faster, perGroup(`${who}, by appendBatch`, batch), perGroup(`${who}, by append`, four)]
}

function perGroup(work: string, { groups }: Outcome): Verdict {
  const mean = groups?.mean ?? 0
  return {
    work: `${work}: records in a group commit`,
    aim: `≥ ${LEAST_PER_GROUP}`,
    measured: ratio(mean),
    spread: '',
    // The warm-up's first append may stand alone in its group.
    met: Math.round(mean) >= LEAST_PER_GROUP,
  }
}
