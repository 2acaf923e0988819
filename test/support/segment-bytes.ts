/** Builds the bytes of a segment with the codec alone, group by group, for what reads them. */
import { FRAME_KIND, GROUP_HEADER_BYTES, type FrameKind } from '../../codec/format.ts'
import { sealFrame } from '../../codec/frame.ts'
import { groupEnd, writeGroupHeader, type StreamPosition } from '../../codec/group.ts'
import { emptyFacts, encodeSnapshot, type StoreFacts } from '../../codec/log-state.ts'
import { pack } from '../../codec/msgpack.ts'
import { RecordEncoder, type Keys } from '../../codec/record.ts'
import {
  encodeSegmentStart,
  NO_SEGMENT_END,
  segmentSeed,
  type SegmentEnd,
} from '../../codec/segment-header.ts'
import { FrameBuffer } from '../../engine/frame-buffer.ts'
import type { ReadableFile } from '../../engine/io.ts'

/** One frame to be laid down. */
export interface FrameInput {
  readonly kind: FrameKind
  readonly loglet: number
  readonly offset: number
  readonly body: Uint8Array
}

const encoder = new RecordEncoder(64 * 1024 * 1024)

/** The frame of a record. */
export function record(
  loglet: number,
  offset: number,
  payload: unknown,
  { keys, createdAtMs = 1000 }: { readonly keys?: Keys; readonly createdAtMs?: number } = {},
): FrameInput {
  const body = new Uint8Array(encoder.prepare(payload, keys))
  encoder.write(body, 0, createdAtMs)
  return { kind: FRAME_KIND.data, loglet, offset, body }
}

/** Any other frame. */
export function change(
  kind: FrameKind,
  loglet: number,
  offset: number,
  body: unknown = null,
): FrameInput {
  return { kind, loglet, offset, body: pack(body) }
}

/** What a group header says besides what follows from its place. */
export interface GroupInput {
  readonly number?: number
  readonly previous?: number
  readonly durable?: StreamPosition
  readonly generation?: number
  readonly magic?: number
}

export class SegmentBytes {
  readonly segment: number
  readonly seed: number
  readonly start: number
  #bytes: Uint8Array
  #end: SegmentEnd

  constructor(
    segment = 1,
    facts: StoreFacts = emptyFacts(),
    previous: SegmentEnd = NO_SEGMENT_END,
    storeId: Uint8Array = new Uint8Array(16).fill(7),
    createdAtMs = 0,
  ) {
    this.segment = segment
    this.seed = segmentSeed(storeId, segment)
    const fields = { storeId, segment, createdAtMs, previous }
    this.#bytes = encodeSegmentStart(fields, encodeSnapshot(facts))
    this.start = this.#bytes.length
    this.#end = { ...previous, end: this.start }
  }

  get bytes(): Uint8Array {
    return this.#bytes
  }

  /** How it ends now. */
  get end(): SegmentEnd {
    return this.#end
  }

  /** Adds a whole group of these frames. */
  add(frames: readonly FrameInput[], input: GroupInput = {}): this {
    const position = this.#bytes.length
    const buffer = new FrameBuffer()
    for (const { kind, loglet, offset, body } of frames) {
      const at = buffer.end
      buffer.putFrame(kind, loglet, body)
      sealFrame(buffer.bytes, at, offset, this.seed, position + at)
    }
    const fields = {
      number: input.number ?? this.#end.groupNumber + 1,
      frames: frames.length,
      durable: input.durable ?? { segment: this.segment, position },
      generation: input.generation ?? 1,
      previous: input.previous ?? this.#end.groupChecksum,
    }
    buffer.reserve(8)
    const { bytes, end } = buffer
    const sum = writeGroupHeader(bytes, 0, end, fields, this.seed, position, input.magic)
    this.append(bytes.slice(0, groupEnd(end)))
    const next = { groupPosition: position, groupNumber: fields.number, groupChecksum: sum }
    this.#end = { end: this.#bytes.length, ...next }
    return this
  }

  /** Adds bytes as they are. */
  append(more: Uint8Array): this {
    const joined = new Uint8Array(this.#bytes.length + more.length)
    joined.set(this.#bytes)
    joined.set(more, this.#bytes.length)
    this.#bytes = joined
    return this
  }
}

/** Bytes as a file to read from; `most` bytes at a time. */
export function readable(bytes: Uint8Array, most = Number.POSITIVE_INFINITY): ReadableFile {
  return {
    read(target, at, length, position) {
      const part = bytes.subarray(position, position + Math.min(length, most))
      target.set(part, at)
      return Promise.resolve(part.length)
    },
  }
}

/** The number of bytes that a group of these frames takes. */
export function groupBytes(frames: readonly FrameInput[]): number {
  const length = frames.reduce((sum, { body }) => sum + 24 + body.length, GROUP_HEADER_BYTES)
  return groupEnd(length)
}
