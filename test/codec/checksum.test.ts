/** One checksum from two implementations, and seeds that keep bytes in their place. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { crc32 as zlibCrc32 } from 'node:zlib'
import crc32 from 'crc-32'
import fc from 'fast-check'
import { checksum, seedAt, ZLIB_FROM_BYTES } from '../../codec/checksum.ts'
import { count, u32 } from '../support/codec-arbitraries.ts'
import { Random } from '../support/random.ts'

const random = new Random(1)
const noise = random.bytes(ZLIB_FROM_BYTES * 3)

describe('checksum()', () => {
  test('is the CRC-32 that everybody knows', () => {
    const check = Buffer.from('123456789')
    assert.equal(checksum(check, 0, check.length, 0), 0xcbf43926)
    assert.equal(checksum(new Uint8Array(0), 0, 0, 0), 0)
  })

  test('is the same from crc-32 and zlib for all lengths around the threshold, at all offsets', () => {
    for (let start = 0; start < 20; start++) {
      for (let length = ZLIB_FROM_BYTES - 20; length <= ZLIB_FROM_BYTES + 20; length++) {
        const part = noise.slice(start, start + length)
        const found = checksum(noise, start, start + length, 0)
        assert.equal(found, zlibCrc32(part))
        assert.equal(found, crc32.buf(part) >>> 0)
      }
    }
  })

  test('is the same from both for any seed, also where the sign bit is set', () => {
    fc.assert(
      fc.property(u32, fc.integer({ min: 0, max: noise.length }), (seed, length) => {
        const found = checksum(noise, 0, length, seed)
        assert.equal(found, zlibCrc32(noise.subarray(0, length), seed))
        assert.equal(found, crc32.buf(noise.subarray(0, length), seed) >>> 0)
        assert.ok(found >= 0 && found <= 0xffff_ffff)
      }),
    )
  })

  test('goes on from the sum of what came before', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: noise.length }), u32, (cut, seed) => {
        const first = checksum(noise, 0, cut, seed)
        const both = checksum(noise, cut, noise.length, first)
        assert.equal(both, checksum(noise, 0, noise.length, seed))
      }),
    )
  })
})

describe('seedAt()', () => {
  test('is an unsigned integer of 32 bits for any position', () => {
    fc.assert(
      fc.property(u32, count, (seed, position) => {
        const mixed = seedAt(seed, position)
        assert.ok(Number.isInteger(mixed) && mixed >= 0 && mixed <= 0xffff_ffff)
      }),
    )
  })

  test('differs for every place in a segment, and for the same place in others', () => {
    const seeds = new Set<number>()
    for (let position = 0; position < 8 * 20_000; position += 8) seeds.add(seedAt(1234, position))
    assert.equal(seeds.size, 20_000)
    const others = new Set(Array.from({ length: 20_000 }, (_, segment) => seedAt(segment, 4096)))
    assert.equal(others.size, 20_000)
  })

  test('differs by no constant from one segment to the next', () => {
    const distances = new Set<number>()
    for (let position = 0; position < 8 * 1000; position += 8) {
      distances.add(seedAt(1, position) ^ seedAt(2, position))
    }
    assert.ok(distances.size > 990, 'one lucky frame would let a whole copied segment pass')
  })

  test('differs for positions that share their low half', () => {
    assert.notEqual(seedAt(1, 8), seedAt(1, 8 + 2 ** 32))
  })
})
