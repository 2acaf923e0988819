/**
 * All clients that wait for data: how many there are, and what time does to them. One clock looks
 * after all, so that ten thousand of them are no ten thousand timers.
 */
import { unavailable } from './http-error.ts'

/** A client that waits. */
export interface LiveReader {
  /** Looks whether it is time to do something. */
  tick(nowMs: number): void
  /** Ends properly, because the server is going down. */
  shutDown(): void
}

const TICK_MS = 250

export class LiveReaders {
  readonly #max: number
  readonly #readers = new Set<LiveReader>()
  #clock: NodeJS.Timeout | undefined
  #isShutDown = false

  constructor(max: number) {
    this.#max = max
  }

  get size(): number {
    return this.#readers.size
  }

  /** Throws 503 when there are too many already, or the server is going down. */
  add(reader: LiveReader): void {
    if (this.#isShutDown) throw unavailable('SHUTTING_DOWN', 'The server is going down')
    if (this.#readers.size >= this.#max) {
      throw unavailable('TOO_MANY_READERS', 'Too many clients wait for data')
    }
    this.#readers.add(reader)
    this.#clock ??= setInterval(() => this.#tick(), TICK_MS).unref()
  }

  remove(reader: LiveReader): void {
    this.#readers.delete(reader)
    if (this.#readers.size === 0) this.#stopClock()
  }

  /** Ends all of them; there will be no others. */
  shutDown(): void {
    this.#isShutDown = true
    for (const reader of [...this.#readers]) reader.shutDown()
    this.#readers.clear()
    this.#stopClock()
  }

  #tick(): void {
    const nowMs = performance.now()
    for (const reader of this.#readers) reader.tick(nowMs)
  }

  #stopClock(): void {
    clearInterval(this.#clock)
    this.#clock = undefined
  }
}
