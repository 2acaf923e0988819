/** How much later than the acknowledgement a tailing reader has the record. */
import { writeToRead } from '../measures/write-to-read.ts'
import { duration } from '../support/figures.ts'
import type { Target } from './target.ts'
import { atMost } from './verdict.ts'

const MOST_LATER_MS = 0.1

export const WRITE_TO_READ_TARGET: Target = {
  name: 'write-to-read',
  async measure(arena) {
    const figures = await writeToRead(arena)
    arena.report.keep('write-to-read', figures)
    const { alone, read } = figures
    const p50s = `${duration(read.p50)} - ${duration(alone.p50)}`
    const work = `write-to-read p50 - append p50 without a reader (${p50s})`
    return [atMost(work, MOST_LATER_MS, figures.later, duration)]
  },
}
