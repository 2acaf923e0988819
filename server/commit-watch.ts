/**
 * Watches the group commits of this process through the channel `bifrost:commit`, and keeps a
 * histogram of each of their measures, in powers of two, for the page to draw.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'

/** Counts per power of two: the first one is of values below 2, the next of those below 4 … */
export interface CommitHistograms {
  readonly records: readonly number[]
  readonly bytes: readonly number[]
  readonly microseconds: readonly number[]
}

interface CommitMessage {
  readonly records: number
  readonly bytes: number
  readonly error?: unknown
}

const BUCKETS = 32
const START = 'tracing:bifrost:commit:start'
const ASYNC_END = 'tracing:bifrost:commit:asyncEnd'

export class CommitWatch {
  readonly #startedAtMs = new WeakMap<CommitMessage, number>()
  readonly #records: number[] = emptyBuckets()
  readonly #bytes: number[] = emptyBuckets()
  readonly #microseconds: number[] = emptyBuckets()

  readonly #begin = (message: unknown): void => {
    this.#startedAtMs.set(message as CommitMessage, performance.now())
  }

  readonly #end = (message: unknown): void => {
    const commit = message as CommitMessage
    const startedAtMs = this.#startedAtMs.get(commit)
    if (startedAtMs === undefined || commit.error !== undefined) return
    if (commit.records > 0) count(this.#records, commit.records)
    count(this.#bytes, commit.bytes)
    count(this.#microseconds, (performance.now() - startedAtMs) * 1000)
  }

  constructor() {
    subscribe(START, this.#begin)
    subscribe(ASYNC_END, this.#end)
  }

  /** Stops watching. */
  close(): void {
    unsubscribe(START, this.#begin)
    unsubscribe(ASYNC_END, this.#end)
  }

  histograms(): CommitHistograms {
    return { records: this.#records, bytes: this.#bytes, microseconds: this.#microseconds }
  }
}

function emptyBuckets(): number[] {
  return new Array<number>(BUCKETS).fill(0)
}

function count(buckets: number[], value: number): void {
  const bucket = Math.min(BUCKETS - 1, 31 - Math.clz32(Math.max(1, value)))
  buckets[bucket] = (buckets[bucket] ?? 0) + 1
}
