/** Group headers and the frames that they vouch for: whole, or not at all, and only in their place. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { isZero, writeU32 } from '../../codec/bytes.ts'
import { checksum, seedAt } from '../../codec/checksum.ts'
import {
  GROUP_CHECKSUM_AT,
  GROUP_FRAMES_AT,
  GROUP_HEADER_BYTES,
  GROUP_LENGTH_AT,
  GROUP_MAGIC,
  PATCHED_GROUP_MAGIC,
} from '../../codec/format.ts'
import {
  comparePositions,
  decodeGroupHeader,
  framesCheck,
  groupEnd,
  hasGroupMagic,
  writeGroupHeader,
  type GroupHeader,
} from '../../codec/group.ts'
import { bytes, eachCut, eachFlip, groupFields, u32 } from '../support/codec-arbitraries.ts'

const SEED = 0x1234_5678
const POSITION = 4096
const FIELDS = {
  number: 7,
  frames: 2,
  durable: { segment: 3, position: 4000 },
  generation: 5,
  previous: 0xdead_beef,
}

/** A group of these frames, and the checksum that the next one names as previous. */
function encode(frames: Uint8Array, fields = FIELDS, magic = GROUP_MAGIC): [Uint8Array, number] {
  const framesEnd = GROUP_HEADER_BYTES + frames.length
  const group = new Uint8Array(groupEnd(framesEnd)).fill(0xee)
  group.set(frames, GROUP_HEADER_BYTES)
  const sum = writeGroupHeader(group, 0, framesEnd, fields, SEED, POSITION, magic)
  return [group, sum]
}

function decode(group: Uint8Array, position = POSITION, seed = SEED): GroupHeader | undefined {
  return decodeGroupHeader(group, 0, seed, position)
}

/** Whether a whole group lies in these bytes. */
function isWhole(group: Uint8Array, position = POSITION, seed = SEED): boolean {
  const header = decode(group, position, seed)
  return header !== undefined && framesCheck(group, 0, header, seed, position)
}

/** Puts a checksum on a header that fits whatever its fields say. */
function reseal(group: Uint8Array): void {
  const sum = checksum(group, 0, GROUP_CHECKSUM_AT, seedAt(SEED, POSITION))
  writeU32(group, GROUP_CHECKSUM_AT, sum)
}

describe('writeGroupHeader() and decodeGroupHeader()', () => {
  test('bring every field back, and vouch for the frames', () => {
    fc.assert(
      fc.property(groupFields, bytes, fc.boolean(), (fields, frames, isPatched) => {
        const [group, sum] = encode(frames, fields, isPatched ? PATCHED_GROUP_MAGIC : GROUP_MAGIC)
        const header = decode(group)
        assert.ok(header)
        const { length, framesChecksum, ...found } = header
        assert.deepEqual(found, { ...fields, checksum: sum, isPatched })
        assert.equal(length, group.length - GROUP_HEADER_BYTES)
        assert.equal(typeof framesChecksum, 'number')
        assert.ok(isWhole(group))
      }),
    )
  })

  test('pad with zeros up to a multiple of 8, and touch nothing behind that', () => {
    for (let length = 1; length < 20; length++) {
      const target = new Uint8Array(200).fill(0xee)
      const framesEnd = 16 + GROUP_HEADER_BYTES + length
      writeGroupHeader(target, 16, framesEnd, FIELDS, SEED, POSITION)
      const end = 16 + groupEnd(GROUP_HEADER_BYTES + length)
      assert.ok(isZero(target, framesEnd, end))
      assert.ok(target.subarray(end).every((byte) => byte === 0xee))
      assert.ok(target.subarray(0, 16).every((byte) => byte === 0xee))
      const header = decodeGroupHeader(target, 16, SEED, POSITION)
      assert.ok(header && framesCheck(target, 16, header, SEED, POSITION))
    }
  })

  test('notice a flip in any byte, and whether header or frames are hit', () => {
    const [group] = encode(Uint8Array.of(1, 2, 3, 4, 5))
    eachFlip(group, (flipped, at) => {
      assert.equal(isWhole(flipped), false, `byte ${at}`)
      assert.equal(decode(flipped) === undefined, at < GROUP_HEADER_BYTES, `byte ${at}`)
    })
  })

  test('notice when a group passes for one that a repair made', () => {
    const [group] = encode(Uint8Array.of(1))
    writeU32(group, 0, PATCHED_GROUP_MAGIC)
    assert.equal(decode(group), undefined)
  })

  test('notice a cut at any length', () => {
    const [group] = encode(new Uint8Array(30).fill(1))
    eachCut(group, (cut) => assert.equal(isWhole(cut), false, `${cut.length} bytes`))
  })

  test('see no group at another position, in another segment, or one byte on', () => {
    const [group] = encode(new Uint8Array(64).fill(1))
    assert.ok(!isWhole(group, POSITION + 8))
    assert.ok(!isWhole(group, POSITION, SEED + 1))
    const shifted = new Uint8Array(group.length + 1)
    shifted.set(group, 1)
    assert.equal(decodeGroupHeader(shifted, 0, SEED, POSITION), undefined)
    assert.ok(decodeGroupHeader(shifted, 1, SEED, POSITION))
  })

  test('see no group in any other bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 40, maxLength: 120 }), fc.boolean(), (some, magic) => {
        if (magic) writeU32(some, 0, GROUP_MAGIC)
        assert.equal(decode(some), undefined)
      }),
    )
  })

  test('never throw for a header whose checksum fits, whatever its fields are', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 64, maxLength: 64 }), (some) => {
        writeU32(some, 0, GROUP_MAGIC)
        reseal(some)
        const header = decode(some)
        if (header !== undefined) framesCheck(some, 0, header, SEED, POSITION)
      }),
    )
  })

  test('believe no length that the bytes do not hold, and none off a multiple of 8', () => {
    const [group] = encode(new Uint8Array(8).fill(1))
    for (const length of [16, 0x00ff_fff8, 0xffff_fff8]) {
      writeU32(group, GROUP_LENGTH_AT, length)
      reseal(group)
      const header = decode(group)
      assert.equal(header?.length, length)
      assert.equal(isWhole(group), false)
    }
    writeU32(group, GROUP_LENGTH_AT, 7)
    reseal(group)
    assert.equal(decode(group), undefined)
  })

  test('see no group without a frame', () => {
    const [group] = encode(new Uint8Array(8).fill(1))
    writeU32(group, GROUP_FRAMES_AT, 0)
    reseal(group)
    assert.equal(decode(group), undefined)
  })
})

describe('hasGroupMagic()', () => {
  test('knows both magics and nothing else', () => {
    const at = (magic: number): boolean => {
      const four = new Uint8Array(4)
      writeU32(four, 0, magic)
      return hasGroupMagic(four, 0)
    }
    assert.ok(at(GROUP_MAGIC) && at(PATCHED_GROUP_MAGIC))
    fc.assert(
      fc.property(u32, (magic) => {
        fc.pre(magic !== GROUP_MAGIC && magic !== PATCHED_GROUP_MAGIC)
        assert.ok(!at(magic))
      }),
    )
  })
})

describe('comparePositions()', () => {
  test('goes by segment first', () => {
    const at = (segment: number, position: number) => ({ segment, position })
    assert.ok(comparePositions(at(1, 900), at(2, 0)) < 0)
    assert.ok(comparePositions(at(2, 8), at(2, 0)) > 0)
    assert.equal(comparePositions(at(2, 8), at(2, 8)), 0)
  })
})
