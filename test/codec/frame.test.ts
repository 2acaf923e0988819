/** Frames: every field and byte comes back, and only from where it was put. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { writeU32 } from '../../codec/bytes.ts'
import { checksum, seedAt } from '../../codec/checksum.ts'
import {
  FRAME_CHECKSUM_AT,
  FRAME_HEADER_BYTES,
  FRAME_KIND,
  FRAME_KIND_AT,
  type FrameKind,
} from '../../codec/format.ts'
import {
  decodeFrame,
  frameEnd,
  frameEndAt,
  sealFrame,
  writeFrameHeader,
  type Frame,
} from '../../codec/frame.ts'
import { eachCut, eachFlip, frameFields } from '../support/codec-arbitraries.ts'

const SEED = 0x1234_5678
const POSITION = 4144
const BODY = Uint8Array.of(0xc0, 1, 2, 3, 4)

interface Fields {
  readonly kind: FrameKind
  readonly loglet: number
  readonly offset: number
  readonly body: Uint8Array
}

const FIELDS: Fields = { kind: FRAME_KIND.data, loglet: 3, offset: 2 ** 40, body: BODY }

function encode({ kind, loglet, offset, body }: Fields, at = 0, room = 0): Uint8Array {
  const target = new Uint8Array(at + FRAME_HEADER_BYTES + body.length + room).fill(0xee)
  target.set(body, at + FRAME_HEADER_BYTES)
  writeFrameHeader(target, at, kind, loglet, body.length)
  const end = sealFrame(target, at, offset, SEED, POSITION)
  assert.equal(end, at + FRAME_HEADER_BYTES + body.length)
  return target
}

function decode(bytes: Uint8Array, at = 0, position = POSITION, seed = SEED): Frame | undefined {
  return decodeFrame(bytes, at, bytes.length, seed, position)
}

/** Puts a checksum on a frame that fits whatever its header says. */
function resealed(bytes: Uint8Array, bodyEnd: number): Uint8Array {
  const body = checksum(bytes, FRAME_HEADER_BYTES, bodyEnd, 0)
  writeU32(bytes, FRAME_CHECKSUM_AT, body)
  const sum = checksum(bytes, 0, FRAME_HEADER_BYTES, seedAt(SEED, POSITION))
  writeU32(bytes, FRAME_CHECKSUM_AT, sum)
  return bytes
}

describe('writeFrameHeader(), sealFrame() and decodeFrame()', () => {
  test('bring every field and the body back, from any place in a buffer', () => {
    fc.assert(
      fc.property(frameFields, fc.nat(50), fc.nat(50), (fields, at, room) => {
        const bytes = encode(fields, at, room)
        const frame = decode(bytes, at)
        assert.ok(frame)
        const { kind, loglet, offset, bodyStart, bodyEnd } = frame
        assert.deepEqual({ kind, loglet, offset, body: fields.body }, fields)
        assert.deepEqual(bytes.slice(bodyStart, bodyEnd), fields.body)
        assert.equal(frameEndAt(bytes, at), bodyEnd)
        assert.ok(bytes.subarray(bodyEnd).every((byte) => byte === 0xee))
        assert.ok(bytes.subarray(0, at).every((byte) => byte === 0xee))
      }),
    )
  })

  test('seal again at another place when the header is written again', () => {
    const bytes = encode(FIELDS)
    writeFrameHeader(bytes, 0, FIELDS.kind, FIELDS.loglet, BODY.length)
    sealFrame(bytes, 0, 7, SEED, POSITION + 8)
    assert.equal(decode(bytes), undefined)
    assert.equal(decode(bytes, 0, POSITION + 8)?.offset, 7)
  })

  test('notice a flip in any byte', () => {
    eachFlip(encode(FIELDS), (flipped, at) => {
      assert.equal(decode(flipped), undefined, `byte ${at}`)
    })
  })

  test('notice a cut at any length', () => {
    eachCut(encode(FIELDS), (cut) => assert.equal(decode(cut), undefined))
  })

  test('see no frame at another position, in another segment or store', () => {
    const bytes = encode(FIELDS)
    assert.equal(decode(bytes, 0, POSITION + 8), undefined)
    assert.equal(decode(bytes, 0, POSITION, SEED ^ 1), undefined)
  })

  test('see no frame in a copy inside a body, even where that is aligned', () => {
    const inner = encode(FIELDS)
    const outer = encode({ ...FIELDS, body: inner })
    const found = decode(outer, FRAME_HEADER_BYTES, POSITION + FRAME_HEADER_BYTES)
    assert.equal(found, undefined)
  })

  test('see no frame in any other bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), fc.nat(100), (some, at) => {
        assert.equal(decode(some, at), undefined)
      }),
    )
  })

  test('never throw for a frame whose checksum fits, whatever its header says', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 24, maxLength: 60 }), (some) => {
        writeU32(some, 0, some.length - FRAME_HEADER_BYTES)
        decode(resealed(some, some.length))
      }),
    )
  })

  test('believe no length that goes past the limit', () => {
    const bytes = encode(FIELDS, 0, 100)
    const { length } = encode(FIELDS)
    assert.equal(decodeFrame(bytes, 0, length - 1, SEED, POSITION), undefined)
    assert.ok(decodeFrame(bytes, 0, length, SEED, POSITION))
    assert.equal(decodeFrame(bytes, 0, bytes.length + 1, SEED, POSITION), undefined)
    for (const wrong of [0x00ff_ffff, 0xffff_ffff, bytes.length]) {
      writeU32(bytes, 0, wrong)
      assert.equal(decode(bytes), undefined)
    }
    writeU32(bytes, 0, 0)
    assert.equal(decode(bytes), undefined)
  })

  test('know no kind but those of the format', () => {
    for (const kind of [0, 10, 255, 256 + FRAME_KIND.data, 0xffff_ffff]) {
      const bytes = encode(FIELDS)
      writeU32(bytes, FRAME_KIND_AT, kind)
      assert.equal(decode(resealed(bytes, bytes.length)), undefined, `kind ${kind}`)
    }
  })

  test('refuse an offset that JavaScript would round', () => {
    const bytes = encode(FIELDS)
    writeU32(bytes, 20, 0x0020_0000)
    assert.equal(decode(resealed(bytes, bytes.length)), undefined)
  })
})

describe('frameEnd()', () => {
  test('is undefined where not even a header fits', () => {
    const bytes = encode(FIELDS)
    assert.equal(frameEnd(bytes, bytes.length - 23, bytes.length), undefined)
    assert.equal(frameEnd(bytes, 0, bytes.length), bytes.length)
  })
})
