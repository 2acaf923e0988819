/**
 * The header of a segment and the snapshot behind it. With the segment's first group they are one
 * unit: a segment whose header or snapshot doesn't check has no whole group.
 */
import { alignUp, readU32, readU64, writeU32, writeU64 } from './bytes.ts'
import { checksum, seedAt } from './checksum.ts'
import {
  FORMAT_VERSION,
  GROUP_ALIGNMENT,
  MAX_SNAPSHOT_BYTES,
  PREVIOUS_CHECKSUM_AT,
  PREVIOUS_END_AT,
  PREVIOUS_GROUP_AT,
  PREVIOUS_NUMBER_AT,
  SEGMENT_CHECKSUM_AT,
  SEGMENT_CREATED_AT,
  SEGMENT_HEADER_BYTES,
  SEGMENT_MAGIC,
  SEGMENT_NUMBER_AT,
  SNAPSHOT_CHECKSUM_AT,
  SNAPSHOT_LENGTH_AT,
  STORE_ID_AT,
  STORE_ID_BYTES,
} from './format.ts'
import { readPrefix, writePrefix } from './prefix.ts'

/** The end of a segment: what the next segment's header says about it. */
export interface SegmentEnd {
  /** The position after the last group. */
  readonly end: number
  /** Where the last group starts. */
  readonly groupPosition: number
  readonly groupNumber: number
  readonly groupChecksum: number
}

/** What the header of segment 1 says about the segment before it. */
export const NO_SEGMENT_END: SegmentEnd = {
  end: 0,
  groupPosition: 0,
  groupNumber: 0,
  groupChecksum: 0,
}

export interface SegmentHeader {
  readonly storeId: Uint8Array
  readonly segment: number
  readonly createdAtMs: number
  readonly previous: SegmentEnd
  readonly snapshotLength: number
  readonly snapshotChecksum: number
}

/** The seed of every checksum in a segment. */
export function segmentSeed(storeId: Uint8Array, segment: number): number {
  const number = new Uint8Array(8)
  writeU64(number, 0, segment)
  return checksum(number, 0, number.length, checksum(storeId, 0, STORE_ID_BYTES, 0))
}

/** Where the first group starts behind a snapshot of this length. */
export function groupsStart(snapshotLength: number): number {
  return alignUp(SEGMENT_HEADER_BYTES + snapshotLength, GROUP_ALIGNMENT)
}

/** Encodes header and snapshot, padded to where the first group starts. */
export function encodeSegmentStart(
  fields: Omit<SegmentHeader, 'snapshotLength' | 'snapshotChecksum'>,
  snapshot: Uint8Array,
): Uint8Array {
  const { storeId, segment, createdAtMs, previous } = fields
  const bytes = new Uint8Array(groupsStart(snapshot.length))
  const seed = segmentSeed(storeId, segment)
  writePrefix(bytes, SEGMENT_MAGIC, FORMAT_VERSION)
  bytes.set(storeId, STORE_ID_AT)
  writeU64(bytes, SEGMENT_NUMBER_AT, segment)
  writeU64(bytes, SEGMENT_CREATED_AT, createdAtMs)
  writeU64(bytes, PREVIOUS_END_AT, previous.end)
  writeU64(bytes, PREVIOUS_GROUP_AT, previous.groupPosition)
  writeU64(bytes, PREVIOUS_NUMBER_AT, previous.groupNumber)
  writeU32(bytes, PREVIOUS_CHECKSUM_AT, previous.groupChecksum)
  writeU32(bytes, SNAPSHOT_LENGTH_AT, snapshot.length)
  bytes.set(snapshot, SEGMENT_HEADER_BYTES)
  writeU32(bytes, SNAPSHOT_CHECKSUM_AT, snapshotChecksum(bytes, snapshot.length, seed))
  writeU32(bytes, SEGMENT_CHECKSUM_AT, checksum(bytes, 0, SEGMENT_CHECKSUM_AT, seed))
  return bytes
}

/** The checksum covers the padding too, so that every byte of the start is covered. */
function snapshotChecksum(bytes: Uint8Array, snapshotLength: number, seed: number): number {
  const end = groupsStart(snapshotLength)
  return checksum(bytes, SEGMENT_HEADER_BYTES, end, seedAt(seed, SEGMENT_HEADER_BYTES))
}

/**
 * Decodes a header that checks on its own: of this version, with a sane snapshot length. Undefined
 * otherwise. The caller compares store id and number with those it expects.
 */
export function decodeSegmentHeader(bytes: Uint8Array): SegmentHeader | undefined {
  if (bytes.length < SEGMENT_HEADER_BYTES) return undefined
  if (readPrefix(bytes, SEGMENT_MAGIC) !== FORMAT_VERSION) return undefined
  try {
    const header = headerFields(bytes)
    const seed = segmentSeed(header.storeId, header.segment)
    const found = readU32(bytes, SEGMENT_CHECKSUM_AT)
    if (found !== checksum(bytes, 0, SEGMENT_CHECKSUM_AT, seed)) return undefined
    return header.snapshotLength <= MAX_SNAPSHOT_BYTES ? header : undefined
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

function headerFields(bytes: Uint8Array): SegmentHeader {
  return {
    storeId: bytes.slice(STORE_ID_AT, STORE_ID_AT + STORE_ID_BYTES),
    segment: readU64(bytes, SEGMENT_NUMBER_AT),
    createdAtMs: readU64(bytes, SEGMENT_CREATED_AT),
    previous: {
      end: readU64(bytes, PREVIOUS_END_AT),
      groupPosition: readU64(bytes, PREVIOUS_GROUP_AT),
      groupNumber: readU64(bytes, PREVIOUS_NUMBER_AT),
      groupChecksum: readU32(bytes, PREVIOUS_CHECKSUM_AT),
    },
    snapshotLength: readU32(bytes, SNAPSHOT_LENGTH_AT),
    snapshotChecksum: readU32(bytes, SNAPSHOT_CHECKSUM_AT),
  }
}

/** The snapshot's bytes, if they are all there and check; `bytes` starts at the segment's start. */
export function checkedSnapshot(bytes: Uint8Array, header: SegmentHeader): Uint8Array | undefined {
  if (bytes.length < groupsStart(header.snapshotLength)) return undefined
  const seed = segmentSeed(header.storeId, header.segment)
  if (snapshotChecksum(bytes, header.snapshotLength, seed) !== header.snapshotChecksum) {
    return undefined
  }
  return bytes.subarray(SEGMENT_HEADER_BYTES, SEGMENT_HEADER_BYTES + header.snapshotLength)
}

/** Whether two store ids are the same. */
export function sameStore(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i])
}
