/**
 * A growing buffer in which frames are laid down as appends are called. The buffer of a group in
 * waiting becomes the bytes that are written, so that a payload is copied once. Its first bytes
 * are left for the group's header.
 */
import { FRAME_HEADER_BYTES, GROUP_ALIGNMENT, GROUP_HEADER_BYTES } from '../codec/format.ts'
import type { FrameKind } from '../codec/format.ts'
import { bodyChecksum, writeFrameHeader } from '../codec/frame.ts'
import type { Keys, RecordEncoder } from '../codec/record.ts'
import { FRAME_KIND } from '../codec/format.ts'

const INITIAL_BYTES = 64 * 1024

export class FrameBuffer {
  bytes: Uint8Array
  /** Where the next frame goes. */
  end: number = GROUP_HEADER_BYTES

  constructor(bytes: Uint8Array = new Uint8Array(INITIAL_BYTES)) {
    this.bytes = bytes
  }

  /** Makes room for `length` more bytes, and for a group's padding after them. */
  reserve(length: number): void {
    const needed = this.end + length + GROUP_ALIGNMENT
    if (needed <= this.bytes.length) return
    const grown = new Uint8Array(Math.max(needed, this.bytes.length * 2))
    grown.set(this.bytes.subarray(0, this.end))
    this.bytes = grown
  }

  /** Lays down a record's frame. Throws what the encoder throws, and then leaves no trace. */
  putRecord(
    encoder: RecordEncoder,
    loglet: number,
    payload: unknown,
    keys: Keys | undefined,
    createdAtMs: number,
  ): void {
    const bodyLength = encoder.prepare(payload, keys)
    this.reserve(FRAME_HEADER_BYTES + bodyLength)
    const at = this.end
    this.end = encoder.write(this.bytes, at + FRAME_HEADER_BYTES, createdAtMs)
    writeFrameHeader(this.bytes, at, FRAME_KIND.data, loglet, bodyLength, encoder.bodySum)
  }

  /** Lays down any other frame. */
  putFrame(kind: FrameKind, loglet: number, body: Uint8Array): void {
    this.reserve(FRAME_HEADER_BYTES + body.length)
    this.bytes.set(body, this.end + FRAME_HEADER_BYTES)
    const sum = bodyChecksum(body, 0, body.length)
    writeFrameHeader(this.bytes, this.end, kind, loglet, body.length, sum)
    this.end += FRAME_HEADER_BYTES + body.length
  }

  /** Takes over frames from another buffer; returns where they start here. */
  putFrames(frames: Uint8Array): number {
    this.reserve(frames.length)
    const start = this.end
    this.bytes.set(frames, start)
    this.end += frames.length
    return start
  }
}
