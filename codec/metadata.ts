/**
 * The metadata file: a witness of how far the store was durable, kept apart from the segments. It
 * can be lost without losing a record, and is believed only where the segments agree.
 */
import { readU32, writeU32 } from './bytes.ts'
import { checksum } from './checksum.ts'
import {
  FORMAT_VERSION,
  MAX_METADATA_BYTES,
  METADATA_CHECKSUM_AT,
  METADATA_HEADER_BYTES,
  METADATA_LENGTH_AT,
  METADATA_MAGIC,
  STORE_ID_BYTES,
} from './format.ts'
import { pack, unpack } from './msgpack.ts'
import type { Offset } from './offset.ts'
import { readPrefix, writePrefix } from './prefix.ts'

/** A place in the stream: the end of a group, and which group that was. */
export interface Place {
  readonly segment: number
  /** The position after the group; 0 in segment 1 before there is any. */
  readonly position: number
  /** Where the group starts. */
  readonly groupPosition: number
  /** 0 before there is any group. */
  readonly groupNumber: number
  readonly groupChecksum: number
}

/** What the metadata says of one loglet, as of its place. */
export interface LogletWitness {
  readonly loglet: number
  /** The release pointer: the last durable offset. */
  readonly released: Offset
  readonly trimPoint: Offset
  readonly sealed: boolean
}

export interface Metadata {
  readonly storeId: Uint8Array
  /** Counts the writes of this file; group headers repeat it, so that an old copy is known. */
  readonly generation: number
  readonly place: Place
  /** The newest segment whose file is known to exist. */
  readonly newestSegment: number
  /** Whether the store was closed cleanly exactly at `place`. */
  readonly clean: boolean
  readonly nextLogletId: number
  readonly loglets: readonly LogletWitness[]
}

export function encodeMetadata(metadata: Metadata): Uint8Array {
  const { place } = metadata
  const body = pack([
    metadata.storeId,
    metadata.generation,
    [place.segment, place.position, place.groupPosition, place.groupNumber, place.groupChecksum],
    metadata.newestSegment,
    metadata.clean,
    metadata.nextLogletId,
    metadata.loglets.map((w) => [w.loglet, w.released, w.trimPoint, w.sealed]),
  ])
  const bytes = new Uint8Array(METADATA_HEADER_BYTES + body.length)
  writePrefix(bytes, METADATA_MAGIC, FORMAT_VERSION)
  writeU32(bytes, METADATA_LENGTH_AT, body.length)
  bytes.set(body, METADATA_HEADER_BYTES)
  writeU32(bytes, METADATA_CHECKSUM_AT, bodySum(bytes))
  return bytes
}

function bodySum(bytes: Uint8Array): number {
  const seed = checksum(bytes, 0, METADATA_CHECKSUM_AT, 0)
  return checksum(bytes, METADATA_HEADER_BYTES, bytes.length, seed)
}

/** Decodes a whole metadata file that checks; undefined for anything else. */
export function decodeMetadata(bytes: Uint8Array): Metadata | undefined {
  if (bytes.length <= METADATA_HEADER_BYTES) return undefined
  if (bytes.length > METADATA_HEADER_BYTES + MAX_METADATA_BYTES) return undefined
  if (readPrefix(bytes, METADATA_MAGIC) !== FORMAT_VERSION) return undefined
  if (readU32(bytes, METADATA_LENGTH_AT) !== bytes.length - METADATA_HEADER_BYTES) return undefined
  if (readU32(bytes, METADATA_CHECKSUM_AT) !== bodySum(bytes)) return undefined
  try {
    return readMetadata(unpack(bytes, METADATA_HEADER_BYTES, bytes.length))
  } catch {
    // msgpackr throws what it likes for bytes that are not msgpack; all of it means the same here.
    return undefined
  }
}

function readMetadata(value: unknown): Metadata | undefined {
  if (!Array.isArray(value)) return undefined
  const [storeId, generation, place, newestSegment, clean, nextLogletId, loglets] =
    value as unknown[]
  const known = readPlace(place)
  if (!(storeId instanceof Uint8Array) || storeId.length !== STORE_ID_BYTES) return undefined
  if (!isCount(generation) || known === undefined || !isCount(newestSegment)) return undefined
  if (typeof clean !== 'boolean' || !isCount(nextLogletId) || !Array.isArray(loglets)) {
    return undefined
  }
  const witnesses = (loglets as unknown[]).map(readWitness)
  if (witnesses.includes(undefined)) return undefined
  return {
    storeId,
    generation,
    place: known,
    newestSegment,
    clean,
    nextLogletId,
    loglets: witnesses as LogletWitness[],
  }
}

function readPlace(value: unknown): Place | undefined {
  if (!Array.isArray(value) || value.length !== 5 || !value.every(isCount)) return undefined
  const [segment, position, groupPosition, groupNumber, groupChecksum] = value as [
    number,
    number,
    number,
    number,
    number,
  ]
  return { segment, position, groupPosition, groupNumber, groupChecksum }
}

function readWitness(value: unknown): LogletWitness | undefined {
  if (!Array.isArray(value)) return undefined
  const [loglet, released, trimPoint, sealed] = value as unknown[]
  if (!isCount(loglet) || !isCount(released) || !isCount(trimPoint)) return undefined
  return typeof sealed === 'boolean' ? { loglet, released, trimPoint, sealed } : undefined
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
