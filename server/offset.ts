/**
 * The protocol's offsets: opaque tokens for clients, and for us the place between two records of a
 * stream. Tokens sort as places do, and are never `-1` or `now`, which clients may send instead.
 *
 *     0000000000000042_0000000000001234
 *     └ LSN of the last data record before the place; 0 at the start
 *                      └ bytes of data before the place
 */

export interface StreamOffset {
  /** The LSN, in the stream, of the last data record before this place; 0 at the start. */
  readonly lsn: number
  /** How many bytes of data come before this place. */
  readonly bytes: number
}

/** Before everything. */
export const START: StreamOffset = Object.freeze({ lsn: 0, bytes: 0 })

const DIGITS = 16
const TOKEN = /^(\d{16})_(\d{16})$/

export function formatOffset({ lsn, bytes }: StreamOffset): string {
  return `${String(lsn).padStart(DIGITS, '0')}_${String(bytes).padStart(DIGITS, '0')}`
}

/** The place that a token names; undefined if it is no token of ours. */
export function parseOffset(token: string): StreamOffset | undefined {
  const match = TOKEN.exec(token)
  if (match === null) return undefined
  const [lsn, bytes] = [Number(match[1]), Number(match[2])]
  return Number.isSafeInteger(lsn) && Number.isSafeInteger(bytes) ? { lsn, bytes } : undefined
}
