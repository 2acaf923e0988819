/** Bytes written and kept for each byte of payload. */
import { byteCosts } from '../measures/bytes.ts'
import { mebibytes } from '../support/figures.ts'
import type { Target } from './target.ts'
import { onceAtMost } from './verdict.ts'

const MOST_WRITTEN = 2.5
const MOST_KEPT = 1.5

export const BYTES_TARGET: Target = {
  name: 'bytes',
  async measure(arena) {
    const costs = await byteCosts(arena)
    const { payloadBytes, deviceBytes, othersBytes, allocatedBytes, keptBytes } = costs
    arena.report.keep('bytes', costs)
    arena.report.text(
      `  ${mebibytes(payloadBytes)} of payload; ${mebibytes(deviceBytes)} written to the device,`,
      `  some ${mebibytes(othersBytes)} of them by others on the machine;`,
      `  ${mebibytes(allocatedBytes)} allocated, zeros ahead of the tail and in the reserve included`,
    )
    const written = (deviceBytes - othersBytes) / payloadBytes
    const work = '256 callers, 100 B:'
    return [
      onceAtMost(`${work} device bytes per payload byte (/proc/diskstats)`, MOST_WRITTEN, written),
      onceAtMost(
        `${work} disk bytes per payload byte, trailing zeros aside`,
        MOST_KEPT,
        keptBytes / payloadBytes,
      ),
    ]
  },
}
