/**
 * Frames: the units inside a group. A frame's checksum covers its header and, through the body's
 * own checksum, its body, so that a body can be summed long before its place is known.
 */
import { readU32, readU64, writeU32, writeU64 } from './bytes.ts'
import { checksum, seedAt } from './checksum.ts'
import {
  FRAME_CHECKSUM_AT,
  FRAME_HEADER_BYTES,
  FRAME_KIND,
  FRAME_KIND_AT,
  FRAME_LOGLET_AT,
  FRAME_OFFSET_AT,
  type FrameKind,
} from './format.ts'
import type { Offset } from './offset.ts'

/** A frame's header, and where its body lies in the bytes it was read from. */
export interface Frame {
  readonly kind: FrameKind
  readonly loglet: number
  readonly offset: Offset
  readonly bodyStart: number
  readonly bodyEnd: number
}

const KINDS: ReadonlySet<number> = new Set(Object.values(FRAME_KIND))

/** The checksum of a body, which its frame's header is given. */
export function bodyChecksum(bytes: Uint8Array, start: number, end: number): number {
  return checksum(bytes, start, end, 0)
}

/**
 * Writes the header of a frame, all but the offset. The body lies behind it, unless its checksum is
 * given. Until
 * `sealFrame` the body's checksum stands where the frame's own will be.
 */
export function writeFrameHeader(
  target: Uint8Array,
  at: number,
  kind: FrameKind,
  loglet: number,
  bodyLength: number,
  bodySum: number = bodyChecksum(
    target,
    at + FRAME_HEADER_BYTES,
    at + FRAME_HEADER_BYTES + bodyLength,
  ),
): void {
  writeU32(target, at, bodyLength)
  writeU32(target, at + FRAME_CHECKSUM_AT, bodySum)
  writeU32(target, at + FRAME_KIND_AT, kind)
  writeU32(target, at + FRAME_LOGLET_AT, loglet)
}

/**
 * Completes a frame's header once its place is known: sets the offset, and seals everything with
 * the checksum. `position` is where the frame will be in its segment. Returns where it ends.
 */
export function sealFrame(
  target: Uint8Array,
  at: number,
  offset: Offset,
  segmentSeed: number,
  position: number,
): number {
  writeU64(target, at + FRAME_OFFSET_AT, offset)
  const seed = seedAt(segmentSeed, position)
  writeU32(target, at + FRAME_CHECKSUM_AT, checksum(target, at, at + FRAME_HEADER_BYTES, seed))
  return at + FRAME_HEADER_BYTES + readU32(target, at)
}

const unsealed = new Uint8Array(FRAME_HEADER_BYTES)

/** The checksum of a header that has the body's checksum where its own would be. */
function headerSum(
  bytes: Uint8Array,
  at: number,
  bodySum: number,
  segmentSeed: number,
  position: number,
): number {
  for (let i = 0; i < FRAME_HEADER_BYTES; i++) unsealed[i] = bytes[at + i] as number
  writeU32(unsealed, FRAME_CHECKSUM_AT, bodySum)
  return checksum(unsealed, 0, FRAME_HEADER_BYTES, seedAt(segmentSeed, position))
}

/**
 * Decodes the frame at `at` if it lies whole before `limit` and checks; undefined otherwise.
 * `position` is where the frame is in its segment. No length is believed before it was checked.
 */
export function decodeFrame(
  bytes: Uint8Array,
  at: number,
  limit: number,
  segmentSeed: number,
  position: number,
): Frame | undefined {
  const end = frameEnd(bytes, at, limit)
  if (end === undefined || !KINDS.has(readU32(bytes, at + FRAME_KIND_AT))) return undefined
  const bodyStart = at + FRAME_HEADER_BYTES
  const bodySum = bodyChecksum(bytes, bodyStart, end)
  const found = readU32(bytes, at + FRAME_CHECKSUM_AT)
  if (found !== headerSum(bytes, at, bodySum, segmentSeed, position)) return undefined
  return frameFields(bytes, at, end)
}

/**
 * Finds out whose record a frame is of which only the header is damaged: the first of the given
 * places with which it checks. Undefined if there is none.
 */
export function findOwner(
  bytes: Uint8Array,
  at: number,
  end: number,
  segmentSeed: number,
  position: number,
  places: Iterable<readonly [loglet: number, offset: Offset]>,
): { readonly loglet: number; readonly offset: Offset } | undefined {
  const header = bytes.slice(at, at + FRAME_HEADER_BYTES)
  const found = readU32(bytes, at + FRAME_CHECKSUM_AT)
  const bodySum = bodyChecksum(bytes, at + FRAME_HEADER_BYTES, end)
  writeU32(header, FRAME_KIND_AT, FRAME_KIND.data)
  for (const [loglet, offset] of places) {
    writeU32(header, FRAME_LOGLET_AT, loglet)
    writeU64(header, FRAME_OFFSET_AT, offset)
    if (found === headerSum(header, 0, bodySum, segmentSeed, position)) return { loglet, offset }
  }
  return undefined
}

/**
 * Where the frame at `at` ends, if it lies whole before `limit`, checks, and is the one that is
 * expected there; -1 otherwise. Reads are made of this, so it makes no object.
 */
export function expectFrame(
  bytes: Uint8Array,
  at: number,
  limit: number,
  segmentSeed: number,
  position: number,
  kind: FrameKind,
  loglet: number,
  offset: Offset,
): number {
  const end = frameEnd(bytes, at, limit)
  if (end === undefined || readU32(bytes, at + FRAME_KIND_AT) !== kind) return -1
  if (readU32(bytes, at + FRAME_LOGLET_AT) !== loglet) return -1
  if (readU32(bytes, at + FRAME_OFFSET_AT) !== offset >>> 0) return -1
  if (readU32(bytes, at + FRAME_OFFSET_AT + 4) !== Math.floor(offset / TWO_32)) return -1
  const bodySum = bodyChecksum(bytes, at + FRAME_HEADER_BYTES, end)
  const found = readU32(bytes, at + FRAME_CHECKSUM_AT)
  return found === headerSum(bytes, at, bodySum, segmentSeed, position) ? end : -1
}

const TWO_32 = 0x1_0000_0000

/** Where the frame at `at` ends by its own unchecked word; undefined if that is past `limit`. */
export function frameEnd(bytes: Uint8Array, at: number, limit: number): number | undefined {
  if (at + FRAME_HEADER_BYTES > limit || limit > bytes.length) return undefined
  const end = at + FRAME_HEADER_BYTES + readU32(bytes, at)
  return end <= limit ? end : undefined
}

/** Where the frame at `at` ends, in bytes that are known to hold it. */
export function frameEndAt(bytes: Uint8Array, at: number): number {
  return at + FRAME_HEADER_BYTES + readU32(bytes, at)
}

/**
 * Reads the frame at `at` of a group whose own checksum was checked: nothing is summed again.
 * Undefined if it does not lie whole before `limit`, or is of no known kind.
 */
export function readFrame(bytes: Uint8Array, at: number, limit: number): Frame | undefined {
  const end = frameEnd(bytes, at, limit)
  if (end === undefined || !KINDS.has(readU32(bytes, at + FRAME_KIND_AT))) return undefined
  return frameFields(bytes, at, end)
}

/** Reads a header that a checksum already vouched for. */
function frameFields(bytes: Uint8Array, at: number, end: number): Frame | undefined {
  const kind = readU32(bytes, at + FRAME_KIND_AT)
  if (readU32(bytes, at + FRAME_OFFSET_AT + 4) > 0x1f_ffff) return undefined
  return {
    kind: kind as FrameKind,
    loglet: readU32(bytes, at + FRAME_LOGLET_AT),
    offset: readU64(bytes, at + FRAME_OFFSET_AT),
    bodyStart: at + FRAME_HEADER_BYTES,
    bodyEnd: end,
  }
}
