/** Payloads as they might be: random, so that no store gains by compressing them. */
import { randomFillSync } from 'node:crypto'

const VARIETY = 256

/** Gives payloads of one size in turn; they are reused, so nobody may change them. */
export class Payloads {
  readonly #payloads: readonly Buffer[]
  #next = 0

  constructor(size: number) {
    const bytes = randomFillSync(Buffer.alloc(size * VARIETY))
    this.#payloads = Array.from({ length: VARIETY }, (_, index) =>
      bytes.subarray(index * size, (index + 1) * size),
    )
  }

  next(): Buffer {
    this.#next = (this.#next + 1) % VARIETY
    return this.#payloads[this.#next] as Buffer
  }

  take(count: number): Buffer[] {
    return Array.from({ length: count }, () => this.next())
  }
}
