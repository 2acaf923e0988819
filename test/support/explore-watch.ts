/**
 * Watches what a store commits: where on the disk each record lies, whether it is durable when
 * somebody is told so, and what kinds of groups there were.
 */
import { constants } from 'node:os'
import { readU32, readU64 } from '../../codec/bytes.ts'
import {
  FRAME_HEADER_BYTES,
  FRAME_KIND,
  FRAME_KIND_AT,
  FRAME_LOGLET_AT,
  FRAME_OFFSET_AT,
  GROUP_FRAMES_AT,
  GROUP_HEADER_BYTES,
  GROUP_LENGTH_AT,
  GROUP_MAGIC,
  SNAPSHOT_LENGTH_AT,
} from '../../codec/format.ts'
import { groupsStart } from '../../codec/segment-header.ts'
import type { FileSystem, OpenMode, StoreFile } from '../../engine/file-system.ts'
import { FileLayer, FileSystemLayer, type CommitDone } from './explore-layer.ts'
import { errorCode } from './fs-error.ts'
import type { Owner } from './sim-scheduler.ts'

/** A group as it is given to the disk. */
export interface WatchedGroup {
  readonly path: string
  readonly beginsSegment: boolean
  /** Its bytes in the file; with the segment's start if it begins the segment. */
  readonly start: number
  readonly end: number
  readonly kinds: ReadonlySet<number>
  /** Whether the commit before it failed for space. */
  readonly isAfterNoSpace: boolean
  /** Whether another group came between the preparation of the file and this one. */
  readonly isPreparedAhead: boolean
}

export interface Place {
  readonly path: string
  /** The end of the group. */
  readonly end: number
  /** The frame itself. */
  readonly frame: { readonly start: number; readonly end: number }
}

export class CommitWatch {
  readonly #places = new Map<string, Place>()
  /** Where loglets were created. */
  readonly #creations = new Map<number, Place>()
  /** The code of the first commit that failed for another reason than space, in this process. */
  failure: string | undefined
  #isOutOfSpace = false
  /** Where the last group ends in its file. */
  lastEnd = 0
  #groups = 0
  /** How many groups there were when a file was opened for commits. */
  readonly #openedAt = new Map<string, number>()
  /** Called when a group is given to the disk, before anything happens to it. */
  onGroup: (group: WatchedGroup) => void = () => undefined
  /** Called when that group is durable. */
  onDurable: () => void = () => undefined
  /** Called when a file is put back after a commit for which there was no room. */
  onPutBack: () => void = () => undefined

  /** A watch on a copy of the disk. */
  fork(): CommitWatch {
    const copy = new CommitWatch()
    for (const [record, place] of this.#places) copy.#places.set(record, place)
    for (const [loglet, place] of this.#creations) copy.#creations.set(loglet, place)
    copy.lastEnd = this.lastEnd
    return copy
  }

  /** Another process takes over. */
  restart(): void {
    this.failure = undefined
    this.#isOutOfSpace = false
  }

  /** Where a record was last written. */
  placeOf(loglet: number, offset: number): Place | undefined {
    return this.#places.get(`${loglet} ${offset}`)
  }

  /** A commit ended; what it failed with, if it did. */
  note(error: unknown, isGroup: boolean): void {
    if (error instanceof Error) {
      this.#isOutOfSpace = isSpace(error)
      if (!this.#isOutOfSpace) this.failure ??= errorCode(error)
    } else if (isGroup) {
      this.#isOutOfSpace = false
      this.onDurable()
    }
  }

  /** A file was opened for commits. */
  opened(path: string): void {
    this.#openedAt.set(path, this.#groups)
  }

  truncated(): void {
    if (this.#isOutOfSpace) this.onPutBack()
  }

  /** Where a loglet was created. */
  creationOf(loglet: number): Place | undefined {
    return this.#creations.get(loglet)
  }

  /** Bytes are given to the disk. Returns whether they are a group, with or without its segment. */
  see(path: string, buffers: readonly Uint8Array[], position: number): boolean {
    const bytes = Buffer.concat(buffers)
    const at = position === 0 ? startLength(bytes) : 0
    const isGroup = at + GROUP_HEADER_BYTES <= bytes.length && readU32(bytes, at) === GROUP_MAGIC
    if (!isGroup) return false
    const end = position + at + GROUP_HEADER_BYTES + readU32(bytes, at + GROUP_LENGTH_AT)
    this.lastEnd = end
    const kinds = this.#seeFrames(bytes, at, { path, end, base: position })
    const isAfterNoSpace = this.#isOutOfSpace
    const isPreparedAhead = (this.#openedAt.get(path) ?? this.#groups) < this.#groups
    this.#groups++
    this.onGroup({
      path,
      beginsSegment: position === 0,
      start: position,
      end,
      kinds,
      isAfterNoSpace,
      isPreparedAhead,
    })
    return true
  }

  #seeFrames(
    bytes: Uint8Array,
    at: number,
    { path, end, base }: { readonly path: string; readonly end: number; readonly base: number },
  ): Set<number> {
    const kinds = new Set<number>()
    let next = at + GROUP_HEADER_BYTES
    for (let i = readU32(bytes, at + GROUP_FRAMES_AT); i > 0; i--) {
      if (next + FRAME_HEADER_BYTES > bytes.length) break
      const kind = bytes[next + FRAME_KIND_AT] as number
      kinds.add(kind)
      const after = next + FRAME_HEADER_BYTES + readU32(bytes, next)
      const place = { path, end, frame: { start: base + next, end: base + after } }
      const loglet = readU32(bytes, next + FRAME_LOGLET_AT)
      if (kind === FRAME_KIND.data) {
        this.#places.set(`${loglet} ${readU64(bytes, next + FRAME_OFFSET_AT)}`, place)
      } else if (kind === FRAME_KIND.create) this.#creations.set(loglet, place)
      next = after
    }
    return kinds
  }
}

/** The length of header and snapshot at the start of a segment; 0 if these are none. */
function startLength(bytes: Uint8Array): number {
  if (bytes.length < SNAPSHOT_LENGTH_AT + 4) return 0
  return groupsStart(readU32(bytes, SNAPSHOT_LENGTH_AT))
}

export class WatchedFileSystem extends FileSystemLayer {
  readonly #watch: CommitWatch
  readonly #owner: Owner

  /** What the owner asks for after it died is not watched. */
  constructor(inner: FileSystem, watch: CommitWatch, owner: Owner) {
    super(inner)
    this.#watch = watch
    this.#owner = owner
  }

  protected override wrap(file: StoreFile, path: string, mode: OpenMode): FileLayer {
    if (mode === 'commit' && this.#owner.isAlive) this.#watch.opened(path)
    return new WatchedFile(file, path, this.#watch, this.#owner)
  }
}

class WatchedFile extends FileLayer {
  readonly #watch: CommitWatch
  readonly #owner: Owner

  constructor(inner: StoreFile, path: string, watch: CommitWatch, owner: Owner) {
    super(inner, path)
    this.#watch = watch
    this.#owner = owner
  }

  #see(buffers: readonly Uint8Array[], position: number): boolean {
    return this.#owner.isAlive && this.#watch.see(this.path, buffers, position)
  }

  #note(error: unknown, isGroup: boolean): void {
    if (this.#owner.isAlive) this.#watch.note(error, isGroup)
  }

  override commit(buffers: readonly Uint8Array[], position: number, done: CommitDone): void {
    const isGroup = this.#see(buffers, position)
    this.inner.commit(buffers, position, (error, written) => {
      this.#note(error, isGroup)
      done(error, written)
    })
  }

  override truncate(size: number): Promise<void> {
    this.#watch.truncated()
    return this.inner.truncate(size)
  }

  override commitSync(buffers: readonly Uint8Array[], position: number): number {
    const isGroup = this.#see(buffers, position)
    try {
      const written = this.inner.commitSync(buffers, position)
      this.#note(null, isGroup)
      return written
    } catch (error) {
      this.#note(error, isGroup)
      throw error
    }
  }
}

const SPACE = new Set(['ENOSPC', 'EFBIG', 'EDQUOT'])

/** By the number, because Node.js has no name for EDQUOT. */
function isSpace(error: Error): boolean {
  const { errno } = error as NodeJS.ErrnoException
  return SPACE.has(errorCode(error)) || errno === -constants.errno.EDQUOT
}
