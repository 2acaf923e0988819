/** Opening must not take longer for there being more records. */
import { reopenings, type Reopening } from '../measures/reopen.ts'
import { count, duration, mebibytes, quartiles } from '../support/figures.ts'
import { ratioOf, spreadOf } from '../support/statistics.ts'
import type { Target } from './target.ts'
import { atMost } from './verdict.ts'

const FEW = 10_000
const MANY = 10_000_000
const MOST = 2
const ENDINGS = { close: 'a clean close', kill: 'kill -9' } as const

export const REOPEN_TARGET: Target = {
  name: 'reopen',
  async measure(arena) {
    const sizes = [arena.records(FEW), arena.records(MANY)]
    const all = await reopenings(arena, sizes)
    arena.report.keep('reopen', all)
    arena.report.text(...all.map(lineOf))
    return (['close', 'kill'] as const).map((ending) => {
      const [few, many] = all.filter((one) => one.ending === ending) as [Reopening, Reopening]
      const against = `of ${count(few.records)}, after ${ENDINGS[ending]}`
      const work = `reopen with ${count(many.records)} records: ${against}`
      return atMost(work, MOST, ratioOf(many.times, few.times))
    })
  },
}

function lineOf({ records, ending, times, tailBytes }: Reopening): string {
  const spread = spreadOf(times)
  const figures = `${duration(spread.median)} (${quartiles(spread, duration)})`
  const tail = `${mebibytes(tailBytes)} in the last segment`
  return `  ${count(records)} records, after ${ENDINGS[ending]}: ${figures}; ${tail}`
}
