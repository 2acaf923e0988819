/**
 * A group commit by hand, as a sensible user of a store without one would write it: what is appended
 * while a commit is under way goes into the next one, and everybody in it is acknowledged together.
 */

/** Makes payloads durable together, at consecutive keys from the given one on. */
export type Commit = (payloads: readonly Uint8Array[], firstKey: number) => Promise<void> | void

interface Waiting {
  readonly payload: Uint8Array
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

export class GroupCommit {
  readonly #commit: Commit
  #waiting: Waiting[] = []
  #isBusy = false
  #nextKey = 1
  #groups = 0

  constructor(commit: Commit) {
    this.#commit = commit
  }

  get records(): number {
    return this.#nextKey - 1
  }

  get groups(): number {
    return this.#groups
  }

  append(payload: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ payload, resolve, reject })
      if (!this.#isBusy) this.#schedule()
    })
  }

  /** The next turn of the event loop: by then, all who were acknowledged have appended again. */
  #schedule(): void {
    this.#isBusy = true
    setImmediate(() => void this.#run())
  }

  async #run(): Promise<void> {
    const group = this.#waiting
    this.#waiting = []
    const firstKey = this.#nextKey
    this.#nextKey += group.length
    try {
      const done = this.#commit(
        group.map(({ payload }) => payload),
        firstKey,
      )
      if (done !== undefined) await done
      this.#groups++
      for (const { resolve } of group) resolve()
    } catch (error) {
      for (const { reject } of group) reject(error)
    }
    this.#isBusy = false
    if (this.#waiting.length > 0) this.#schedule()
  }
}
