/** Opening a store that was closed, or killed. */
import { reopenings } from '../measures/reopen.ts'
import { count, duration, mebibytes, quartiles } from '../support/figures.ts'
import { spreadOf } from '../support/statistics.ts'
import type { Benchmark } from './benchmark.ts'

const SIZES = [10_000, 1_000_000, 10_000_000]
const HEADS = ['Records', 'left by', 'open takes', 'half of the rounds', 'tail segment']

export const REOPEN: Benchmark = {
  name: 'reopen',
  about: 'opening in a new process, by how the last one left the store',
  async run(arena) {
    const all = await reopenings(
      arena,
      SIZES.map((records) => arena.records(records)),
    )
    arena.report.keep(REOPEN.name, all)
    const rows = all.map(({ records, ending, times, tailBytes }) => {
      const spread = spreadOf(times)
      return [
        count(records),
        ending === 'close' ? 'close()' : 'kill -9',
        duration(spread.median),
        quartiles(spread, duration),
        mebibytes(tailBytes),
      ]
    })
    arena.report.table(`${REOPEN.name}: ${REOPEN.about}`, HEADS, rows)
  },
}
