/** Commits while a hundred readers read what is in no cache. */
import { coldReads } from '../measures/cold-reads.ts'
import { count, duration, mebibytes, quartiles, ratio } from '../support/figures.ts'
import type { Target } from './target.ts'
import { atMost } from './verdict.ts'

const MOST = 2

export const COLD_READS_TARGET: Target = {
  name: 'cold-reads',
  async measure(arena) {
    const figures = await coldReads(arena)
    const { commits, commitsAlone, appends, appendsAlone, recordsRead, bytesRead } = figures
    arena.report.keep('cold-reads', figures)
    arena.report.text(
      `  ${count(recordsRead)} records were read, ${mebibytes(bytesRead)} from the device`,
      `  commit p99 ${duration(commits.p99)}, without readers ${duration(commitsAlone.p99)}`,
      `  append p99 ${duration(appends.p99)}, without readers ${duration(appendsAlone.p99)}: ` +
        `${ratio(figures.appendRatio.median)} (${quartiles(figures.appendRatio, ratio)})`,
    )
    const work = '16 callers, 100 readers of cold data: commit p99, of without readers'
    return [atMost(work, MOST, figures.commitRatio)]
  },
}
