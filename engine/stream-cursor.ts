/**
 * Follows a stream of segments that somebody else writes: replays whole groups as they come under
 * the durable mark, and never a byte past it. Changes nothing, and keeps nothing that it may not
 * show.
 *
 * The mark is what recovery goes by: the metadata's place, the place that a later group's header
 * names, the end that the next segment's header names.
 */
import type { StoreFacts } from '../codec/log-state.ts'
import type { StreamPosition } from '../codec/group.ts'
import type { Metadata, Place } from '../codec/metadata.ts'
import { sameStore, segmentSeed, type SegmentHeader } from '../codec/segment-header.ts'
import { corrupt, unsupportedVersion } from './errors.ts'
import { segmentFile, segmentPath, segmentsAmong } from './file-names.ts'
import type { FileSystem, StoreFile } from './file-system.ts'
import { examineRest, GroupScanner, type Predecessor } from './group-scanner.ts'
import { isMissing, withFile } from './io.ts'
import { replayGroup, replayTarget, type ReplayTarget } from './replay.ts'
import { isNewerVersion, readSegmentHead, type SegmentHead } from './segment-head.ts'
import { GrowingIndex } from './segment-index.ts'

/** What following a stream changes step by step. */
export interface FollowedStream {
  readonly facts: StoreFacts
  /** Records of the segment under the cursor go here. */
  index: GrowingIndex
}

export class StreamCursor implements FollowedStream {
  readonly storeId: Uint8Array
  readonly facts: StoreFacts
  index: GrowingIndex = new GrowingIndex()
  segment: number
  /** The end of the last group that was replayed. */
  position: number
  #last: Predecessor
  #target: ReplayTarget
  readonly #fileSystem: FileSystem
  readonly #dir: string

  private constructor(fileSystem: FileSystem, dir: string, head: SegmentHead) {
    const header = head.header as SegmentHeader
    this.#fileSystem = fileSystem
    this.#dir = dir
    this.storeId = header.storeId
    this.facts = head.facts as StoreFacts
    this.segment = head.segment
    this.position = head.start
    this.#last = predecessorIn(header)
    this.#target = replayTarget(this.facts, this.segment, this.index)
  }

  /** A cursor at the newest segment whose start checks; undefined while there is none. */
  static async start(fileSystem: FileSystem, dir: string): Promise<StreamCursor | undefined> {
    for (const segment of segmentsAmong(await fileSystem.list(dir)).reverse()) {
      const head = await readSegmentHead(fileSystem, dir, segment, 'snapshot')
      if (isNewerVersion(head.version)) throw unsupportedVersion(segmentFile(segment), head.version)
      // What a segment's start names was durable before the segment was begun.
      if (head.facts?.isPartial === false && head.header?.segment === segment) {
        return new StreamCursor(fileSystem, dir, head)
      }
    }
    return undefined
  }

  get #path(): string {
    return segmentPath(this.#dir, this.segment)
  }

  /** Replays what came under the mark in this segment. Throws CORRUPT for what can't be. */
  async advance(metadata: Metadata | undefined): Promise<void> {
    const next = await this.#nextHeader()
    await withFile(this.#fileSystem, this.#path, 'read', async (file) => {
      const size = await file.size()
      const place = metadata?.place.segment === this.segment ? metadata.place : undefined
      const mark = Math.max(next?.previous.end ?? 0, await this.#markIn(file, size, place))
      await this.#replayTo(file, mark)
    })
  }

  /** The header of the next segment, if it checks: then this segment has ended. */
  async #nextHeader(): Promise<SegmentHeader | undefined> {
    try {
      const next = this.segment + 1
      const head = await readSegmentHead(this.#fileSystem, this.#dir, next, 'header')
      if (head.header?.segment !== next) return undefined
      if (sameStore(head.header.storeId, this.storeId)) return head.header
      throw corrupt('R6', segmentFile(next), 0, [], 'the file is of another store')
    } catch (error) {
      if (isMissing(error)) return undefined
      throw error
    }
  }

  /** How far the groups behind the cursor, and the metadata, say that this segment was durable. */
  async #markIn(file: StoreFile, size: number, place: Place | undefined): Promise<number> {
    const scanner = this.#scanner(file)
    let mark = 0
    const ends: number[] = []
    const witness = (durable: StreamPosition): void => {
      if (durable.segment === this.segment) mark = Math.max(mark, durable.position)
    }
    await scanner.scan(size, ({ header, end }) => {
      witness(header.durable)
      if (place?.groupChecksum === header.checksum) ends.push(end)
      return true
    })
    const rest = await examineRest(file, this.#seed, scanner.position, size)
    if (rest.durable !== undefined) witness(rest.durable)
    // Metadata that names no group of ours, below the last whole one, is of another history.
    if (place === undefined) return mark
    const counts = ends.includes(place.position) || place.position > scanner.position
    return counts ? Math.max(mark, place.position) : mark
  }

  get #seed(): number {
    return segmentSeed(this.storeId, this.segment)
  }

  #scanner(file: StoreFile): GroupScanner {
    return new GroupScanner(file, this.#seed, this.position, this.#last)
  }

  async #replayTo(file: StoreFile, mark: number): Promise<void> {
    if (mark <= this.position) return
    const scanner = this.#scanner(file)
    const target = this.#target
    try {
      await scanner.scan(mark, (group) => {
        if (replayGroup(target, group)) return true
        const what = 'the frames of a group check, but contradict the state before it'
        throw corrupt('R4', segmentFile(this.segment), group.position, [], what)
      })
    } finally {
      this.position = scanner.position
      this.#last = scanner.last
    }
    if (scanner.position >= mark) return
    throw corrupt('R4', segmentFile(this.segment), scanner.position, [], "a group doesn't check")
  }

  /** Steps into the next segment if this one has ended here. The index starts afresh. */
  async step(): Promise<boolean> {
    const next = await this.#nextHeader()
    if (next?.previous.end !== this.position) return false
    if (next.previous.groupChecksum !== this.#last.checksum) {
      const what = 'the segment follows another history'
      throw corrupt('R6', segmentFile(this.segment + 1), 0, [], what)
    }
    const head = await readSegmentHead(this.#fileSystem, this.#dir, this.segment + 1, 'snapshot')
    if (head.facts === undefined) return false
    this.segment++
    this.position = head.start
    this.#last = predecessorIn(next)
    this.index = new GrowingIndex()
    this.#target = replayTarget(this.facts, this.segment, this.index)
    return true
  }
}

function predecessorIn({ previous }: SegmentHeader): Predecessor {
  return { number: previous.groupNumber, checksum: previous.groupChecksum }
}
