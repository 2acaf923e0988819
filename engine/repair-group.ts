/**
 * Makes a damaged stretch of a segment whole again, in place: frames that check stay where they
 * are, the rest becomes filler, and a header goes in front. Readers then find every record that is
 * left, and the groups behind the stretch follow on.
 */
import assert from 'node:assert/strict'
import {
  FRAME_HEADER_BYTES,
  FRAME_KIND,
  GROUP_ALIGNMENT,
  GROUP_HEADER_BYTES,
  GROUP_MAGIC,
  PATCHED_GROUP_MAGIC,
} from '../codec/format.ts'
import { bodyChecksum, decodeFrame, sealFrame, writeFrameHeader } from '../codec/frame.ts'
import { decodeGroupHeader, writeGroupHeader, type StreamPosition } from '../codec/group.ts'
import type { Predecessor } from './group-scanner.ts'

/** A stretch from one group boundary to another. */
export interface DamagedStretch {
  /** The bytes of the segment; the stretch in them is replaced. */
  readonly bytes: Uint8Array
  readonly segmentSeed: number
  readonly from: number
  readonly to: number
  /** The group before the stretch. */
  readonly last: Predecessor
  /** The group that whatever follows the stretch names as previous; undefined if nothing does. */
  readonly next: Predecessor | undefined
  /** How far the stream was durable before the stretch. */
  readonly durable: StreamPosition
  /** What its lost header may have said of that instead. */
  readonly otherDurable?: StreamPosition | undefined
  /** The generation of the metadata that the group before named. */
  readonly generation: number
}

/** A frame that stays, or a filler. */
interface Part {
  readonly start: number
  readonly end: number
  readonly isFiller: boolean
}

/** The least that a filler takes: its header, and a body of one byte. */
const MIN_FILLER_BYTES = FRAME_HEADER_BYTES + 1

/** Replaces the stretch. Returns the group that the next one follows. */
export function patchStretch(stretch: DamagedStretch): Predecessor {
  if (restoreHeader(stretch)) return stretch.next as Predecessor
  const { bytes, from, segmentSeed, last, next, durable } = stretch
  const parts = partsOf(stretch)
  const number = last.number + 1
  const hasFiller = parts.some(({ isFiller }) => isFiller)
  const succession = next ?? { number, checksum: 0 }
  for (const part of parts) if (part.isFiller) writeFiller(stretch, part, succession)
  const fields = { number, frames: parts.length, durable, generation: 0, previous: last.checksum }
  const { end } = parts.at(-1) as Part
  const magic = hasFiller ? PATCHED_GROUP_MAGIC : GROUP_MAGIC
  const checksum = writeGroupHeader(bytes, from, end, fields, segmentSeed, from, magic)
  return hasFiller ? succession : { number, checksum }
}

/**
 * If only the header was damaged, its bytes can be worked out: they are right if they have the
 * checksum that the next group names.
 */
function restoreHeader(stretch: DamagedStretch): boolean {
  const { bytes, from, segmentSeed, last, next, durable, otherDurable } = stretch
  const frames = next?.number === last.number + 1 ? countFrames(stretch) : undefined
  if (next === undefined || frames === undefined) return false
  const before = bytes.slice(from, from + GROUP_HEADER_BYTES)
  const common = { number: next.number, frames: frames.count, previous: last.checksum }
  for (const generation of likelyGenerations(stretch)) {
    for (const mark of [durable, otherDurable]) {
      if (mark === undefined) continue
      const fields = { ...common, durable: mark, generation }
      const sum = writeGroupHeader(bytes, from, frames.framesEnd, fields, segmentSeed, from)
      if (sum === next.checksum) return true
    }
  }
  bytes.set(before, from)
  return false
}

/** The stretch as one group of frames that all check; undefined if it is not that. */
function countFrames({
  bytes,
  from,
  to,
  segmentSeed,
}: DamagedStretch): { readonly framesEnd: number; readonly count: number } | undefined {
  let at = from + GROUP_HEADER_BYTES
  let count = 0
  for (; at + FRAME_HEADER_BYTES <= to; count++) {
    const frame = decodeFrame(bytes, at, to, segmentSeed, at)
    if (frame === undefined) break
    at = frame.bodyEnd
  }
  return count > 0 && to - at < GROUP_ALIGNMENT ? { framesEnd: at, count } : undefined
}

/** Generations of the metadata that the lost header may have named: those around it. */
function likelyGenerations({ bytes, to, segmentSeed, generation }: DamagedStretch): number[] {
  const next = decodeGroupHeader(bytes, to, segmentSeed, to)?.generation ?? generation + MAX_STEPS
  const steps = Math.min(MAX_STEPS, Math.max(0, next - generation))
  return Array.from({ length: steps + 1 }, (_, i) => generation + i)
}

/** More writes of the metadata than this hardly come between two groups. */
const MAX_STEPS = 1000

/** Cuts the stretch behind its header into frames that stay and fillers between them. */
function partsOf(stretch: DamagedStretch): Part[] {
  const { from, to, next } = stretch
  const parts: Part[] = []
  let at = from + GROUP_HEADER_BYTES
  for (const frame of framesIn(stretch)) {
    if (frame.start > at) addFiller(parts, at, frame.start)
    parts.push(frame)
    at = frame.end
  }
  const needsFiller = next !== undefined && !parts.some(({ isFiller }) => isFiller)
  if (needsFiller || parts.length === 0 || to - at >= GROUP_ALIGNMENT) addFiller(parts, at, to)
  return parts
}

/** A gap too small for a filler takes the frame before it along. */
function addFiller(parts: Part[], from: number, to: number): void {
  let start = from
  while (to - start < MIN_FILLER_BYTES) {
    const before = parts.pop()
    assert.ok(before, 'a stretch has room for a filler')
    start = before.start
  }
  parts.push({ start, end: to, isFiller: true })
}

/** The frames in the stretch that check, wherever they are. */
function* framesIn({ bytes, from, to, segmentSeed }: DamagedStretch): Generator<Part> {
  for (let at = from + GROUP_HEADER_BYTES; at + FRAME_HEADER_BYTES <= to;) {
    const frame = decodeFrame(bytes, at, to, segmentSeed, at)
    if (frame === undefined) at++
    else {
      // What an earlier repair filled, which a crash cut short, is filled again.
      yield { start: at, end: frame.bodyEnd, isFiller: frame.kind === FRAME_KIND.filler }
      at = frame.bodyEnd
    }
  }
}

function writeFiller(
  { bytes, segmentSeed }: DamagedStretch,
  { start, end }: Part,
  { number, checksum }: Predecessor,
): void {
  const body = start + FRAME_HEADER_BYTES
  bytes.fill(0, start, end)
  writeFillerBody(bytes, body, end)
  const sum = bodyChecksum(bytes, body, end)
  writeFrameHeader(bytes, start, FRAME_KIND.filler, checksum, end - body, sum)
  sealFrame(bytes, start, number, segmentSeed, start)
}

const NIL = 0xc0
const BIN_8 = 0xc4
const BIN_16 = 0xc5
const BIN_32 = 0xc6

/** One msgpack value of exactly the length that there is: nil, or zeros as bytes. */
function writeFillerBody(bytes: Uint8Array, at: number, end: number): void {
  const length = end - at
  if (length === 1) bytes[at] = NIL
  else if (length < 0x102) {
    bytes[at] = BIN_8
    bytes[at + 1] = length - 2
  } else if (length < 0x10003) {
    bytes[at] = BIN_16
    new DataView(bytes.buffer, bytes.byteOffset).setUint16(at + 1, length - 3)
  } else {
    bytes[at] = BIN_32
    new DataView(bytes.buffer, bytes.byteOffset).setUint32(at + 1, length - 5)
  }
}
