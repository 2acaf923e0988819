/** The buffer of a group in waiting: frames in a row, room for the header, no trace of a failure. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isZero, readU32 } from '../../codec/bytes.ts'
import {
  FRAME_HEADER_BYTES,
  FRAME_KIND,
  FRAME_KIND_AT,
  FRAME_LOGLET_AT,
  GROUP_ALIGNMENT,
  GROUP_HEADER_BYTES,
} from '../../codec/format.ts'
import { decodeFrame, frameEndAt, sealFrame } from '../../codec/frame.ts'
import { decodeRecord, RecordEncoder } from '../../codec/record.ts'
import { FrameBuffer } from '../../engine/frame-buffer.ts'
import { thrown } from '../support/expect-error.ts'

const encoder = new RecordEncoder(1024 * 1024)

describe('FrameBuffer', () => {
  test("leaves the bytes of a group's header free", () => {
    const buffer = new FrameBuffer()
    assert.equal(buffer.end, GROUP_HEADER_BYTES)
    buffer.putRecord(encoder, 1, 'x', undefined, 0)
    assert.ok(isZero(buffer.bytes, 0, GROUP_HEADER_BYTES))
  })

  test('putRecord() and putFrame() lay frames one behind the other', () => {
    const buffer = new FrameBuffer(new Uint8Array(0))
    buffer.putRecord(encoder, 7, { id: 1 }, ['k'], 5)
    const second = buffer.end
    buffer.putFrame(FRAME_KIND.trim, 8, Uint8Array.of(0xc0))
    const { bytes, end } = buffer
    assert.equal(frameEndAt(bytes, GROUP_HEADER_BYTES), second)
    assert.equal(frameEndAt(bytes, second), end)
    assert.equal(readU32(bytes, GROUP_HEADER_BYTES + FRAME_LOGLET_AT), 7)
    assert.equal(readU32(bytes, second + FRAME_KIND_AT), FRAME_KIND.trim)
    sealFrame(bytes, GROUP_HEADER_BYTES, 3, 99, 1000)
    const frame = decodeFrame(bytes, GROUP_HEADER_BYTES, second, 99, 1000)
    assert.ok(frame)
    assert.deepEqual(decodeRecord(bytes, frame.bodyStart, frame.bodyEnd).payload, { id: 1 })
  })

  test('grows, keeps what it has, and always has room for padding', () => {
    const buffer = new FrameBuffer(new Uint8Array(100))
    const payloads = Array.from({ length: 50 }, (_, i) => new Uint8Array(i * 10).fill(i))
    for (const payload of payloads) {
      buffer.putRecord(encoder, 1, payload, undefined, 0)
      assert.ok(buffer.end + GROUP_ALIGNMENT - 1 <= buffer.bytes.length)
    }
    let at = GROUP_HEADER_BYTES
    for (const payload of payloads) {
      const end = frameEndAt(buffer.bytes, at)
      assert.deepEqual(decodeRecord(buffer.bytes, at + FRAME_HEADER_BYTES, end).payload, payload)
      at = end
    }
    assert.equal(at, buffer.end)
  })

  test('putRecord() leaves no trace when the payload cannot be encoded', () => {
    const buffer = new FrameBuffer()
    const { end } = buffer
    thrown(() => buffer.putRecord(encoder, 1, new Map(), undefined, 0), 'ENCODE_FAILED')
    thrown(
      () => buffer.putRecord(encoder, 1, new Uint8Array(2 ** 20), undefined, 0),
      'RECORD_TOO_LARGE',
    )
    assert.equal(buffer.end, end)
    assert.ok(isZero(buffer.bytes, end, buffer.bytes.length))
  })

  test('putFrames() takes frames over from another buffer', () => {
    const from = new FrameBuffer()
    from.putRecord(encoder, 1, 'moved', undefined, 0)
    const to = new FrameBuffer(new Uint8Array(10))
    to.putFrame(FRAME_KIND.trim, 1, Uint8Array.of(0xc0))
    const start = to.putFrames(from.bytes.slice(GROUP_HEADER_BYTES, from.end))
    assert.equal(frameEndAt(to.bytes, start), to.end)
    assert.deepEqual(to.bytes.slice(start, to.end), from.bytes.slice(GROUP_HEADER_BYTES, from.end))
  })
})
