/**
 * Judges a store at open: what is whole, what is torn, what is damaged. It reads and never writes;
 * `settle` (recovery-settle.ts) makes the changes, after everything was judged.
 *
 *     R1  only zeros or end of file after the last whole group     the tail
 *     R2  other bytes that don't check                             torn: they go
 *     R3  a group without all its frames, or its segment's start   the whole group goes
 *     R4  anything that doesn't check below the durable mark       CORRUPT
 *     R5  trailing segments without a whole group                  emptied, reused
 *     R6  a live segment is missing or is another store's          CORRUPT
 *     R7  metadata missing, damaged, old, of another history       rebuilt
 *     R8  an intact prefix with a newer version                    UNSUPPORTED_VERSION
 *     R9  whole groups                                             kept
 *
 * R1, R2, R3, R5 and R9 hold only at or past the durable mark: the greatest of the metadata's
 * place, the position in any group header that checks on its own, and the previous segment's end
 * in any segment header that checks.
 */
import { comparePositions, type StreamPosition } from '../codec/group.ts'
import { emptyFacts, type StoreFacts } from '../codec/log-state.ts'
import type { Metadata, Place } from '../codec/metadata.ts'
import { sameStore, segmentSeed } from '../codec/segment-header.ts'
import { corrupt, unsupportedVersion } from './errors.ts'
import { METADATA_FILE, segmentFile, segmentPath, segmentsAmong } from './file-names.ts'
import type { FileSystem } from './file-system.ts'
import {
  examineRest,
  GroupScanner,
  type Predecessor,
  type Rest,
  type ScannedGroup,
} from './group-scanner.ts'
import { withFile } from './io.ts'
import type { RecoveryFinding, RecoveryLabel } from './metrics.ts'
import { readMetadata, type MetadataFound } from './metadata-file.ts'
import { judgeOlderSegments, readGroupHeader } from './recovery-older.ts'
import { stakeAfter } from './recovery-stakes.ts'
import { replayGroup, replayTarget, type ReplayTarget } from './replay.ts'
import {
  isNewerVersion,
  readSegmentHead,
  type SegmentHead,
  type LiveSegment,
} from './segment-head.ts'
import { GrowingIndex } from './segment-index.ts'

/** The place before any group. */
export const ORIGIN: Place = {
  segment: 1,
  position: 0,
  groupPosition: 0,
  groupNumber: 0,
  groupChecksum: 0,
}

/** The segment with the last whole group. */
export interface TailSegment {
  readonly head: SegmentHead
  /** The seed of its checksums. */
  readonly seed: number
  readonly place: Place
  /** The durable mark in this segment as a group boundary, with the group before it. */
  readonly mark: { readonly position: number; readonly last: Predecessor }
  /** The group before the last one. */
  readonly beforeLast: Predecessor
  readonly index: GrowingIndex
  readonly rest: Rest
  readonly groups: number
  /** The greatest generation of the metadata that a whole group names. */
  readonly generation: number
  /** Whether the metadata's place, if it is in this segment, is the end of the group it names. */
  readonly seesMetadata: boolean
}

/** What a store was judged to be. */
export interface Judgement {
  /** Undefined for a directory in which no store was ever made. */
  readonly storeId: Uint8Array | undefined
  readonly facts: StoreFacts
  readonly nextLogletId: number
  /** Undefined while there is no whole group. */
  readonly tail: TailSegment | undefined
  /** All live segments, oldest first, the tail's included. */
  readonly live: readonly LiveSegment[]
  /** Segments behind the tail's, without a whole group. */
  readonly trailing: readonly SegmentHead[]
  readonly metadata: Metadata | undefined
  readonly names: readonly string[]
  readonly isClean: boolean
  readonly findings: readonly RecoveryFinding[]
  readonly droppedBytes: number
  readonly droppedFrames: number
  readonly metadataRebuilt: boolean
}

/** Judges the store in `dir`. Throws CORRUPT or UNSUPPORTED_VERSION, or what the disk threw. */
export function judgeStore(fileSystem: FileSystem, dir: string): Promise<Judgement> {
  return new Judge(fileSystem, dir).judge()
}

class Judge {
  readonly #fileSystem: FileSystem
  readonly #dir: string
  readonly #findings: RecoveryFinding[] = []
  #metadata: Metadata | undefined
  #names: string[] = []
  #segments: number[] = []
  #trailing: SegmentHead[] = []
  #trailingRests: Rest[] = []
  #metadataRebuilt = false

  constructor(fileSystem: FileSystem, dir: string) {
    this.#fileSystem = fileSystem
    this.#dir = dir
  }

  async judge(): Promise<Judgement> {
    this.#names = await this.#fileSystem.list(this.#dir)
    this.#segments = segmentsAmong(this.#names)
    const found = await readMetadata(this.#fileSystem, this.#dir)
    if (isNewerVersion(found.version)) throw unsupportedVersion(METADATA_FILE, found.version)
    this.#metadata = found.metadata
    const base = await this.#findBase()
    if (base === undefined) return this.#judgeWithoutGroups(found)
    if (found.metadata === undefined) this.#rebuild(found.isThere ? 'is damaged' : 'is missing')
    return this.#judgeFrom(base)
  }

  #find(label: RecoveryLabel, segment: number, position: number, message: string): void {
    const file = label === 'R7' ? METADATA_FILE : segmentFile(segment)
    this.#findings.push({ label, file, position, message })
  }

  #rebuild(why: string): void {
    if (this.#metadataRebuilt) return
    this.#metadataRebuilt = true
    this.#find('R7', 0, 0, `The metadata ${why}; it is rebuilt from the segments`)
  }

  /** The newest segment with a whole first group; those behind it are trailing. */
  async #findBase(): Promise<SegmentHead | undefined> {
    for (const segment of [...this.#segments].reverse()) {
      const head = await readSegmentHead(this.#fileSystem, this.#dir, segment, 'snapshot')
      if (isNewerVersion(head.version)) throw unsupportedVersion(segmentFile(segment), head.version)
      const ours = this.#requireOurs(head)
      if (await this.#hasWholeGroup(ours)) return ours
      this.#trailing.unshift(ours)
    }
    return undefined
  }

  /**
   * R6: a file whose header checks, but names another store or another number. In a file that the
   * metadata doesn't vouch for, that is what another file left in its place on the disk: no header.
   */
  #requireOurs(head: SegmentHead, ours = this.#metadata?.storeId): SegmentHead {
    const { header, segment } = head
    const isOther = header && ours && !sameStore(ours, header.storeId)
    if (header === undefined || (isOther !== true && header.segment === segment)) return head
    if (this.#metadata !== undefined && segment > this.#metadata.newestSegment) {
      return { ...head, header: undefined, facts: undefined, start: 0 }
    }
    const what = isOther === true ? 'is of another store' : `is a copy of segment ${header.segment}`
    throw corrupt('R6', segmentFile(segment), 0, [], `the file ${what}`)
  }

  async #hasWholeGroup(head: SegmentHead): Promise<boolean> {
    if (head.facts === undefined || head.header === undefined) return false
    const seed = segmentSeed(head.header.storeId, head.segment)
    const { groupNumber: number, groupChecksum: checksum } = head.header.previous
    return withFile(this.#fileSystem, this.#path(head.segment), 'read', async (file) => {
      const scanner = new GroupScanner(file, seed, head.start, { number, checksum })
      let isWhole = false
      await scanner.scan(head.size, () => {
        isWhole = true
        return false
      })
      return isWhole
    })
  }

  #path(segment: number): string {
    return segmentPath(this.#dir, segment)
  }

  async #judgeFrom(base: SegmentHead): Promise<Judgement> {
    const storeId = (base.header as NonNullable<SegmentHead['header']>).storeId
    for (const head of this.#trailing) this.#requireOurs(head, storeId)
    await this.#examineTrailing(storeId)
    const facts = base.facts as StoreFacts
    if (facts.isPartial === true) {
      const what = 'the state was lost with the segments behind this one'
      throw corrupt('R4', segmentFile(base.segment), 0, [], what)
    }
    const tail = await this.#scanBase(base, facts)
    await this.#requireDurable(tail, facts)
    const last = { segment: base.segment, end: tail.place.position, size: base.size }
    const live = await judgeOlderSegments(
      this.#fileSystem,
      this.#dir,
      base,
      facts,
      this.#segments,
      last,
    )
    await this.#judgeMetadata(tail, facts)
    const isClean = this.#isClean(tail)
    const torn = this.#reportTail(tail, isClean)
    return {
      ...this.#common(facts, storeId),
      ...torn,
      tail,
      live,
      isClean,
    }
  }

  #common(
    facts: StoreFacts,
    storeId: Uint8Array | undefined,
  ): Omit<Judgement, 'tail' | 'live' | 'isClean' | 'droppedBytes' | 'droppedFrames'> {
    return {
      storeId,
      facts,
      nextLogletId: Math.max(facts.nextLogletId, this.#metadata?.nextLogletId ?? 1),
      trailing: this.#trailing,
      metadata: this.#metadata,
      names: this.#names,
      findings: this.#findings,
      metadataRebuilt: this.#metadataRebuilt,
    }
  }

  async #examineTrailing(storeId: Uint8Array): Promise<void> {
    for (const { segment, size } of this.#trailing) {
      const seed = segmentSeed(storeId, segment)
      const rest = await withFile(this.#fileSystem, this.#path(segment), 'read', (file) =>
        examineRest(file, seed, 0, size),
      )
      this.#trailingRests.push(rest)
    }
  }

  async #scanBase(head: SegmentHead, facts: StoreFacts): Promise<TailSegment> {
    const header = head.header as NonNullable<SegmentHead['header']>
    const { storeId, previous } = header
    const seed = segmentSeed(storeId, head.segment)
    const index = new GrowingIndex()
    const last = { number: previous.groupNumber, checksum: previous.groupChecksum }
    return withFile(this.#fileSystem, this.#path(head.segment), 'read', async (file) => {
      const scanner = new GroupScanner(file, seed, head.start, last)
      const target = replayTarget(facts, head.segment, index)
      const scan = new BaseScan(target, last, this.#metadata?.place)
      await scanner.scan(head.size, (group) => scan.visit(group, scanner.last))
      scan.reach(scanner.position, scanner.last)
      const rest = await examineRest(file, seed, scanner.position, head.size)
      if (scan.contradicts) this.#throwContradiction(head.segment, scanner.position)
      const place: Place = {
        segment: head.segment,
        position: scanner.position,
        groupPosition: scanner.groupPosition,
        groupNumber: scanner.last.number,
        groupChecksum: scanner.last.checksum,
      }
      const { mark, beforeLast, groups, generation, seesMetadata } = scan
      const found = { mark, beforeLast, groups, generation, seesMetadata }
      return { head, seed, place, index, rest, ...found }
    })
  }

  #throwContradiction(segment: number, position: number): never {
    const what = 'the frames of a group check, but contradict the state before it'
    throw corrupt('R4', segmentFile(segment), position, [], what)
  }

  /** R4 and R6: nothing that any witness saw durable may be missing. */
  async #requireDurable(tail: TailSegment, facts: StoreFacts): Promise<void> {
    const mark = this.#durableMark(tail)
    if (comparePositions(mark, tail.place) > 0) await this.#throwLoss(mark, tail, facts)
    const newest = this.#segments.at(-1) as number
    const named = Math.max(this.#metadata?.newestSegment ?? 0, newest)
    for (let segment = tail.head.segment; segment <= named; segment++) {
      if (!this.#segments.includes(segment)) await this.#throwMissing(segment, tail, facts)
    }
  }

  #durableMark(tail: TailSegment): StreamPosition {
    const witnesses: (StreamPosition | undefined)[] = [
      this.#metadata?.place,
      tail.rest.durable,
      ...this.#trailing.map(previousEnd),
      ...this.#trailingRests.map((rest) => rest.durable),
    ]
    let mark: StreamPosition = { segment: tail.head.segment, position: tail.mark.position }
    for (const witness of witnesses) {
      if (witness !== undefined && comparePositions(witness, mark) > 0) mark = witness
    }
    return mark
  }

  async #throwLoss(mark: StreamPosition, tail: TailSegment, facts: StoreFacts): Promise<never> {
    const { segment, position } = tail.place
    const next = this.#trailing.find((head) => head.segment === segment + 1)
    const endedLater = (next?.header?.previous.end ?? 0) > position
    if (mark.segment > segment && !endedLater && next === undefined) {
      return this.#throwMissing(segment + 1, tail, facts)
    }
    const isHere = mark.segment === segment || endedLater
    const logs = await this.#stakes(tail, facts)
    const what = `what was durable up to ${mark.position} of segment ${mark.segment} doesn't check`
    throw corrupt(
      'R4',
      segmentFile(isHere ? segment : segment + 1),
      isHere ? position : 0,
      logs,
      what,
    )
  }

  async #throwMissing(segment: number, tail: TailSegment, facts: StoreFacts): Promise<never> {
    const logs = await this.#stakes(tail, facts)
    throw corrupt('R6', segmentFile(segment), 0, logs, 'the segment is missing')
  }

  #stakes(tail: TailSegment, facts: StoreFacts): ReturnType<typeof stakeAfter> {
    const storeId = (tail.head.header as NonNullable<SegmentHead['header']>).storeId
    const behind = this.#segments.filter((segment) => segment > tail.head.segment)
    return stakeAfter(this.#fileSystem, this.#dir, facts, tail.place, behind, {
      storeId,
      metadata: this.#metadata,
    })
  }

  /** R7: metadata that is of another history, or older than the segments know it to be. */
  async #judgeMetadata(tail: TailSegment, facts: StoreFacts): Promise<void> {
    const metadata = this.#metadata
    if (metadata === undefined) return
    const { place, clean, generation, newestSegment } = metadata
    if (place.segment >= facts.firstSegment && !(await this.#isOurHistory(place, tail))) {
      this.#rebuild('is of another history')
    }
    const known = Math.max(tail.generation, tail.rest.generation)
    const isBehind = comparePositions(place, tail.place) < 0
    if (clean && isBehind) this.#rebuild('is old: groups follow the clean close it records')
    else if (generation < known) this.#rebuild('is old: a group names a newer one')
    else if (newestSegment < tail.head.segment) this.#rebuild('is old: it names no such segment')
  }

  /** Whether the group that the metadata names stands at its place. */
  async #isOurHistory(place: Place, tail: TailSegment): Promise<boolean> {
    if (place.groupNumber === 0) return true
    if (place.segment === tail.head.segment) return tail.seesMetadata
    const { storeId } = tail.head.header as NonNullable<SegmentHead['header']>
    const seed = segmentSeed(storeId, place.segment)
    const header = await withFile(this.#fileSystem, this.#path(place.segment), 'read', (file) =>
      readGroupHeader(file, place.groupPosition, seed),
    )
    return header?.number === place.groupNumber && header.checksum === place.groupChecksum
  }

  #isClean(tail: TailSegment): boolean {
    if (this.#metadata?.clean !== true || this.#metadataRebuilt) return false
    const isHere = comparePositions(this.#metadata.place, tail.place) === 0
    return isHere && tail.rest.isZero && this.#trailingRests.every((rest) => rest.isZero)
  }

  /** R1, R2, R3, R5 and R9: what an open after a crash found, and drops. */
  #reportTail(
    tail: TailSegment,
    isClean: boolean,
  ): { readonly droppedBytes: number; readonly droppedFrames: number } {
    const { segment, position } = tail.place
    if (isClean) return { droppedBytes: 0, droppedFrames: 0 }
    this.#find('R9', segment, tail.head.start, `${tail.groups} whole groups are kept`)
    const { rest } = tail
    if (rest.isZero) this.#find('R1', segment, position, 'only zeros follow the last whole group')
    else if (rest.header === undefined) {
      this.#find('R2', segment, position, `${rest.bytes} torn bytes go`)
    } else this.#find('R3', segment, position, `a group of ${rest.header.frames} frames is torn`)
    return this.#reportTrailing(rest)
  }

  #reportTrailing(first: Rest | undefined): {
    readonly droppedBytes: number
    readonly droppedFrames: number
  } {
    this.#trailing.forEach((head, i) => {
      const rest = this.#trailingRests[i] as Rest
      if (rest.isZero) return
      this.#find('R5', head.segment, 0, `${rest.bytes} bytes without a whole group go`)
      if (rest.frames > 0) this.#find('R3', head.segment, 0, `${rest.frames} frames are torn`)
    })
    const rests = [first, ...this.#trailingRests].filter((rest) => rest !== undefined)
    return {
      droppedBytes: rests.reduce((sum, rest) => sum + rest.bytes, 0),
      droppedFrames: rests.reduce((sum, rest) => sum + rest.frames, 0),
    }
  }

  /** No segment has a whole group: a store that was never written, or one that lost everything. */
  async #judgeWithoutGroups(found: MetadataFound): Promise<Judgement> {
    const { metadata } = found
    if (metadata === undefined) await this.#requireNothingLost(found)
    else await this.#requireNothingWritten(metadata)
    const torn = this.#reportTrailing(undefined)
    return {
      ...this.#common(emptyFacts(), metadata?.storeId),
      ...torn,
      tail: undefined,
      live: [],
      isClean: false,
    }
  }

  /** Without metadata only nothing at all, or an empty segment 1, can be a new store. */
  async #requireNothingLost(found: MetadataFound): Promise<void> {
    const [first] = this.#trailing
    if (first === undefined) {
      if (!found.isThere) return
      throw corrupt('R6', segmentFile(1), 0, [], 'the metadata is damaged and no segment is there')
    }
    if (first.segment === 1 && this.#trailing.length === 1) {
      const rest = await withFile(this.#fileSystem, this.#path(1), 'read', (file) =>
        examineRest(file, 0, 0, first.size),
      )
      this.#trailingRests.push(rest)
      if (rest.isZero) return
    }
    const what = 'the metadata is gone, and no segment has a whole group'
    throw corrupt('R7', segmentFile(first.segment), 0, [], what)
  }

  /** The metadata says that no group was ever durable: then no witness may say otherwise. */
  async #requireNothingWritten(metadata: Metadata): Promise<void> {
    await this.#examineTrailing(metadata.storeId)
    const { place, newestSegment } = metadata
    const marks = [place, ...this.#trailingRests.map((rest) => rest.durable)]
    const mark = marks.find((at) => at !== undefined && comparePositions(at, ORIGIN) > 0)
    for (let segment = 1; segment <= newestSegment; segment++) {
      if (this.#segments.includes(segment)) continue
      throw corrupt('R6', segmentFile(segment), 0, [], 'the segment is missing')
    }
    if (mark === undefined) return
    const behind = this.#segments
    const logs = await stakeAfter(this.#fileSystem, this.#dir, emptyFacts(), ORIGIN, behind, {
      storeId: metadata.storeId,
      metadata,
    })
    throw corrupt('R4', segmentFile(mark.segment), 0, logs, 'no group that was durable is whole')
  }
}

/** What a segment's header says about how far the one before it was durable. */
function previousEnd(head: SegmentHead): StreamPosition | undefined {
  if (head.header === undefined || head.segment === 1) return undefined
  return { segment: head.segment - 1, position: head.header.previous.end }
}

/** Replays the segment with the last whole group, and follows the durable mark in it. */
class BaseScan {
  contradicts = false
  groups = 0
  generation = 0
  seesMetadata = false
  mark: { position: number; last: Predecessor }
  beforeLast: Predecessor
  readonly #target: ReplayTarget
  readonly #witness: Place | undefined

  constructor(target: ReplayTarget, last: Predecessor, witness: Place | undefined) {
    this.#target = target
    this.#witness = witness
    this.mark = { position: 0, last }
    this.beforeLast = last
  }

  visit(group: ScannedGroup, last: Predecessor): boolean {
    this.reach(group.position, last)
    if (!replayGroup(this.#target, group)) {
      this.contradicts = true
      return false
    }
    const { durable, generation } = group.header
    const isHere = durable.segment === this.#target.segment && durable.position === group.position
    if (isHere) this.mark = { position: group.position, last }
    this.generation = Math.max(this.generation, generation)
    this.beforeLast = last
    this.groups++
    return true
  }

  /** A boundary between groups: perhaps the one that the metadata vouches for. */
  reach(position: number, last: Predecessor): void {
    const witness = this.#witness
    if (witness?.segment !== this.#target.segment || witness.position !== position) return
    if (witness.groupNumber !== last.number || witness.groupChecksum !== last.checksum) return
    this.seesMetadata = true
    this.mark = { position, last }
  }
}
