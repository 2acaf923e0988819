/**
 * Plans the repair of one segment in memory: what its bytes should be, so that every frame that
 * still checks is found and every group follows the one before it.
 */
import {
  FRAME_KIND,
  GROUP_ALIGNMENT,
  GROUP_HEADER_BYTES,
  SEGMENT_HEADER_BYTES,
} from '../codec/format.ts'
import { alignUp, isZero } from '../codec/bytes.ts'
import { decodeFrame } from '../codec/frame.ts'
import { decodeGroupHeader, framesCheck, type GroupHeader } from '../codec/group.ts'
import {
  decodeSnapshot,
  emptyFacts,
  encodeSnapshot,
  encodeSnapshotOfLength,
  type StoreFacts,
} from '../codec/log-state.ts'
import {
  encodeSegmentStart,
  groupsStart,
  segmentSeed,
  type SegmentEnd,
  type SegmentHeader,
} from '../codec/segment-header.ts'
import { corrupt } from './errors.ts'
import { segmentFile } from './file-names.ts'
import type { Predecessor } from './group-scanner.ts'
import { patchStretch } from './repair-group.ts'

/** What is known about a segment that is to be made whole. */
export interface SegmentCase {
  readonly storeId: Uint8Array
  readonly segment: number
  /** The bytes as they are; empty if the file is missing or is not ours. */
  readonly bytes: Uint8Array
  /** The header, if it checks and is ours. */
  readonly header: SegmentHeader | undefined
  /** Where the groups start, if header and snapshot check. */
  readonly start: number | undefined
  /** How the segment before it ended. */
  readonly before: SegmentEnd
  /** Before this position everything was durable. */
  readonly mustReach: number
  /** How it ended, if the next segment's header says so. */
  readonly end: SegmentEnd | undefined
  /** The state when it began: needed if it is the last one, and its own snapshot is lost. */
  readonly facts: StoreFacts | undefined
}

/** A segment as it should be. */
export interface SegmentPlan {
  readonly segment: number
  readonly bytes: Uint8Array
  /** The stretches that differ from what is there. */
  readonly changes: readonly { readonly from: number; readonly to: number }[]
  readonly end: SegmentEnd
}

const PARTIAL: StoreFacts = { ...emptyFacts(), isPartial: true }

export function planSegment(found: SegmentCase): SegmentPlan {
  return new SegmentPlanner(found).plan()
}

class SegmentPlanner {
  readonly #case: SegmentCase
  readonly #seed: number
  readonly #changes: { from: number; to: number }[] = []
  #bytes: Uint8Array
  #position = 0
  #groupPosition = 0
  #last: Predecessor
  /** What the last header said of the metadata. */
  #generation = 0

  constructor(found: SegmentCase) {
    this.#case = found
    this.#seed = segmentSeed(found.storeId, found.segment)
    this.#bytes = new Uint8Array(Math.max(found.bytes.length, found.mustReach))
    this.#bytes.set(found.bytes)
    const previous = found.header?.previous ?? found.before
    this.#last = { number: previous.groupNumber, checksum: previous.groupChecksum }
  }

  plan(): SegmentPlan {
    const { segment, start } = this.#case
    this.#position = start ?? this.#makeStart()
    while (this.#step());
    this.#requireOurEnd()
    const { length } = this.#case.bytes
    // What was cut off may have been zeros: then nothing is lost, but the file is too short.
    if (length < this.#position) this.#changes.push({ from: length, to: this.#position })
    const end = {
      end: this.#position,
      groupPosition: this.#groupPosition,
      groupNumber: this.#last.number,
      groupChecksum: this.#last.checksum,
    }
    return { segment, bytes: this.#bytes, changes: this.#changes, end }
  }

  /** Whole groups that lead elsewhere than the next segment says are of another history. */
  #requireOurEnd(): void {
    const { segment, end } = this.#case
    if (end === undefined) return
    const { number, checksum } = this.#last
    const isNamed = number === end.groupNumber && checksum === end.groupChecksum
    if (isNamed && this.#position === end.end) return
    const what = `segments ${segment} and ${segment + 1} are of two histories: move the wrong one away`
    throw corrupt('R6', segmentFile(segment), this.#position, [], what)
  }

  /** Goes past one group, or one damaged stretch. Returns whether there may be more. */
  #step(): boolean {
    const at = this.#position
    const header = this.#headerAt(at)
    if (header === undefined) return this.#stepOverHole()
    const end = at + GROUP_HEADER_BYTES + header.length
    const isWhole =
      end <= this.#bytes.length && framesCheck(this.#bytes, at, header, this.#seed, at)
    this.#generation = header.generation
    if (isWhole) this.#goTo(at, end, this.#successionAt(at, end, header))
    else if (at >= this.#case.mustReach) return false
    else this.#patchTorn(at, Math.min(end, this.#bytes.length), header)
    return true
  }

  /** Behind a group of an earlier repair, the next one names another: what that one says counts. */
  #patchTorn(at: number, end: number, header: GroupHeader): void {
    const said = header.isPatched ? this.#predecessorAt(end) : undefined
    this.#patch(at, end, said ?? this.#successionAt(at, end, header))
  }

  /** The group that whatever is behind a position says it follows. */
  #predecessorAt(position: number): Predecessor | undefined {
    const next = this.#headerAt(position)
    if (next !== undefined) return { number: next.number - 1, checksum: next.previous }
    const { end } = this.#case
    if (end?.end !== position) return undefined
    return { number: end.groupNumber, checksum: end.groupChecksum }
  }

  #goTo(groupPosition: number, end: number, last: Predecessor): void {
    this.#groupPosition = groupPosition
    this.#position = end
    this.#last = last
  }

  /** Behind a group of an earlier repair, what its fillers say. */
  #successionAt(at: number, end: number, header: GroupHeader): Predecessor {
    let succession: Predecessor = { number: header.number, checksum: header.checksum }
    for (let next = at + GROUP_HEADER_BYTES; header.isPatched && next < end;) {
      const frame = decodeFrame(this.#bytes, next, end, this.#seed, next)
      if (frame === undefined) break
      if (frame.kind === FRAME_KIND.filler)
        succession = { number: frame.offset, checksum: frame.loglet }
      next = frame.bodyEnd
    }
    return succession
  }

  #headerAt(at: number): GroupHeader | undefined {
    const header = decodeGroupHeader(this.#bytes, at, this.#seed, at)
    return header !== undefined && header.number > this.#last.number ? header : undefined
  }

  #stepOverHole(): boolean {
    const { mustReach, end } = this.#case
    const from = this.#position
    const next = this.#nextHeader(from + GROUP_ALIGNMENT)
    if (next !== undefined) {
      const header = this.#headerAt(next) as GroupHeader
      this.#patch(from, next, { number: header.number - 1, checksum: header.previous })
      return true
    }
    if (from >= mustReach) return false
    if (end !== undefined) {
      this.#patch(from, end.end, { number: end.groupNumber, checksum: end.groupChecksum })
    } else this.#patchTail(from, mustReach)
    return false
  }

  #isSuccessor(at: number): boolean {
    const header = this.#headerAt(at)
    return header?.number === this.#last.number + 1 && header.previous === this.#last.checksum
  }

  #nextHeader(from: number): number | undefined {
    for (let at = from; at + GROUP_HEADER_BYTES <= this.#bytes.length; at += GROUP_ALIGNMENT) {
      if (this.#headerAt(at) !== undefined) return at
    }
    return undefined
  }

  /** At the tail nothing follows: what has no frame left in it is simply cut. */
  #patchTail(from: number, to: number): void {
    let last = from
    for (let at = from; at < to; at++) {
      const frame = decodeFrame(this.#bytes, at, to, this.#seed, at)
      if (frame !== undefined) last = frame.bodyEnd
    }
    if (last === from) return
    this.#patch(from, Math.min(alignUp(last, GROUP_ALIGNMENT), this.#bytes.length), undefined)
  }

  #patch(from: number, to: number, next: Predecessor | undefined): void {
    const { segment, header, before } = this.#case
    const isFirst = from === (this.#case.start ?? from)
    const { end } = header?.previous ?? before
    const last = patchStretch({
      bytes: this.#bytes,
      segmentSeed: this.#seed,
      from,
      to,
      last: this.#last,
      next,
      durable: { segment, position: from },
      otherDurable: isFirst ? { segment: Math.max(1, segment - 1), position: end } : undefined,
      generation: this.#generation,
    })
    this.#changes.push({ from, to })
    this.#goTo(from, to, last)
  }

  /** Makes header and snapshot anew, in front of the first group that can be found. */
  #makeStart(): number {
    const { storeId, segment, header, before } = this.#case
    const first = this.#nextHeader(alignUp(SEGMENT_HEADER_BYTES, GROUP_ALIGNMENT))
    const kept =
      header === undefined && first !== undefined ? this.#snapshotBefore(first) : undefined
    const start = kept !== undefined ? (first as number) : this.#lostStart(first)
    const snapshot = kept ?? snapshotUpTo(this.#case.facts ?? PARTIAL, start)
    if (snapshot === undefined) {
      const what = 'there is no room to make the start of the segment anew'
      throw corrupt('R4', segmentFile(segment), 0, [], what)
    }
    if (start > this.#bytes.length) this.#grow(start)
    const previous = header?.previous ?? (kept === undefined ? before : this.#previousOf(start))
    const fields = { storeId, segment, createdAtMs: header?.createdAtMs ?? 0, previous }
    this.#bytes.set(encodeSegmentStart(fields, snapshot))
    this.#changes.push({ from: 0, to: start })
    this.#last = { number: previous.groupNumber, checksum: previous.groupChecksum }
    return start
  }

  /** The snapshot in front of the first group, if it is there though the header is not. */
  #snapshotBefore(first: number): Uint8Array | undefined {
    const longest = first - SEGMENT_HEADER_BYTES
    for (let length = longest; length > longest - GROUP_ALIGNMENT && length > 0; length--) {
      const end = SEGMENT_HEADER_BYTES + length
      const bytes = this.#bytes.slice(SEGMENT_HEADER_BYTES, end)
      if (isZero(this.#bytes, end, first) && decodeSnapshot(bytes) !== undefined) return bytes
    }
    return undefined
  }

  /** How the segment before must have ended, by the first group of this one. */
  #previousOf(first: number): SegmentEnd {
    const { before } = this.#case
    const { number, previous } = this.#headerAt(first) as GroupHeader
    const isKnown = before.groupNumber === number - 1 && before.groupChecksum === previous
    if (isKnown) return before
    return { end: 0, groupPosition: 0, groupNumber: number - 1, groupChecksum: previous }
  }

  /** Where the groups start, by the header, or else by the first group that can be found. */
  #lostStart(first: number | undefined): number {
    const { header, facts } = this.#case
    if (header !== undefined) return groupsStart(header.snapshotLength)
    if (first !== undefined && this.#isSuccessor(first)) return first
    // Groups before the first one that is left are lost: a filler will take their place.
    return groupsStart(facts === undefined ? MIN_SNAPSHOT_BYTES : encodeSnapshot(facts).length)
  }

  #grow(size: number): void {
    const grown = new Uint8Array(size)
    grown.set(this.#bytes)
    this.#bytes = grown
  }
}

/** A snapshot behind which the groups start at exactly the given place, if there is one. */
function snapshotUpTo(facts: StoreFacts, start: number): Uint8Array | undefined {
  const longest = start - SEGMENT_HEADER_BYTES
  for (let length = longest; length > longest - GROUP_ALIGNMENT; length--) {
    const snapshot = encodeSnapshotOfLength(facts, length)
    if (snapshot !== undefined) return snapshot
  }
  return undefined
}

/** What a snapshot without any state takes, padded. */
const MIN_SNAPSHOT_BYTES = 16
