/** Reads and writes of integers, and looking for zeros, at every edge of a buffer. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { alignUp, isZero, readU32, readU64, writeU32, writeU64 } from '../../codec/bytes.ts'
import { count, u32 } from '../support/codec-arbitraries.ts'

describe('writeU32() and readU32()', () => {
  test('bring every integer back, and write it as a DataView does', () => {
    fc.assert(
      fc.property(u32, fc.integer({ min: 0, max: 8 }), (value, at) => {
        const bytes = new Uint8Array(12)
        writeU32(bytes, at, value)
        assert.equal(readU32(bytes, at), value)
        assert.equal(new DataView(bytes.buffer).getUint32(at, true), value)
        assert.ok(isZero(bytes, 0, at) && isZero(bytes, at + 4, 12), 'nothing around it is written')
      }),
    )
  })

  test('refuse to go over either end', () => {
    const bytes = new Uint8Array(7)
    for (const at of [-1, 4, 7, 100, Number.MAX_SAFE_INTEGER]) {
      assert.throws(() => readU32(bytes, at), RangeError)
      assert.throws(() => {
        writeU32(bytes, at, 1)
      }, RangeError)
    }
    assert.ok(isZero(bytes, 0, 7))
  })
})

describe('writeU64() and readU64()', () => {
  test('bring every safe integer back, and write it as a DataView does', () => {
    fc.assert(
      fc.property(count, (value) => {
        const bytes = new Uint8Array(8)
        writeU64(bytes, 0, value)
        assert.equal(readU64(bytes, 0), value)
        assert.equal(new DataView(bytes.buffer).getBigUint64(0, true), BigInt(value))
      }),
    )
  })

  test('bring back the integers around 2^32 and the greatest one', () => {
    const bytes = new Uint8Array(8)
    for (const value of [2 ** 32 - 1, 2 ** 32, 2 ** 32 + 1, 2 ** 53 - 2, 2 ** 53 - 1]) {
      writeU64(bytes, 0, value)
      assert.equal(readU64(bytes, 0), value)
    }
  })

  test('refuse what JavaScript would round', () => {
    const bytes = new Uint8Array(8)
    const view = new DataView(bytes.buffer)
    for (const value of [2n ** 53n, 2n ** 53n + 1n, 2n ** 63n, 2n ** 64n - 1n]) {
      view.setBigUint64(0, value, true)
      assert.throws(() => readU64(bytes, 0), RangeError)
    }
  })

  test('refuse to go over the end', () => {
    assert.throws(() => readU64(new Uint8Array(7), 0), RangeError)
  })
})

describe('alignUp()', () => {
  test('finds the next multiple, also past 2^32', () => {
    assert.deepEqual(
      [0, 1, 7, 8, 9].map((at) => alignUp(at, 8)),
      [0, 8, 8, 8, 16],
    )
    assert.equal(alignUp(2 ** 40 + 1, 4096), 2 ** 40 + 4096)
  })
})

describe('isZero()', () => {
  test('sees one bit anywhere between its ends, whatever the alignment', () => {
    for (let start = 0; start < 9; start++) {
      for (let end = start; end < 24; end++) {
        const bytes = new Uint8Array(new ArrayBuffer(64), 3, 32)
        assert.ok(isZero(bytes, start, end))
        for (let at = 0; at < bytes.length; at++) {
          bytes.fill(0)
          bytes[at] = 0x80
          assert.equal(isZero(bytes, start, end), at < start || at >= end, `${start} ${end} ${at}`)
        }
      }
    }
  })

  test('is true of no bytes', () => {
    assert.ok(isZero(Uint8Array.of(1), 1, 1))
    assert.ok(isZero(Uint8Array.of(1), 0, 0))
    assert.ok(isZero(new Uint8Array(0), 0, 0))
  })
})
