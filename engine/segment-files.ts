/**
 * Open descriptors for reading segments: few, shared, and closed once nobody uses them. A segment
 * that was unlinked is forgotten at once; reads under way finish on the descriptor they have.
 */
import { segmentPath } from './file-names.ts'
import type { FileSystem, StoreFile } from './file-system.ts'
import { InFlight } from './in-flight.ts'
import { ThreadGate } from './thread-gate.ts'

/** Segments that are used at once; more wait. */
const MAX_USED_FILES = 32
/** Descriptors kept open, those in use among them; more only while they are in use. */
const MAX_FILES = 64

interface OpenFile {
  readonly opening: Promise<StoreFile>
  users: number
  isForgotten: boolean
}

export class SegmentFiles {
  readonly #fileSystem: FileSystem
  readonly #dir: string
  /** In the order of their last use, oldest first. */
  readonly #files = new Map<number, OpenFile>()
  readonly #gate = new ThreadGate(MAX_USED_FILES)
  readonly #uses = new InFlight()

  constructor(fileSystem: FileSystem, dir: string) {
    this.#fileSystem = fileSystem
    this.#dir = dir
  }

  /** Reads bytes of a segment; resolves with how many there were. */
  read(
    segment: number,
    target: Uint8Array,
    at: number,
    length: number,
    position: number,
  ): Promise<number> {
    return this.use(segment, (file) => file.read(target, at, length, position))
  }

  /** Hands the segment's file to `task`, which must not use another one meanwhile. */
  async use<T>(segment: number, task: (file: StoreFile) => Promise<T>): Promise<T> {
    return this.#uses.run(() => this.#gate.run(() => this.#useNow(segment, task)))
  }

  async #useNow<T>(segment: number, task: (file: StoreFile) => Promise<T>): Promise<T> {
    const open = this.#open(segment)
    open.users++
    try {
      return await task(await open.opening)
    } finally {
      open.users--
      await this.#settle(segment, open)
    }
  }

  #open(segment: number): OpenFile {
    const known = this.#files.get(segment)
    const open = known ?? {
      opening: this.#fileSystem.open(segmentPath(this.#dir, segment), 'read'),
      users: 0,
      isForgotten: false,
    }
    this.#files.delete(segment)
    this.#files.set(segment, open)
    return open
  }

  async #settle(segment: number, open: OpenFile): Promise<void> {
    const failed = await open.opening.then(
      () => false,
      () => true,
    )
    if (failed) {
      if (this.#files.get(segment) === open) this.#files.delete(segment)
      return
    }
    if (open.isForgotten) await this.#closeIdle(open)
    else await this.#shrink()
  }

  async #closeIdle(open: OpenFile): Promise<void> {
    if (open.users > 0) return
    // A descriptor that was only read from has nothing to lose when its close fails.
    await open.opening.then((file) => file.close()).catch(() => undefined)
  }

  async #shrink(): Promise<void> {
    if (this.#files.size <= MAX_FILES) return
    for (const [segment, open] of this.#files) {
      if (this.#files.size <= MAX_FILES) return
      if (open.users === 0) await this.forget(segment)
    }
  }

  /** Closes the segment's descriptor, now or once the last read under way is done. */
  async forget(segment: number): Promise<void> {
    const open = this.#files.get(segment)
    if (open === undefined) return
    this.#files.delete(segment)
    open.isForgotten = true
    await this.#closeIdle(open)
  }

  /** Waits for the reads under way, and closes everything. */
  async close(): Promise<void> {
    await this.#uses.idle()
    await Promise.all([...this.#files.keys()].map((segment) => this.forget(segment)))
  }
}
