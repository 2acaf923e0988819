/** Counts operations that are under way, for whoever must not go on before they are done. */
export class InFlight {
  #count = 0
  readonly #waiters: (() => void)[] = []

  async run<T>(operation: () => Promise<T>): Promise<T> {
    this.#count++
    try {
      return await operation()
    } finally {
      this.#count--
      if (this.#count === 0) for (const resolve of this.#waiters.splice(0)) resolve()
    }
  }

  /** Resolves when nothing is under way. */
  idle(): Promise<void> {
    if (this.#count === 0) return Promise.resolve()
    return new Promise((resolve) => this.#waiters.push(resolve))
  }
}
