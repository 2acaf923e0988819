/**
 * The reserve: the next segment's file, made ahead in the background. Its directory entry is
 * synced, the metadata names it, and it is filled with synced zeros, so that a roll is one write
 * and one sync like any commit, and so that a full disk can still be trimmed.
 */
import { alignUp } from '../codec/bytes.ts'
import { groupsStart } from '../codec/segment-header.ts'
import type { Background } from './background.ts'
import type { Clock } from './clock.ts'
import { segmentPath } from './file-names.ts'
import type { FileSystem, StoreFile } from './file-system.ts'
import { isSpaceError, withFile, writeZeros } from './io.ts'
import type { MetadataKeeper } from './metadata-keeper.ts'

/** Room for a start that may grow: twice the snapshot's bound, in steps, so that growing is rare. */
export function snapshotRoom(snapshotBytes: number): number {
  return alignUp(groupsStart(2 * snapshotBytes), SNAPSHOT_STEP_BYTES)
}

const SNAPSHOT_STEP_BYTES = 16 * 1024

/** How long after a failure the next attempt is made, unless room was made meanwhile. */
const RETRY_MS = 1000

/** A segment's file, ready for its first group. */
export interface PreparedSegment {
  readonly segment: number
  readonly file: StoreFile
  /** The size of the file, all of it zeros. */
  readonly size: number
}

export interface ReserveOptions {
  readonly fileSystem: FileSystem
  readonly dir: string
  readonly clock: Clock
  readonly background: Background
  readonly metadata: MetadataKeeper
  /** How many zeros the file must hold for the state as it is now. */
  readonly bytes: () => number
}

export class Reserve {
  readonly #options: ReserveOptions
  /** The segment to prepare, or that is prepared. */
  #segment: number
  #prepared: PreparedSegment | undefined
  #preparing: Promise<PreparedSegment> | undefined
  #failedAt = Number.NEGATIVE_INFINITY
  /** Bytes at the start of the file that are known to be synced zeros. */
  #zeros: number

  constructor(options: ReserveOptions, segment: number, zeros: number) {
    this.#options = options
    this.#segment = segment
    this.#zeros = zeros
  }

  /** The size of the file that is ready, in bytes. */
  get size(): number {
    return this.#prepared?.size ?? 0
  }

  /** Whether the file is there to be rolled to, named or not. */
  get isPrepared(): boolean {
    return this.#prepared !== undefined
  }

  /** The file, if it is ready and the metadata vouches for it. */
  get ready(): PreparedSegment | undefined {
    return this.#options.metadata.isNamed(this.#segment) ? this.#prepared : undefined
  }

  /** The file even if the metadata doesn't vouch for it: only for what gives space back. */
  get unnamed(): PreparedSegment | undefined {
    return this.#prepared
  }

  /** Makes it ready in the background, unless it is or a recent attempt failed. */
  prepareSoon(): void {
    if (this.ready !== undefined || this.#preparing !== undefined) return
    if (this.#failedJustNow) return
    this.#options.background.run('Preparing the next segment', async () => {
      await this.prepare()
    })
  }

  /** Room was made: a failed attempt may succeed now. */
  retry(): void {
    this.#failedAt = Number.NEGATIVE_INFINITY
    this.prepareSoon()
  }

  /** The state outgrew the zeros that are there: adds more, unless a roll comes first. */
  growSoon(): void {
    const prepared = this.#prepared
    if (prepared === undefined || prepared.size >= this.#options.bytes()) return
    if (this.#preparing !== undefined || this.#failedJustNow) return
    // Nobody may roll to a file that zeros are being written to.
    this.#prepared = undefined
    this.#options.background.run('Growing the next segment', async () => {
      await this.#share(prepared.file.close().then(() => this.#prepare()))
    })
  }

  get #failedJustNow(): boolean {
    return this.#options.clock.now() - this.#failedAt < RETRY_MS
  }

  /** Resolves once it is ready. Attempts under way are shared. */
  prepare(): Promise<PreparedSegment> {
    return this.#preparing ?? this.#share(this.#prepare())
  }

  #share(preparing: Promise<PreparedSegment>): Promise<PreparedSegment> {
    this.#preparing = preparing.finally(() => {
      this.#preparing = undefined
    })
    return this.#preparing
  }

  /** Whether it is being prepared, or made larger. */
  get isBusy(): boolean {
    return this.#preparing !== undefined
  }

  /** Resolves when the attempt under way, if there is one, is over. */
  async settled(): Promise<void> {
    await this.#preparing?.catch(() => undefined)
  }

  async #prepare(): Promise<PreparedSegment> {
    try {
      for (;;) {
        const segment = this.#segment
        const prepared = (this.#prepared ??= await this.#make(segment))
        if (!this.#options.metadata.isNamed(segment)) await this.#options.metadata.name(segment)
        // While it was being named it may have been rolled to.
        if (this.#prepared === prepared) return prepared
      }
    } catch (error) {
      this.#failedAt = this.#options.clock.now()
      throw error
    }
  }

  async #make(segment: number): Promise<PreparedSegment> {
    const { fileSystem, dir, bytes } = this.#options
    const path = segmentPath(dir, segment)
    const size = await withFile(fileSystem, path, 'open-or-create', async (file) => {
      return this.#fill(file, Math.max(bytes(), await file.size()))
    })
    await fileSystem.syncDirectory(dir)
    return { segment, file: await fileSystem.open(path, 'commit'), size }
  }

  /**
   * Fills the file with synced zeros. Without room for all of them, those that it has must do: a
   * full disk is trimmed with them.
   */
  async #fill(file: StoreFile, wanted: number): Promise<number> {
    // Zeros of an attempt that failed may not be on the disk, so they are written again.
    const known = this.#zeros
    this.#zeros = 0
    let size = wanted
    try {
      if (known < wanted) await writeZeros(file, known, wanted)
    } catch (error) {
      if (known === 0 || !isSpaceError(error)) throw error
      this.#failedAt = this.#options.clock.now()
      await file.truncate(known)
      size = known
    }
    if (known < wanted) await file.sync()
    this.#zeros = size
    return size
  }

  /** The prepared file was rolled to: the next one is wanted. */
  advance(): void {
    this.#segment++
    this.#prepared = undefined
    this.#zeros = 0
    this.prepareSoon()
  }

  async close(): Promise<void> {
    const prepared = this.#prepared
    this.#prepared = undefined
    await prepared?.file.close()
  }
}
