/**
 * Stream-Cursor: the number of the time interval, which clients send back, so that caches between
 * them and us collapse equal requests and yet never answer with the same thing for ever. Cursors
 * never go back, and are always greater than the one that the client sent.
 */

const EPOCH_MS = Date.UTC(2024, 9, 9)
const INTERVAL_MS = 20_000
const MAX_JITTER_INTERVALS = 180
const DIGITS = /^\d{1,15}$/

/** The least cursor for a client that sent this one. */
export function leastCursor(sent: string | undefined, nowMs: number = Date.now()): number {
  const now = intervalAt(nowMs)
  const client = sent !== undefined && DIGITS.test(sent) ? Number(sent) : -1
  return client < now ? now : client + 1 + Math.floor(Math.random() * MAX_JITTER_INTERVALS)
}

/** The cursor to send now to a client whose least cursor is `least`. */
export function formatCursor(least: number, nowMs: number = Date.now()): string {
  return String(Math.max(least, intervalAt(nowMs)))
}

function intervalAt(nowMs: number): number {
  return Math.floor((nowMs - EPOCH_MS) / INTERVAL_MS)
}
