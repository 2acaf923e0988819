/** The start of a segment: header and snapshot come back, and nothing else passes for them. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { isZero, writeU32 } from '../../codec/bytes.ts'
import { checksum } from '../../codec/checksum.ts'
import {
  FORMAT_VERSION,
  MAX_SNAPSHOT_BYTES,
  PREFIX_BYTES,
  SEGMENT_CHECKSUM_AT,
  SEGMENT_HEADER_BYTES,
  SEGMENT_MAGIC,
  SNAPSHOT_LENGTH_AT,
} from '../../codec/format.ts'
import { writePrefix } from '../../codec/prefix.ts'
import {
  checkedSnapshot,
  decodeSegmentHeader,
  encodeSegmentStart,
  groupsStart,
  NO_SEGMENT_END,
  sameStore,
  segmentSeed,
} from '../../codec/segment-header.ts'
import { bytes, eachCut, eachFlip, segmentFields, storeId } from '../support/codec-arbitraries.ts'

const FIELDS = {
  storeId: new Uint8Array(16).fill(7),
  segment: 3,
  createdAtMs: 1_767_571_200_000,
  previous: { end: 4096, groupPosition: 4000, groupNumber: 9, groupChecksum: 0xdead_beef },
}
const SNAPSHOT = Uint8Array.of(1, 2, 3, 4, 5)

/** Whether header and snapshot both check. */
function isWhole(start: Uint8Array): boolean {
  const header = decodeSegmentHeader(start)
  return header !== undefined && checkedSnapshot(start, header) !== undefined
}

/** Puts a checksum on a header that fits whatever its fields say. */
function resealed(header: Uint8Array, change: (header: Uint8Array) => void): Uint8Array {
  const copy = header.slice()
  change(copy)
  const { storeId: id, segment } = FIELDS
  writeU32(
    copy,
    SEGMENT_CHECKSUM_AT,
    checksum(copy, 0, SEGMENT_CHECKSUM_AT, segmentSeed(id, segment)),
  )
  return copy
}

describe('encodeSegmentStart() and decodeSegmentHeader()', () => {
  test('bring every field and the snapshot back', () => {
    fc.assert(
      fc.property(segmentFields, bytes, (fields, snapshot) => {
        const start = encodeSegmentStart(fields, snapshot)
        const header = decodeSegmentHeader(start)
        assert.ok(header)
        const { snapshotLength, snapshotChecksum, ...found } = header
        assert.deepEqual(found, fields)
        assert.equal(snapshotLength, snapshot.length)
        assert.equal(typeof snapshotChecksum, 'number')
        assert.deepEqual(checkedSnapshot(start, header), snapshot)
      }),
    )
  })

  test('leave the groups a place at a multiple of 8, and zeros before it', () => {
    for (let length = 0; length < 20; length++) {
      const start = encodeSegmentStart(FIELDS, new Uint8Array(length).fill(255))
      assert.equal(start.length % 8, 0)
      assert.equal(start.length, groupsStart(length))
      assert.ok(isZero(start, SEGMENT_HEADER_BYTES + length, start.length))
    }
  })

  test('decode the header alone', () => {
    const start = encodeSegmentStart(FIELDS, SNAPSHOT)
    assert.ok(decodeSegmentHeader(start.slice(0, SEGMENT_HEADER_BYTES)))
  })

  test('decode a copy of the store id, not a view', () => {
    const start = encodeSegmentStart(FIELDS, SNAPSHOT)
    const header = decodeSegmentHeader(start)
    start.fill(0)
    assert.deepEqual(header?.storeId, FIELDS.storeId)
  })

  test('notice a flip in any byte', () => {
    const start = encodeSegmentStart(FIELDS, SNAPSHOT)
    eachFlip(start, (flipped, at) => {
      assert.equal(isWhole(flipped), false, `byte ${at}`)
      assert.equal(decodeSegmentHeader(flipped) === undefined, at < SEGMENT_HEADER_BYTES)
    })
  })

  test('notice a cut at any length', () => {
    eachCut(encodeSegmentStart(FIELDS, SNAPSHOT), (cut) => {
      assert.equal(isWhole(cut), false, `${cut.length} bytes`)
    })
  })

  test('see no header in any other bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (some) => {
        assert.equal(decodeSegmentHeader(some), undefined)
      }),
    )
  })

  test('see no header in any other bytes behind a prefix that is intact', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 88, maxLength: 100 }), (some) => {
        writePrefix(some, SEGMENT_MAGIC, FORMAT_VERSION)
        assert.equal(decodeSegmentHeader(some), undefined)
      }),
    )
  })

  test('never throw for a header whose checksum fits, whatever its fields are', () => {
    const start = encodeSegmentStart(FIELDS, SNAPSHOT)
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 48, maxLength: 48 }), (fields) => {
        const forged = resealed(start, (header) => header.set(fields.subarray(0, 44), 40))
        const header = decodeSegmentHeader(forged)
        if (header !== undefined) checkedSnapshot(forged, header)
      }),
    )
  })

  test('believe no snapshot to be longer than there may be one', () => {
    const start = encodeSegmentStart(FIELDS, SNAPSHOT)
    for (const length of [MAX_SNAPSHOT_BYTES + 1, 0xffff_ffff]) {
      const forged = resealed(start, (header) => writeU32(header, SNAPSHOT_LENGTH_AT, length))
      assert.equal(decodeSegmentHeader(forged), undefined)
    }
    const forged = resealed(start, (header) => {
      writeU32(header, SNAPSHOT_LENGTH_AT, MAX_SNAPSHOT_BYTES)
    })
    const header = decodeSegmentHeader(forged)
    assert.ok(header)
    assert.equal(checkedSnapshot(forged, header), undefined, 'the bytes are not there')
  })

  test('decode no header of another version', () => {
    const start = encodeSegmentStart(FIELDS, SNAPSHOT)
    const newer = resealed(start, (header) => {
      writePrefix(header.subarray(0, PREFIX_BYTES), SEGMENT_MAGIC, FORMAT_VERSION + 1)
    })
    assert.equal(decodeSegmentHeader(newer), undefined)
  })
})

describe('segmentSeed()', () => {
  test('differs by store and by segment', () => {
    fc.assert(
      fc.property(storeId, storeId, fc.nat(), (one, other, segment) => {
        assert.notEqual(segmentSeed(one, segment), segmentSeed(one, segment + 1))
        if (!sameStore(one, other)) {
          assert.notEqual(segmentSeed(one, segment), segmentSeed(other, segment))
        }
      }),
    )
  })
})

describe('sameStore()', () => {
  test('compares every byte, and the length', () => {
    const id = FIELDS.storeId
    assert.ok(sameStore(id, id.slice()))
    eachFlip(id, (flipped) => assert.ok(!sameStore(id, flipped)))
    assert.ok(!sameStore(id, id.subarray(1)))
  })
})

test('NO_SEGMENT_END is what segment 1 follows', () => {
  assert.deepEqual(Object.values(NO_SEGMENT_END), [0, 0, 0, 0])
})
