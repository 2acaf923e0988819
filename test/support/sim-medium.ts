/** What all files of a simulated disk share: the order of events, the space, and old bytes. */
import type { Random } from './random.ts'

export const SECTOR_BYTES = 512
export const PAGE_BYTES = 4096
export const SECTORS_PER_PAGE: number = PAGE_BYTES / SECTOR_BYTES

const MAX_STALE_SECTORS = 1024

interface StaleSector {
  readonly sector: number
  readonly bytes: Uint8Array
}

export class SimMedium {
  readonly capacityBytes: number
  readonly maxFileBytes: number
  readonly random: Random
  #usedPages = 0
  #event = 0
  #stale: StaleSector[] = []

  constructor(random: Random, capacityBytes: number, maxFileBytes: number) {
    this.random = random
    this.capacityBytes = capacityBytes
    this.maxFileBytes = maxFileBytes
  }

  /** The number of the last event; everything that happened so far has at most this number. */
  get now(): number {
    return this.#event
  }

  nextEvent(): number {
    this.#event += 1
    return this.#event
  }

  get usedBytes(): number {
    return this.#usedPages * PAGE_BYTES
  }

  /** Takes one page of the disk; false if it is full. */
  takePage(): boolean {
    if (this.usedBytes + PAGE_BYTES > this.capacityBytes) return false
    this.#usedPages += 1
    return true
  }

  givePages(count: number): void {
    this.#usedPages -= count
  }

  /** After a crash: what is taken is what the surviving files take, even if that is too much. */
  recountPages(count: number): void {
    this.#usedPages = count
  }

  /** Remembers what a file gave back, because it may show up again in another one. */
  discard(sector: number, bytes: Uint8Array): void {
    if (bytes.every((byte) => byte === 0)) return
    if (this.#stale.length === MAX_STALE_SECTORS) this.#stale = this.#stale.slice(-512)
    this.#stale.push({ sector, bytes: bytes.slice() })
  }

  /**
   * What a sector may hold that nobody wrote: zeros, noise, or a sector of an earlier file, with
   * preference for one that was at the very same place.
   */
  unwritten(sector: number): Uint8Array {
    const samePlace = this.#stale.filter((stale) => stale.sector === sector)
    switch (this.random.below(4)) {
      case 0:
        return new Uint8Array(SECTOR_BYTES)
      case 1:
        return this.random.bytes(SECTOR_BYTES)
      case 2:
        return this.#pick(this.#stale)
      default:
        return this.#pick(samePlace)
    }
  }

  #pick(stale: readonly StaleSector[]): Uint8Array {
    return stale.length === 0 ? new Uint8Array(SECTOR_BYTES) : this.random.pick(stale).bytes
  }

  /** The same state with another generator. */
  fork(random: Random): SimMedium {
    const copy = new SimMedium(random, this.capacityBytes, this.maxFileBytes)
    copy.#usedPages = this.#usedPages
    copy.#event = this.#event
    copy.#stale = [...this.#stale]
    return copy
  }
}
