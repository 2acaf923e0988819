/** Bytes written and kept for each byte of payload. */
import { byteCosts } from '../measures/bytes.ts'
import { mebibytes, ratio } from '../support/figures.ts'
import type { Target } from './target.ts'
import { onceAtMost } from './verdict.ts'

const MOST_WRITTEN = 2.5
const MOST_KEPT = 1.5

export const BYTES_TARGET: Target = {
  name: 'bytes',
  async measure(arena) {
    const costs = await byteCosts(arena)
    const { payloadBytes, processWritten, deviceWritten, allocated, kept } = costs
    arena.report.keep('bytes', costs)
    arena.report.text(
      `  ${mebibytes(payloadBytes)} of payload: ${mebibytes(processWritten)} written by the process,`,
      `  ${deviceWritten === undefined ? 'an unknown number' : mebibytes(deviceWritten)} to the ` +
        'device by everybody on the machine;',
      `  ${mebibytes(allocated)} allocated, zeros ahead of the tail and in the reserve included`,
    )
    const everybody = ratio((deviceWritten ?? Number.NaN) / payloadBytes)
    const written = `device bytes per payload byte (/proc/self/io; by everybody: ${everybody})`
    const work = '256 callers, 100 B:'
    return [
      onceAtMost(`${work} ${written}`, MOST_WRITTEN, processWritten / payloadBytes),
      onceAtMost(
        `${work} disk bytes per payload byte, trailing zeros aside`,
        MOST_KEPT,
        kept / payloadBytes,
      ),
    ]
  },
}
