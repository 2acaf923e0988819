/** Lets only so many tasks run at a time; the others wait for their turn. */

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
