/**
 * Keeps the metadata file no more than a second behind the commits, without ever making one wait:
 * after a commit that it doesn't cover, at a roll, and at close.
 */
import type { StoreFacts } from '../codec/log-state.ts'
import type { LogletWitness, Metadata, Place } from '../codec/metadata.ts'
import type { Background } from './background.ts'
import type { Clock } from './clock.ts'
import type { MetadataFile } from './metadata-file.ts'
import type { StoreState } from './store-state.ts'

/** Half of the second that is allowed, so that a slow disk still makes it. */
const DELAY_MS = 500

export interface MetadataKeeperOptions {
  readonly file: MetadataFile
  readonly clock: Clock
  readonly background: Background
  readonly storeId: Uint8Array
  readonly state: StoreState
  /** Where the stream is durable now. */
  readonly place: () => Place
  /** What is on the disk already, if it is of use. */
  readonly found: Metadata | undefined
}

export class MetadataKeeper {
  readonly #options: MetadataKeeperOptions
  #timer: unknown
  #writing: Promise<void> = Promise.resolve()
  /** The generation of the last attempt, durable or not. */
  #generation: number
  #durableGeneration: number
  #newestSegment: number
  /** The newest segment that the durable metadata names. */
  #namedSegment: number
  #coveredGroup = -1
  #isStopped = false

  constructor(options: MetadataKeeperOptions) {
    this.#options = options
    this.#generation = options.found?.generation ?? 0
    this.#durableGeneration = this.#generation
    this.#newestSegment = options.found?.newestSegment ?? 0
    this.#namedSegment = this.#newestSegment
  }

  /** The generation that is known durable. */
  get durableGeneration(): number {
    return this.#durableGeneration
  }

  /** Generations up to this one may have been written by somebody. */
  skipGenerations(generation: number): void {
    this.#generation = Math.max(this.#generation, generation)
  }

  /** Whether the durable metadata vouches for a segment's file. */
  isNamed(segment: number): boolean {
    return segment <= this.#namedSegment
  }

  /** Vouches for a segment whose directory entry is durable; resolves once that is durable too. */
  name(segment: number): Promise<void> {
    this.#newestSegment = Math.max(this.#newestSegment, segment)
    return this.write()
  }

  /** A group became durable: cover it soon. */
  onCommit(): void {
    if (this.#timer !== undefined || this.#isStopped) return
    this.#timer = this.#options.clock.setTimer(() => {
      this.#timer = undefined
      this.#options.background.run('Writing the metadata', () => this.#cover())
    }, DELAY_MS)
  }

  /** A segment was begun: cover it now, off the commit path. */
  onRoll(): void {
    if (this.#isStopped) return
    this.#options.background.run('Writing the metadata', () => this.#cover())
  }

  async #cover(): Promise<void> {
    if (this.#isStopped || this.#options.place().groupNumber === this.#coveredGroup) return
    try {
      await this.write()
    } catch (error) {
      this.onCommit()
      throw error
    }
  }

  /** Writes what is durable now, after the writes that are under way. */
  write(isClean = false): Promise<void> {
    const written = this.#writing.then(() => this.#writeNow(isClean))
    this.#writing = written.catch(() => undefined)
    return written
  }

  async #writeNow(clean: boolean): Promise<void> {
    const { file, storeId, state } = this.#options
    const place = this.#options.place()
    // A segment that holds a group is there, also if what named it was lost.
    const newestSegment = Math.max(this.#newestSegment, place.groupNumber > 0 ? place.segment : 0)
    const generation = ++this.#generation
    await file.write({
      storeId,
      generation,
      place,
      newestSegment,
      clean,
      nextLogletId: state.nextLogletId,
      loglets: witnessesOf(state.facts),
    })
    this.#durableGeneration = generation
    this.#namedSegment = newestSegment
    this.#coveredGroup = place.groupNumber
  }

  /** Removes the file, so that it says nothing any more. */
  remove(): Promise<void> {
    return this.#options.file.remove()
  }

  /** Writes nothing by itself any more. */
  stop(): void {
    this.#isStopped = true
    this.#options.clock.clearTimer(this.#timer)
    this.#timer = undefined
  }
}

/** What the metadata says of each loglet. */
export function witnessesOf(facts: StoreFacts): LogletWitness[] {
  return [...facts.loglets.values()].map(({ id, tail, trimPoint, seal }) => ({
    loglet: id,
    released: tail - 1,
    trimPoint,
    sealed: seal !== undefined,
  }))
}
