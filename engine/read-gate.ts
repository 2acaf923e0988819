/**
 * Keeps libuv's pool ready for commits: reads of all stores in the process take all its threads but
 * one. What a thread takes at once depends on where the bytes are. From the page cache a read takes
 * a microsecond or two, and waking a thread for each takes ten times that: so those that wait go out
 * in bursts. From the disk it takes a hundred, and a commit must not queue behind many: one by one.
 *
 *     waiting reads ──▶ burst: 1 … 32 ──▶ a thread of the pool
 *                         ▲      │ took how long?
 *                         └──────┘
 */
import { performance } from 'node:perf_hooks'

/** Starts a read; calls `done` once it has ended, however it has. */
export type StartRead = (done: () => void) => void

const DEFAULT_THREADS = 4
const MAX_BURST = 32
/** A burst of so many finds out whether reads are fast again, after so many reads that were not. */
const PROBE = 8
const PROBE_EVERY = 64
/** A burst is fast if it takes no longer than a wait for the pool, and so much for each read. */
const FAST_MS = 0.2
const FAST_MS_EACH = 0.01

function poolThreads(): number {
  const threads = Number(process.env['UV_THREADPOOL_SIZE'])
  return Number.isInteger(threads) && threads > 0 ? threads : DEFAULT_THREADS
}

export class ReadGate {
  readonly #threads: number
  #free: number
  readonly #now: () => number
  #waiting: StartRead[] = []
  /** Index of the first one that waits. */
  #head = 0
  #isScheduled = false
  #burst = PROBE
  #readsUntilProbe = 0

  /** At most `threads` bursts are under way. `now` tells milliseconds. */
  constructor(threads: number, now: () => number = () => performance.now()) {
    this.#threads = threads
    this.#free = threads
    this.#now = now
  }

  /** Starts a read once a thread is free for it; first come, first served. */
  run(start: StartRead): void {
    this.#waiting.push(start)
    if (this.#isScheduled || !this.#hasTurn) return
    // Those that are asked for together go out together.
    this.#isScheduled = true
    queueMicrotask(() => {
      this.#isScheduled = false
      this.#startBursts()
    })
  }

  #startBursts(): void {
    while (this.#hasTurn && this.#head < this.#waiting.length) this.#startBurst()
  }

  #startBurst(): void {
    const size = Math.min(this.#burst, this.#waiting.length - this.#head)
    const starts = this.#waiting.slice(this.#head, this.#head + size)
    this.#head += size
    if (this.#head === this.#waiting.length) {
      this.#waiting = []
      this.#head = 0
    }
    this.#free--
    const startedAt = this.#now()
    let left = size
    const done = (): void => {
      if (--left === 0) this.#ended(size, this.#now() - startedAt)
    }
    for (const start of starts) start(done)
  }

  #ended(size: number, ms: number): void {
    this.#free++
    this.#judge(size, ms)
    this.#startBursts()
  }

  /** While the disk is what reads wait for, one of them at a time is enough beside commits. */
  get #hasTurn(): boolean {
    return this.#free > (this.#burst === 1 ? this.#threads - 1 : 0)
  }

  /** Learns from a burst how large the next ones may be. */
  #judge(size: number, ms: number): void {
    if (size === 1) {
      if (this.#burst === 1 && --this.#readsUntilProbe <= 0) this.#burst = PROBE
    } else if (ms > FAST_MS + size * FAST_MS_EACH) {
      this.#burst = 1
      this.#readsUntilProbe = PROBE_EVERY
    } else if (size === this.#burst) this.#burst = Math.min(MAX_BURST, size * 2)
  }
}

/** The gate that all engine reads of this process go through. */
export const readGate: ReadGate = new ReadGate(Math.max(1, poolThreads() - 1))
