/**
 * Group headers. A header checks on its own; whether its frames are whole is a second checksum, so
 * that what a header witnesses (how far the stream was durable) survives damage to its frames.
 */
import { alignUp, readU32, readU64, writeU32, writeU64 } from './bytes.ts'
import { checksum, seedAt } from './checksum.ts'
import {
  GROUP_ALIGNMENT,
  GROUP_CHECKSUM_AT,
  GROUP_DURABLE_POSITION_AT,
  GROUP_DURABLE_SEGMENT_AT,
  GROUP_FRAMES_AT,
  GROUP_FRAMES_CHECKSUM_AT,
  GROUP_GENERATION_AT,
  GROUP_HEADER_BYTES,
  GROUP_LENGTH_AT,
  GROUP_MAGIC,
  GROUP_NUMBER_AT,
  GROUP_PREVIOUS_AT,
  PATCHED_GROUP_MAGIC,
} from './format.ts'

/** A place in the stream of segments. */
export interface StreamPosition {
  readonly segment: number
  readonly position: number
}

/** Negative if `a` comes before `b`, 0 if they are the same, positive otherwise. */
export function comparePositions(a: StreamPosition, b: StreamPosition): number {
  return a.segment - b.segment || a.position - b.position
}

export interface GroupHeader {
  readonly number: number
  /** Bytes of frames and padding behind the header. */
  readonly length: number
  readonly frames: number
  /** How far the stream was known durable when the group was formed. */
  readonly durable: StreamPosition
  /** The generation of the metadata file that was known durable then. */
  readonly generation: number
  /** The checksum in the previous group's header. */
  readonly previous: number
  readonly framesChecksum: number
  readonly checksum: number
  /** Whether a repair made the group: fillers in it say what the next one follows. */
  readonly isPatched: boolean
}

/** What the caller of `writeGroupHeader` knows; lengths and checksums are worked out. */
export type GroupFields = Omit<GroupHeader, 'length' | 'framesChecksum' | 'checksum' | 'isPatched'>

/** Where a group whose frames end at `framesEnd` ends itself, with padding. */
export function groupEnd(framesEnd: number): number {
  return alignUp(framesEnd, GROUP_ALIGNMENT)
}

/**
 * Completes a group whose frames lie in `target` from `at + GROUP_HEADER_BYTES` to `framesEnd`:
 * pads with zeros and writes the header. `position` is the group's place in its segment. Returns
 * the header's checksum, which the next group names as previous.
 */
export function writeGroupHeader(
  target: Uint8Array,
  at: number,
  framesEnd: number,
  fields: GroupFields,
  segmentSeed: number,
  position: number,
  magic: number = GROUP_MAGIC,
): number {
  const framesAt = at + GROUP_HEADER_BYTES
  const end = at + groupEnd(framesEnd - at)
  target.fill(0, framesEnd, end)
  const seed = seedAt(segmentSeed, position)
  writeU32(target, at, magic)
  writeU64(target, at + GROUP_NUMBER_AT, fields.number)
  writeU32(target, at + GROUP_LENGTH_AT, end - framesAt)
  writeU32(target, at + GROUP_FRAMES_AT, fields.frames)
  writeU32(target, at + GROUP_DURABLE_SEGMENT_AT, fields.durable.segment)
  writeU32(target, at + GROUP_GENERATION_AT, fields.generation)
  writeU64(target, at + GROUP_DURABLE_POSITION_AT, fields.durable.position)
  writeU32(target, at + GROUP_PREVIOUS_AT, fields.previous)
  writeU32(target, at + GROUP_FRAMES_CHECKSUM_AT, checksum(target, framesAt, end, seed))
  const sum = headerChecksum(target, at, seed)
  writeU32(target, at + GROUP_CHECKSUM_AT, sum)
  return sum
}

function headerChecksum(bytes: Uint8Array, at: number, seed: number): number {
  return checksum(bytes, at, at + GROUP_CHECKSUM_AT, seed)
}

/** Whether the header of a group may be at a place: its magic is there. */
export function hasGroupMagic(bytes: Uint8Array, at: number): boolean {
  const magic = readU32(bytes, at)
  return magic === GROUP_MAGIC || magic === PATCHED_GROUP_MAGIC
}

/** Decodes the header at `at` if it checks on its own; undefined otherwise. */
export function decodeGroupHeader(
  bytes: Uint8Array,
  at: number,
  segmentSeed: number,
  position: number,
): GroupHeader | undefined {
  if (at + GROUP_HEADER_BYTES > bytes.length || !hasGroupMagic(bytes, at)) return undefined
  const sum = readU32(bytes, at + GROUP_CHECKSUM_AT)
  if (sum !== headerChecksum(bytes, at, seedAt(segmentSeed, position))) return undefined
  try {
    const header = headerFields(bytes, at, sum)
    const sane = header.length % GROUP_ALIGNMENT === 0 && header.frames > 0
    return sane ? header : undefined
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

function headerFields(bytes: Uint8Array, at: number, sum: number): GroupHeader {
  return {
    number: readU64(bytes, at + GROUP_NUMBER_AT),
    length: readU32(bytes, at + GROUP_LENGTH_AT),
    frames: readU32(bytes, at + GROUP_FRAMES_AT),
    durable: {
      segment: readU32(bytes, at + GROUP_DURABLE_SEGMENT_AT),
      position: readU64(bytes, at + GROUP_DURABLE_POSITION_AT),
    },
    generation: readU32(bytes, at + GROUP_GENERATION_AT),
    previous: readU32(bytes, at + GROUP_PREVIOUS_AT),
    framesChecksum: readU32(bytes, at + GROUP_FRAMES_CHECKSUM_AT),
    checksum: sum,
    isPatched: readU32(bytes, at) === PATCHED_GROUP_MAGIC,
  }
}

/** Whether all frames of the group whose header is at `at` are there and check. */
export function framesCheck(
  bytes: Uint8Array,
  at: number,
  header: GroupHeader,
  segmentSeed: number,
  position: number,
): boolean {
  const start = at + GROUP_HEADER_BYTES
  const end = start + header.length
  if (end > bytes.length) return false
  return checksum(bytes, start, end, seedAt(segmentSeed, position)) === header.framesChecksum
}
