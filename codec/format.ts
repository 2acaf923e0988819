/**
 * The format of everything on disk: each magic, kind, size and limit, and nothing else. Integers
 * are little-endian; checksums are CRC-32 (checksum.ts). docs/format.md explains it; a test keeps
 * the two equal.
 *
 * A segment file:
 *
 *     ┌────────┬──────────────┬──────────┬─────┬───────┬───────┬─ ─ ─┬───────────────┐
 *     │ prefix │ header       │ snapshot │ pad │ group │ group │     │ zeros, or end │
 *     └────────┴──────────────┴──────────┴─────┴───────┴───────┴─ ─ ─┴───────────────┘
 *     0        16             88         └ groups start at a multiple of 8
 *
 * A group, the unit of one write and one sync:
 *
 *     ┌──────────────┬───────┬───────┬─ ─ ─┬─────┐
 *     │ group header │ frame │ frame │     │ pad │   pad: zeros up to a multiple of 8
 *     └──────────────┴───────┴───────┴─ ─ ─┴─────┘
 *     0              48      └── length bytes ───┘
 *
 * A frame: a header of 24 bytes and a body that is one plain msgpack value.
 *
 * The metadata file: the prefix, then the length and checksum of a body, then the body.
 */

/** The version that this code writes, and the only one it reads. */
export const FORMAT_VERSION = 1

// The prefix of a segment and of the metadata file. It never changes in any version.
//
//     0   magic, 8 bytes of ASCII
//     8   version, u32
//     12  checksum of bytes 0 to 11, u32
export const PREFIX_BYTES = 16
export const SEGMENT_MAGIC = 'BIFROSTS'
export const METADATA_MAGIC = 'BIFROSTM'
export const PREFIX_VERSION_AT = 8
export const PREFIX_CHECKSUM_AT = 12

// The header of a segment.
//
//     16  store id, 16 random bytes
//     32  segment number, u64, from 1
//     40  creation time in milliseconds since the epoch, u64
//     48  where the previous segment ended, u64; 0 in segment 1
//     56  where the previous segment's last group starts, u64
//     64  the number of that group, u64
//     72  the checksum in that group's header, u32
//     76  snapshot length, u32
//     80  snapshot checksum, u32, seeded
//     84  checksum of bytes 0 to 83, u32, seeded
export const STORE_ID_BYTES = 16
export const STORE_ID_AT = 16
export const SEGMENT_NUMBER_AT = 32
export const SEGMENT_CREATED_AT = 40
export const PREVIOUS_END_AT = 48
export const PREVIOUS_GROUP_AT = 56
export const PREVIOUS_NUMBER_AT = 64
export const PREVIOUS_CHECKSUM_AT = 72
export const SNAPSHOT_LENGTH_AT = 76
export const SNAPSHOT_CHECKSUM_AT = 80
export const SEGMENT_CHECKSUM_AT = 84
export const SEGMENT_HEADER_BYTES = 88
/** A snapshot is never longer, so that no length has to be believed. */
export const MAX_SNAPSHOT_BYTES: number = 256 * 1024 * 1024

// The header of a group.
//
//     0   magic, u32; another for a group that a repair made
//     4   checksum of the frames with their padding, u32, seeded
//     8   group number, u64, one more than the previous group's, across segments
//     16  length of the frames with their padding, u32, a multiple of 8
//     20  frame count, u32, at least 1
//     24  segment of the durable mark when the group was formed, u32
//     28  generation of the metadata file known durable then, u32
//     32  position of that durable mark, u64
//     40  checksum in the previous group's header, u32
//     44  checksum of bytes 0 to 43, u32, seeded; the next header repeats it
export const GROUP_ALIGNMENT = 8
export const GROUP_MAGIC = 0x50475242
/** The magic of a group that a repair made: it has fillers, which say what the next one follows. */
export const PATCHED_GROUP_MAGIC = 0x58475242
export const GROUP_FRAMES_CHECKSUM_AT = 4
export const GROUP_NUMBER_AT = 8
export const GROUP_LENGTH_AT = 16
export const GROUP_FRAMES_AT = 20
export const GROUP_DURABLE_SEGMENT_AT = 24
export const GROUP_GENERATION_AT = 28
export const GROUP_DURABLE_POSITION_AT = 32
export const GROUP_PREVIOUS_AT = 40
export const GROUP_CHECKSUM_AT = 44
export const GROUP_HEADER_BYTES = 48

// The header of a frame.
//
//     0   body length, u32
//     4   checksum, u32, seeded: of bytes 0 to 3 and 8 to 23, and of the body's own checksum
//     8   kind, u8, then three zero bytes
//     12  loglet, u32; 0 in frames about the whole store
//     16  offset, u64; what it means depends on the kind
export const FRAME_CHECKSUM_AT = 4
export const FRAME_KIND_AT = 8
export const FRAME_LOGLET_AT = 12
export const FRAME_OFFSET_AT = 16
export const FRAME_HEADER_BYTES = 24

/** What a frame is about, and what its offset and body hold. */
export const FRAME_KIND = {
  /** A record. Offset: the record's. Body: [createdAt, keys, payload]. */
  data: 1,
  /** A trim. Offset: the trim point. Body: nil. */
  trim: 2,
  /** A seal. Offset: the tail. Body: the reason, or nil. */
  seal: 3,
  /** A new log. Loglet: its first. Offset: the loglet's base LSN. Body: the log id. */
  create: 4,
  /** The end of a log. Body: the log id. */
  delete: 5,
  /** Segments that nothing needs. Offset: the number of the last one. Body: nil. */
  deadSegments: 6,
  /** Records lost to damage. Offset: the last one's. Body: the first one's offset. */
  lossGap: 7,
  /**
   * Fills the hole of damaged groups, alone in its group. Offset: the number of the group that the
   * next one follows. Loglet: that group's checksum. Body: nil, or zeros to fill the hole.
   */
  filler: 8,
  /** Reserved: a record moved out of an old segment. */
  relocated: 9,
} as const

/** The kind of a frame as it is on disk. */
export type FrameKind = (typeof FRAME_KIND)[keyof typeof FRAME_KIND]

// The metadata file.
//
//     16  body length, u32
//     20  checksum of the body, u32, continuing from the checksum of bytes 0 to 19
//     24  body, a msgpack array
export const METADATA_LENGTH_AT = 16
export const METADATA_CHECKSUM_AT = 20
export const METADATA_HEADER_BYTES = 24
/** A metadata body is never longer, so that no length has to be believed. */
export const MAX_METADATA_BYTES: number = 256 * 1024 * 1024

/** A log id is at most this many bytes of UTF-8. */
export const MAX_LOG_ID_BYTES = 255
/** The greatest loglet id; 0 stands for the store. */
export const MAX_LOGLET_ID = 0xffff_ffff
