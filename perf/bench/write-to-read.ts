/** A reader at the tail, beside the writer. */
import { writeToRead } from '../measures/write-to-read.ts'
import { count, duration } from '../support/figures.ts'
import type { Benchmark } from './benchmark.ts'

const HEADS = ['From the call of an append', 'count', 'p50', 'p99', 'p99.9', 'max']

export const WRITE_TO_READ: Benchmark = {
  name: 'write-to-read',
  about: 'one caller appends, one reader follows',
  async run(arena) {
    const figures = await writeToRead(arena)
    arena.report.keep(WRITE_TO_READ.name, figures)
    const rows = [
      ['to its acknowledgement, nobody reading', figures.alone] as const,
      ['to its acknowledgement, followed by a reader', figures.append] as const,
      ['to its reader', figures.read] as const,
    ].map(([name, { count: calls, p50, p99, p999, max }]) => [
      name,
      count(calls),
      ...[p50, p99, p999, max].map(duration),
    ])
    arena.report.table(`${WRITE_TO_READ.name}: ${WRITE_TO_READ.about}`, HEADS, rows)
  },
}
