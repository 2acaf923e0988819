/** The group with which a repair says, at the tail, what was lost. */
import { FRAME_KIND, GROUP_HEADER_BYTES } from '../codec/format.ts'
import { sealFrame } from '../codec/frame.ts'
import { groupEnd, writeGroupHeader } from '../codec/group.ts'
import type { StoreFacts } from '../codec/log-state.ts'
import type { Metadata } from '../codec/metadata.ts'
import { pack } from '../codec/msgpack.ts'
import type { Offset } from '../codec/offset.ts'
import type { SegmentEnd } from '../codec/segment-header.ts'
import { FrameBuffer } from './frame-buffer.ts'
import type { FrameKind } from '../codec/format.ts'

/** Lost offsets of one loglet: both ends inclusive. */
export interface Loss {
  readonly loglet: number
  readonly from: Offset
  readonly to: Offset
}

export interface LossGroup {
  readonly bytes: Uint8Array
  readonly checksum: number
  readonly number: number
}

interface StateFrame {
  readonly kind: FrameKind
  readonly loglet: number
  readonly offset: Offset
  readonly body: unknown
}

/**
 * Encodes the group that goes to `end` of a segment: the losses, and those trims and seals that are
 * known though their frames are lost. Undefined if there is nothing to say.
 */
export function lossGroup(
  segment: number,
  segmentSeed: number,
  end: SegmentEnd,
  losses: readonly Loss[],
  facts: StoreFacts,
  marks: ReadonlyMap<number, LogletMarks>,
): LossGroup | undefined {
  const frames = [
    ...losses.filter(({ loglet }) => facts.loglets.has(loglet)).map(lossFrame),
    ...markedFrames(facts, losses, marks),
  ]
  // A segment without a group is none: the least that can be said is what is dead already.
  const isBare = end.groupPosition === 0
  if (isBare) frames.push(deadFrame(facts.firstSegment - 1))
  if (frames.length === 0) return undefined
  const buffer = new FrameBuffer()
  for (const { kind, loglet, body } of frames) buffer.putFrame(kind, loglet, pack(body))
  let at = GROUP_HEADER_BYTES
  for (const { offset } of frames) {
    at = sealFrame(buffer.bytes, at, offset, segmentSeed, end.end + at)
  }
  const number = end.groupNumber + 1
  const durable = { segment, position: end.end }
  const fields = {
    number,
    frames: frames.length,
    durable,
    generation: 0,
    previous: end.groupChecksum,
  }
  const checksum = writeGroupHeader(buffer.bytes, 0, at, fields, segmentSeed, end.end)
  return { bytes: buffer.bytes.subarray(0, groupEnd(at)), checksum, number }
}

function deadFrame(last: number): StateFrame {
  return { kind: FRAME_KIND.deadSegments, loglet: 0, offset: last, body: null }
}

function lossFrame({ loglet, from, to }: Loss): StateFrame {
  return { kind: FRAME_KIND.lossGap, loglet, offset: to, body: from }
}

/** What is known of trims and seals from elsewhere than the frames that are left. */
export interface LogletMarks {
  readonly trimPoint: Offset
  readonly sealed: boolean
}

/**
 * Trims and seals that were lost: the metadata saw them, or the oldest segment shows that what was
 * before it is dead.
 */
export function marksFrom(
  witness: Metadata | undefined,
  oldest: StoreFacts | undefined,
): Map<number, LogletMarks> {
  const marks = new Map<number, LogletMarks>(
    witness?.loglets.map(({ loglet, trimPoint, sealed }) => [loglet, { trimPoint, sealed }]),
  )
  if (oldest === undefined || oldest.isPartial === true) return marks
  for (const { id, tail } of oldest.loglets.values()) {
    const known = marks.get(id)
    const trimPoint = Math.max(known?.trimPoint ?? 0, tail - 1)
    marks.set(id, { trimPoint, sealed: known?.sealed ?? false })
  }
  return marks
}

function markedFrames(
  facts: StoreFacts,
  losses: readonly Loss[],
  marks: ReadonlyMap<number, LogletMarks>,
): StateFrame[] {
  const frames: StateFrame[] = []
  for (const [loglet, { trimPoint, sealed }] of marks) {
    const known = facts.loglets.get(loglet)
    if (known === undefined) continue
    const lost = losses.filter((loss) => loss.loglet === loglet).map(({ to }) => to + 1)
    const tail = Math.max(known.tail, ...lost)
    if (trimPoint > known.trimPoint) {
      frames.push({ kind: FRAME_KIND.trim, loglet, offset: trimPoint, body: null })
    }
    if (sealed && known.seal === undefined) {
      frames.push({ kind: FRAME_KIND.seal, loglet, offset: tail, body: null })
    }
  }
  return frames
}
