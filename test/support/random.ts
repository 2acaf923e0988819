/**
 * A seeded generator of pseudo-random numbers (mulberry32): the same seed and the same calls give
 * the same numbers, on every machine. Each simulation draws from exactly one of these.
 */

export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed | 0
  }

  /** A whole number from 0 to 2^32 - 1. */
  uint32(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return (mixed ^ (mixed >>> 14)) >>> 0
  }

  /** A whole number from 0 to `limit` - 1. */
  below(limit: number): number {
    return Math.floor((this.uint32() / 2 ** 32) * limit)
  }

  /** A whole number from `low` to `high`, both inclusive. */
  between(low: number, high: number): number {
    return low + this.below(high - low + 1)
  }

  /** True with the given probability; always draws one number. */
  chance(probability: number): boolean {
    return this.uint32() / 2 ** 32 < probability
  }

  pick<T>(choices: readonly [T, ...T[]] | readonly T[]): T {
    if (choices.length === 0) throw new RangeError('There is nothing to pick from')
    return choices[this.below(choices.length)] as T
  }

  /** The same items in another order. */
  shuffled<T>(items: readonly T[]): T[] {
    const rest = [...items]
    return items.map(() => rest.splice(this.below(rest.length), 1)[0] as T)
  }

  bytes(length: number): Uint8Array {
    return Uint8Array.from({ length }, () => this.uint32() & 0xff)
  }
}
