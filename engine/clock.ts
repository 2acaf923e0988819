/**
 * The seam between the engine and time, so that tests can stand a simulated clock in its place.
 * Nothing about durability or order depends on what a clock says.
 */

export interface Clock {
  /** Milliseconds since the epoch. May jump, also backwards. */
  now(): number
  /** Calls back once, after at least `ms` milliseconds; never during this call. */
  setTimer(callback: () => void, ms: number): unknown
  /** Makes sure that a timer doesn't call back any more; fine after it did. */
  clearTimer(timer: unknown): void
}

/** The machine's clock. Its timers don't keep the process alive. */
export const systemClock: Clock = Object.freeze({
  now: () => Date.now(),
  setTimer: (callback: () => void, ms: number) => setTimeout(callback, ms).unref(),
  clearTimer: (timer: unknown) => {
    clearTimeout(timer as NodeJS.Timeout | undefined)
  },
})
