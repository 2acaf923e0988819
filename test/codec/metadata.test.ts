/** The metadata file: everything comes back from a whole file, and nothing from any other. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { writeU32 } from '../../codec/bytes.ts'
import { checksum } from '../../codec/checksum.ts'
import {
  FORMAT_VERSION,
  METADATA_CHECKSUM_AT,
  METADATA_HEADER_BYTES,
  METADATA_LENGTH_AT,
  METADATA_MAGIC,
} from '../../codec/format.ts'
import { decodeMetadata, encodeMetadata, type Metadata } from '../../codec/metadata.ts'
import { pack, unpack } from '../../codec/msgpack.ts'
import { readPrefix, writePrefix } from '../../codec/prefix.ts'
import {
  anyValue,
  bytes,
  eachCut,
  eachFlip,
  metadata,
  withReplaced,
} from '../support/codec-arbitraries.ts'

const METADATA: Metadata = {
  storeId: new Uint8Array(16).fill(7),
  generation: 3,
  place: {
    segment: 2,
    position: 4096,
    groupPosition: 4000,
    groupNumber: 9,
    groupChecksum: 0xdead_beef,
  },
  newestSegment: 3,
  clean: true,
  nextLogletId: 5,
  loglets: [{ loglet: 1, released: 7, trimPoint: 2, sealed: false }],
}

/** A file with this body whose checksums fit. */
function forge(body: Uint8Array): Uint8Array {
  const file = new Uint8Array(METADATA_HEADER_BYTES + body.length)
  writePrefix(file, METADATA_MAGIC, FORMAT_VERSION)
  writeU32(file, METADATA_LENGTH_AT, body.length)
  file.set(body, METADATA_HEADER_BYTES)
  const seed = checksum(file, 0, METADATA_CHECKSUM_AT, 0)
  writeU32(file, METADATA_CHECKSUM_AT, checksum(file, METADATA_HEADER_BYTES, file.length, seed))
  return file
}

function bodyOf(file: Uint8Array): unknown {
  return unpack(file, METADATA_HEADER_BYTES, file.length)
}

describe('encodeMetadata() and decodeMetadata()', () => {
  test('bring every field back', () => {
    fc.assert(
      fc.property(metadata, (some) => {
        assert.deepEqual(decodeMetadata(encodeMetadata(some)), some)
      }),
    )
  })

  test('write plain msgpack behind prefix, length and checksum', () => {
    const file = encodeMetadata(METADATA)
    assert.equal(readPrefix(file, METADATA_MAGIC), FORMAT_VERSION)
    assert.deepEqual(file, forge(file.slice(METADATA_HEADER_BYTES)))
    assert.deepEqual(bodyOf(file), [
      METADATA.storeId,
      3,
      [2, 4096, 4000, 9, 0xdead_beef],
      3,
      true,
      5,
      [[1, 7, 2, false]],
    ])
  })

  test('notice a flip in any byte', () => {
    eachFlip(encodeMetadata(METADATA), (flipped, at) => {
      assert.equal(decodeMetadata(flipped), undefined, `byte ${at}`)
    })
  })

  test('notice a cut at any length, and a byte too many', () => {
    const file = encodeMetadata(METADATA)
    eachCut(file, (cut) => assert.equal(decodeMetadata(cut), undefined, `${cut.length} bytes`))
    assert.equal(decodeMetadata(Uint8Array.of(...file, 0)), undefined)
  })

  test('decode no file of another version', () => {
    const file = encodeMetadata(METADATA)
    writePrefix(file, METADATA_MAGIC, FORMAT_VERSION + 1)
    const resealed = checksum(file, 0, METADATA_CHECKSUM_AT, 0)
    const sum = checksum(file, METADATA_HEADER_BYTES, file.length, resealed)
    writeU32(file, METADATA_CHECKSUM_AT, sum)
    assert.equal(decodeMetadata(file), undefined)
    assert.equal(readPrefix(file, METADATA_MAGIC), FORMAT_VERSION + 1)
  })

  test('see no metadata in any other bytes', () => {
    fc.assert(
      fc.property(bytes, (some) => {
        assert.equal(decodeMetadata(some), undefined)
      }),
    )
  })

  test('never throw for a body whose checksum fits, whatever it is', () => {
    fc.assert(
      fc.property(bytes, (body) => {
        decodeMetadata(forge(body))
      }),
    )
    fc.assert(
      fc.property(metadata, fc.array(fc.nat(9), { maxLength: 3 }), anyValue, (some, path, by) => {
        decodeMetadata(forge(pack(withReplaced(bodyOf(encodeMetadata(some)), path, by))))
      }),
      { numRuns: 1000 },
    )
  })

  test('refuse fields that are no counts, and a store id of another length', () => {
    const body = bodyOf(encodeMetadata(METADATA))
    const bad: [readonly number[], unknown][] = [
      [[0], new Uint8Array(15)],
      [[0], 'store id'],
      [[1], -1],
      [[2], [1, 2, 3, 4]],
      [[2, 1], 0.5],
      [[4], 1],
      [[6, 0, 1], null],
      [[6, 0, 3], 1],
    ]
    for (const [path, by] of bad) {
      assert.equal(decodeMetadata(forge(pack(withReplaced(body, path, by)))), undefined)
    }
  })
})
