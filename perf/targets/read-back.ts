/** Reading back: against the best peer's scan, and one log of a thousand against one alone. */
import { readBack, readInterleaved, type Scanner } from '../measures/read-back.ts'
import { readyPeers, SCANNED_PEERS } from '../stores/peer-packages.ts'
import { count } from '../support/figures.ts'
import { indexOfBest, median, ratioOf } from '../support/statistics.ts'
import type { Target } from './target.ts'
import { atLeast } from './verdict.ts'

const RECORDS_OF_BEST = 1.2
const CHUNKS_OF_BEST = 2
const INTERLEAVED_OF_ALONE = 0.25

export const READ_BACK_TARGET: Target = {
  name: 'read-back',
  async measure(arena) {
    const peers = readyPeers(SCANNED_PEERS)
    const scanners = await readBack(arena, ['bifrost', ...peers])
    arena.report.keep('read-back', scanners)
    arena.report.text(...ratesOf(scanners))
    const [chunks, records, ...others] = scanners as [Scanner, Scanner, ...Scanner[]]
    const best = others[indexOfBest(others.map(({ rates }) => rates))] as Scanner
    const against = `of the best peer's scan (${best.name})`
    return [
      atLeast(
        `read-back, for await: ${against}`,
        RECORDS_OF_BEST,
        ratioOf(records.rates, best.rates),
      ),
      atLeast(`read-back, chunks(): ${against}`, CHUNKS_OF_BEST, ratioOf(chunks.rates, best.rates)),
    ]
  },
}

export const INTERLEAVED_TARGET: Target = {
  name: 'interleaved',
  async measure(arena) {
    const scanners = await readInterleaved(arena)
    arena.report.keep('interleaved', scanners)
    arena.report.text(...ratesOf(scanners))
    const [alone, one, aloneByRecord, oneByRecord] = scanners as [
      Scanner,
      Scanner,
      Scanner,
      Scanner,
    ]
    const work = 'one log of 1,000 interleaved: of one alone'
    const byChunks = ratioOf(one.rates, alone.rates)
    const byRecord = ratioOf(oneByRecord.rates, aloneByRecord.rates)
    return [
      atLeast(`${work}, chunks()`, INTERLEAVED_OF_ALONE, byChunks),
      atLeast(`${work}, for await`, INTERLEAVED_OF_ALONE, byRecord),
    ]
  },
}

function ratesOf(scanners: readonly Scanner[]): string[] {
  return scanners.map(
    ({ name, rates }) => `  ${name.padEnd(24)} ${count(median(rates)).padStart(12)} records/s`,
  )
}
