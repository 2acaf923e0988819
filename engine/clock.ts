/**
 * The seam between the engine and time, so that tests can stand a simulated clock in its place.
 * Nothing about durability or order depends on what a clock says.
 */

import { performance } from 'node:perf_hooks'

export interface Clock {
  /** Milliseconds since the epoch. May jump, also backwards. */
  now(): number
  /** Milliseconds since some moment, with fractions: for taking time. Never goes back. */
  monotonicNow(): number
  /**
   * Calls back once, after at least `ms` milliseconds; never during this call. The timer keeps the
   * process alive if `keepsAlive` says so, as it must when a caller's promise depends on it.
   */
  setTimer(callback: () => void, ms: number, keepsAlive?: boolean): unknown
  /** Makes sure that a timer doesn't call back any more; fine after it did. */
  clearTimer(timer: unknown): void
}

/** The machine's clock. */
export const systemClock: Clock = Object.freeze({
  now: () => Date.now(),
  monotonicNow: () => performance.now(),
  setTimer: (callback: () => void, ms: number, keepsAlive = false) => {
    const timer = setTimeout(callback, ms)
    return keepsAlive ? timer : timer.unref()
  },
  clearTimer: (timer: unknown) => {
    clearTimeout(timer as NodeJS.Timeout | undefined)
  },
})
