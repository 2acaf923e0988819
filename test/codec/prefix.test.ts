/** The 16 bytes that no version changes. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { METADATA_MAGIC, PREFIX_BYTES, SEGMENT_MAGIC } from '../../codec/format.ts'
import { readPrefix, writePrefix } from '../../codec/prefix.ts'
import { bytes, eachCut, eachFlip, u32 } from '../support/codec-arbitraries.ts'

function prefix(magic: string, version: number): Uint8Array {
  const target = new Uint8Array(PREFIX_BYTES)
  writePrefix(target, magic, version)
  return target
}

describe('writePrefix() and readPrefix()', () => {
  test('bring every version back, newer ones too', () => {
    fc.assert(
      fc.property(u32, (version) => {
        assert.equal(readPrefix(prefix(SEGMENT_MAGIC, version), SEGMENT_MAGIC), version)
      }),
    )
  })

  test('start with the magic as ASCII', () => {
    const start = prefix(METADATA_MAGIC, 1).subarray(0, 8)
    assert.equal(Buffer.from(start).toString('latin1'), 'BIFROSTM')
  })

  test('tell the kinds of files apart', () => {
    assert.equal(readPrefix(prefix(SEGMENT_MAGIC, 1), METADATA_MAGIC), undefined)
  })

  test('notice a flip in any byte', () => {
    eachFlip(prefix(SEGMENT_MAGIC, 1), (flipped, at) => {
      assert.equal(readPrefix(flipped, SEGMENT_MAGIC), undefined, `byte ${at}`)
    })
  })

  test('notice a cut at any length', () => {
    eachCut(prefix(SEGMENT_MAGIC, 1), (cut) => {
      assert.equal(readPrefix(cut, SEGMENT_MAGIC), undefined)
    })
  })

  test('see no prefix in any other bytes', () => {
    fc.assert(
      fc.property(bytes, (some) => {
        assert.equal(readPrefix(some, SEGMENT_MAGIC), undefined)
      }),
    )
  })
})
