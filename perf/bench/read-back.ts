/** Reading what is there. */
import { readBack, readInterleaved, type Scanner } from '../measures/read-back.ts'
import { count, quartiles } from '../support/figures.ts'
import { spreadOf } from '../support/statistics.ts'
import type { Benchmark } from './benchmark.ts'

const HEADS = ['Case', 'records/s', 'half of the rounds']

export const READ_BACK: Benchmark = {
  name: 'read-back',
  about: 'a million records of 100 B, in one log alone and in a thousand interleaved',
  async run(arena) {
    const alone = await readBack(arena, ['bifrost', 'floor'])
    const interleaved = await readInterleaved(arena)
    const scanners = [...alone, ...interleaved]
    arena.report.keep(READ_BACK.name, scanners)
    arena.report.table(`${READ_BACK.name}: ${READ_BACK.about}`, HEADS, scanners.map(cells))
  },
}

export function cells({ name, rates }: Scanner): string[] {
  const spread = spreadOf(rates)
  return [name, count(spread.median), quartiles(spread, count)]
}
