/**
 * Proves the header, size and end of every live segment before the one with the tail, without
 * reading what lies between: each header names how the segment before it ended.
 */
import { GROUP_HEADER_BYTES } from '../codec/format.ts'
import { decodeGroupHeader, type GroupHeader } from '../codec/group.ts'
import type { StoreFacts } from '../codec/log-state.ts'
import { sameStore, segmentSeed, type SegmentEnd } from '../codec/segment-header.ts'
import type { SegmentHeader } from '../codec/segment-header.ts'
import { corrupt, unsupportedVersion } from './errors.ts'
import { segmentFile, segmentPath } from './file-names.ts'
import type { FileSystem, StoreFile } from './file-system.ts'
import { GroupScanner } from './group-scanner.ts'
import { readFully, withFile } from './io.ts'
import { factsAtStart, stakeOfSegment } from './recovery-stakes.ts'
import { headOf, isNewerVersion, type SegmentHead, type LiveSegment } from './segment-head.ts'

/** An older segment as far as it can be seen without its successor. */
interface OlderSegment {
  readonly head: SegmentHead
  /** Reads the header of the group at a position, if it checks. */
  readonly groupAt: GroupHeader | undefined
}

/** Returns all live segments, oldest first, ending with `last`. Throws CORRUPT: R4 or R6. */
export async function judgeOlderSegments(
  fileSystem: FileSystem,
  dir: string,
  base: SegmentHead,
  facts: StoreFacts,
  segments: readonly number[],
  last: LiveSegment,
): Promise<LiveSegment[]> {
  const judge = new OlderJudge(fileSystem, dir, segments)
  const live = [last]
  let next = base.header as SegmentHeader
  for (let segment = base.segment - 1; segment >= facts.firstSegment; segment--) {
    const head = await judge.prove(segment, next)
    live.unshift({ segment, end: next.previous.end, size: head.size })
    next = head.header as SegmentHeader
  }
  return live
}

class OlderJudge {
  readonly #fileSystem: FileSystem
  readonly #dir: string
  readonly #segments: readonly number[]

  constructor(fileSystem: FileSystem, dir: string, segments: readonly number[]) {
    this.#fileSystem = fileSystem
    this.#dir = dir
    this.#segments = segments
  }

  /** Proves one segment by the header of the next; returns its head. */
  async prove(segment: number, next: SegmentHeader): Promise<SegmentHead> {
    if (!this.#segments.includes(segment)) {
      return this.#throw('R6', segment, 0, 'the segment is missing')
    }
    const { head, groupAt } = await this.#look(segment, next)
    if (isNewerVersion(head.version)) throw unsupportedVersion(segmentFile(segment), head.version)
    const { header } = head
    if (header === undefined) return this.#throw('R4', segment, 0, "its header doesn't check")
    if (!sameStore(header.storeId, next.storeId) || header.segment !== segment) {
      return this.#throw('R6', segment, 0, 'the file is of another store, or another segment')
    }
    const { end, groupPosition } = next.previous
    if (head.size < end) {
      return this.#throw('R4', segment, head.size, `the file should reach ${end}`)
    }
    if (groupAt !== undefined && isLastGroup(groupAt, next.previous)) return head
    // Where the last group was lost and repaired, only a walk through the segment leads to its end.
    if (await this.#leadsTo(head, next.previous)) return head
    if (groupAt === undefined) {
      return this.#throw('R4', segment, groupPosition, "the last group's header doesn't check")
    }
    return this.#throw('R6', segment, groupPosition, 'the segment is of another history')
  }

  #leadsTo({ segment, header, start }: SegmentHead, end: SegmentEnd): Promise<boolean> {
    const { storeId, previous } = header as SegmentHeader
    const first = { number: previous.groupNumber, checksum: previous.groupChecksum }
    return withFile(this.#fileSystem, segmentPath(this.#dir, segment), 'read', async (file) => {
      const scanner = new GroupScanner(file, segmentSeed(storeId, segment), start, first)
      await scanner.scan(end.end, () => true)
      const { number, checksum } = scanner.last
      const isNamed = number === end.groupNumber && checksum === end.groupChecksum
      return isNamed && scanner.position === end.end
    })
  }

  #look(segment: number, next: SegmentHeader): Promise<OlderSegment> {
    return withFile(this.#fileSystem, segmentPath(this.#dir, segment), 'read', async (file) => {
      const head = await headOf(file, segment, 'header')
      const seed = segmentSeed(next.storeId, segment)
      return { head, groupAt: await readGroupHeader(file, next.previous.groupPosition, seed) }
    })
  }

  async #throw(
    label: 'R4' | 'R6',
    segment: number,
    position: number,
    what: string,
  ): Promise<never> {
    const after = await factsAtStart(this.#fileSystem, this.#dir, segment + 1)
    const logs =
      after === undefined
        ? []
        : await stakeOfSegment(this.#fileSystem, this.#dir, segment, after, this.#segments)
    throw corrupt(label, segmentFile(segment), position, logs, what)
  }
}

function isLastGroup(header: GroupHeader, end: SegmentEnd): boolean {
  const length = GROUP_HEADER_BYTES + header.length
  return (
    header.number === end.groupNumber &&
    header.checksum === end.groupChecksum &&
    end.groupPosition + length === end.end
  )
}

/** The header of the group at `position`, if there is one that checks. */
export async function readGroupHeader(
  file: StoreFile,
  position: number,
  segmentSeed: number,
): Promise<GroupHeader | undefined> {
  const bytes = new Uint8Array(GROUP_HEADER_BYTES)
  const length = await readFully(file, bytes, 0, bytes.length, position)
  return decodeGroupHeader(bytes.subarray(0, length), 0, segmentSeed, position)
}
