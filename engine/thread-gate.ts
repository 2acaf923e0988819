/**
 * Keeps one thread of libuv's pool free for commits: the engine's own reads, of all stores in the
 * process, never fill it.
 */

const DEFAULT_THREADS = 4

function poolThreads(): number {
  const threads = Number(process.env['UV_THREADPOOL_SIZE'])
  return Number.isInteger(threads) && threads > 0 ? threads : DEFAULT_THREADS
}

export class ThreadGate {
  #free: number
  readonly #waiting: (() => void)[] = []

  constructor(threads: number) {
    this.#free = threads
  }

  /** Runs `task` once a thread is free for it; first come, first served. */
  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      return await task()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#free++
      else next()
    }
  }
}

/** The gate that all engine reads of this process go through. */
export const readGate: ThreadGate = new ThreadGate(Math.max(1, poolThreads() - 1))
