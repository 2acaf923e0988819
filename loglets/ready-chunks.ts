/**
 * Groups the items of a source that are ready now, never waiting for more to fill a group. Items
 * that arrive while the consumer is busy are ready when it asks again.
 *
 *     source ──pump──▶ at most one group ahead ──next()──▶ groups
 */

/** How large a group is: a first item always fits. */
export interface ChunkLimits<T> {
  readonly maxCount: number
  readonly maxSize: number
  readonly sizeOf: (item: T) => number
}

/** Calls back once everything that is ready now had its turn, without any timer. */
export function afterReady(callback: () => void): void {
  // A tick that is set while microtasks run comes after the last of them.
  queueMicrotask(() => {
    process.nextTick(callback)
  })
}

type Iterated<T> = Iterator<T> | AsyncIterator<T>

/** Takes items from a source of `S`, each through `accept`, and gives them out in groups of `T`. */
export class ReadyChunks<S, T> {
  readonly #iterator: Iterated<S>
  readonly #accept: (item: S) => T
  readonly #limits: ChunkLimits<T>
  readonly #items: T[] = []
  #size = 0
  #isPumping = false
  /** Set once no item will be taken any more; `error` is why, unless the source just ended. */
  #end: { readonly error?: unknown } | undefined
  #arrived: (() => void) | undefined

  constructor(
    source: AsyncIterable<S> | Iterable<S>,
    accept: (item: S) => T,
    limits: ChunkLimits<T>,
  ) {
    this.#iterator = iterate(source)
    this.#accept = accept
    this.#limits = limits
  }

  /**
   * The items that are ready, at least one; waits for the first. Empty at the end of the source.
   * What the source threw is thrown after everything that came before it was given out.
   */
  async next(): Promise<T[]> {
    if (!this.#isPumping) void this.#pump()
    while (this.#items.length === 0 && this.#end === undefined) await this.#arrival()
    if (this.#hasRoom()) await new Promise<void>(afterReady)
    if (this.#items.length > 0) return this.#take()
    if (this.#end !== undefined && 'error' in this.#end) throw this.#end.error
    return []
  }

  /** Takes no more from the source, and tells it. `next` throws `error` after what was taken. */
  stop(error: unknown): void {
    if (this.#end !== undefined) return
    this.#finish({ error })
    this.#release()
  }

  #hasRoom(): boolean {
    const { maxCount, maxSize } = this.#limits
    return this.#end === undefined && this.#items.length < maxCount && this.#size < maxSize
  }

  /** Takes from the source until a group is full; `next` lets it go on. Never rejects. */
  async #pump(): Promise<void> {
    this.#isPumping = true
    while (this.#hasRoom()) {
      try {
        const result = await this.#iterator.next()
        // What comes after `stop` was not taken.
        if (this.#end === undefined) this.#receive(result)
      } catch (error) {
        this.#finish({ error })
      }
    }
    this.#isPumping = false
  }

  #receive(result: IteratorResult<S>): void {
    if (result.done === true) {
      this.#finish({})
      return
    }
    try {
      const item = this.#accept(result.value)
      this.#items.push(item)
      this.#size += this.#limits.sizeOf(item)
      this.#arrived?.()
    } catch (error) {
      this.stop(error)
    }
  }

  #finish(end: { readonly error?: unknown }): void {
    this.#end ??= end
    this.#arrived?.()
  }

  /** The source may clean up. It may also never answer, so nobody waits for it. */
  #release(): void {
    try {
      Promise.resolve(this.#iterator.return?.()).catch(() => undefined)
    } catch {
      // Why we stopped is what is told, not how the source took it.
    }
  }

  #arrival(): Promise<void> {
    return new Promise((resolve) => (this.#arrived = resolve))
  }

  #take(): T[] {
    const { maxCount, maxSize, sizeOf } = this.#limits
    let count = 0
    let size = 0
    for (const item of this.#items) {
      const itemSize = sizeOf(item)
      if (count >= maxCount || (count > 0 && size + itemSize > maxSize)) break
      size += itemSize
      count++
    }
    this.#size -= size
    const chunk = this.#items.splice(0, count)
    if (!this.#isPumping) void this.#pump()
    return chunk
  }
}

function iterate<S>(source: AsyncIterable<S> | Iterable<S>): Iterated<S> {
  const { [Symbol.asyncIterator]: isAsync } = source as Partial<AsyncIterable<S>>
  return isAsync === undefined
    ? (source as Iterable<S>)[Symbol.iterator]()
    : (source as AsyncIterable<S>)[Symbol.asyncIterator]()
}
