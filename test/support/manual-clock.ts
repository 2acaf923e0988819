/** A clock that stands still, for tests that decide when time passes and which timers go off. */
import type { Clock } from '../../engine/clock.ts'

interface Timer {
  readonly dueMs: number
  readonly callback: () => void
}

export class ManualClock implements Clock {
  #nowMs = Date.UTC(2026, 0, 5)
  /** In the order in which they were set. */
  readonly #timers = new Set<Timer>()

  now(): number {
    return this.#nowMs
  }

  monotonicNow(): number {
    return this.#nowMs
  }

  setTimer(callback: () => void, ms: number): unknown {
    const timer = { callback, dueMs: this.#nowMs + ms }
    this.#timers.add(timer)
    return timer
  }

  clearTimer(timer: unknown): void {
    this.#timers.delete(timer as Timer)
  }

  get timerCount(): number {
    return this.#timers.size
  }

  /** Lets time pass; timers that become due go off, the earliest first. */
  tick(ms: number): void {
    this.#nowMs += ms
    for (;;) {
      const [first] = [...this.#timers].sort((a, b) => a.dueMs - b.dueMs)
      if (first === undefined || first.dueMs > this.#nowMs) return
      this.#timers.delete(first)
      first.callback()
    }
  }

  /** The clock is set, perhaps back; timers keep their distance. */
  jump(ms: number): void {
    const timers = [...this.#timers]
    this.#timers.clear()
    this.#nowMs += ms
    for (const { callback, dueMs } of timers) this.#timers.add({ callback, dueMs: dueMs + ms })
  }
}
