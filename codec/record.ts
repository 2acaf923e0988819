/**
 * The body of a data frame: one plain msgpack array `[createdAt, keys, payload]`, where createdAt
 * is an int64 of nanoseconds since the epoch and keys an array of strings or nil. The envelope is
 * written by hand, byte for byte what msgpackr writes for the same value.
 *
 *     93 | d3 8 bytes of createdAt | c0, or 9n and the keys | the payload
 */
import { logError, type LogErrorOf } from './errors.ts'
import { copyOf, pack, packShared, unpack } from './msgpack.ts'
import { packablePayload, recordTooLarge } from './payload.ts'

/** Labels of a record that readers can filter by. */
export type Keys = readonly string[]

/** A record carries at most this many keys. */
export const MAX_KEYS = 16
/** A key is at most this many bytes of UTF-8. */
export const MAX_KEY_BYTES = 255

const ARRAY_OF_3 = 0x93
const INT64 = 0xd3
const NIL = 0xc0
const BIN_8 = 0xc4
const BIN_16 = 0xc5
const BIN_32 = 0xc6
const CREATED_AT = 2
const ENVELOPE_BYTES = 10
const NANOS_PER_MS = 1_000_000n
const NO_KEYS: Keys = Object.freeze([])

/** A record as it was stored. */
export interface StoredRecord {
  /** Nanoseconds since the epoch. */
  readonly createdAt: bigint
  readonly keys: Keys
  readonly payload: unknown
}

/**
 * A record's body in bytes of its own, for a caller who must capture a payload before there is a
 * place to write it. Give it to a loglet instead of the payload; the time is set when it is laid.
 */
export class EncodedRecord {
  readonly body: Uint8Array

  constructor(body: Uint8Array) {
    this.body = body
  }
}

/**
 * Encodes records straight into the buffer that will be written: `prepare` says how many bytes the
 * body takes, `write` lays them down. One `write` follows each `prepare`, with no other call in
 * between; the payload is copied once.
 */
export class RecordEncoder {
  readonly #maxRecordBytes: number
  #keys: Uint8Array | undefined
  #source: Uint8Array = new Uint8Array(0)
  #start = 0
  #end = 0
  /** 0 when the source is a packed payload; else the size of the bin header before raw bytes. */
  #binHeaderBytes = 0
  #isEncoded = false
  #clockMs = -1
  readonly #clockBytes = new Uint8Array(8)

  /** `maxRecordBytes` bounds a whole body. */
  constructor(maxRecordBytes: number) {
    this.#maxRecordBytes = maxRecordBytes
  }

  /**
   * Checks and packs; returns the size of the body in bytes. Throws ENCODE_FAILED,
   * RECORD_TOO_LARGE, or INVALID_OPTION for the keys.
   */
  prepare(payload: unknown, keys: Keys | undefined): number {
    const size = this.#prepare(payload, keys)
    if (size > this.#maxRecordBytes) throw recordTooLarge(this.#maxRecordBytes)
    return size
  }

  #prepare(payload: unknown, keys: Keys | undefined): number {
    this.#isEncoded = payload instanceof EncodedRecord
    if (payload instanceof EncodedRecord) return this.#take(payload.body, 0, payload.body.length)
    this.#keys = keys === undefined || keys.length === 0 ? undefined : encodeKeys(keys)
    const envelope = ENVELOPE_BYTES + (this.#keys?.length ?? 1)
    if (payload instanceof Uint8Array) {
      this.#binHeaderBytes = binHeaderBytes(payload.length)
      return envelope + this.#binHeaderBytes + this.#take(payload, 0, payload.length)
    }
    this.#binHeaderBytes = 0
    const packed = this.#pack(payload)
    return envelope + this.#take(packed.bytes, packed.start, packed.end)
  }

  #pack(payload: unknown): ReturnType<typeof packShared> {
    const packable = packablePayload(payload, this.#maxRecordBytes)
    try {
      return packShared(packable)
    } catch (cause) {
      throw logError('ENCODE_FAILED', 'The payload could not be encoded', { cause })
    }
  }

  #take(source: Uint8Array, start: number, end: number): number {
    this.#source = source
    this.#start = start
    this.#end = end
    return end - start
  }

  /** Lays the prepared body down at `at`; returns where it ends. `createdAtMs` is a whole number. */
  write(target: Uint8Array, at: number, createdAtMs: number): number {
    const body = this.#start === 0 && this.#end === this.#source.length
    const source = body ? this.#source : this.#source.subarray(this.#start, this.#end)
    this.#source = EMPTY
    if (this.#isEncoded) {
      target.set(source, at)
      this.#writeCreatedAt(target, at, createdAtMs)
      return at + source.length
    }
    target[at] = ARRAY_OF_3
    target[at + 1] = INT64
    this.#writeCreatedAt(target, at, createdAtMs)
    let end = this.#writeKeys(target, at + ENVELOPE_BYTES)
    if (this.#binHeaderBytes > 0) end = writeBinHeader(target, end, source.length)
    target.set(source, end)
    return end + source.length
  }

  #writeKeys(target: Uint8Array, at: number): number {
    if (this.#keys === undefined) {
      target[at] = NIL
      return at + 1
    }
    target.set(this.#keys, at)
    return at + this.#keys.length
  }

  #writeCreatedAt(target: Uint8Array, at: number, createdAtMs: number): void {
    if (createdAtMs !== this.#clockMs) {
      new DataView(this.#clockBytes.buffer).setBigInt64(0, BigInt(createdAtMs) * NANOS_PER_MS)
      this.#clockMs = createdAtMs
    }
    for (let i = 0; i < 8; i++) target[at + CREATED_AT + i] = this.#clockBytes[i] as number
  }

  /** Encodes into bytes of their own; the time in them is 0 until the record is laid. */
  encode(payload: unknown, keys: Keys | undefined): EncodedRecord {
    const body = new Uint8Array(this.prepare(payload, keys))
    this.write(body, 0, 0)
    return new EncodedRecord(body)
  }
}

const EMPTY = new Uint8Array(0)

function binHeaderBytes(length: number): number {
  return length < 0x100 ? 2 : length < 0x10000 ? 3 : 5
}

function writeBinHeader(target: Uint8Array, at: number, length: number): number {
  const bytes = binHeaderBytes(length)
  target[at] = bytes === 2 ? BIN_8 : bytes === 3 ? BIN_16 : BIN_32
  for (let i = 1; i < bytes; i++) target[at + i] = (length >>> ((bytes - 1 - i) * 8)) & 0xff
  return at + bytes
}

function encodeKeys(keys: Keys): Uint8Array {
  if (!Array.isArray(keys) || keys.length > MAX_KEYS || !keys.every(isKey)) {
    throw logError(
      'INVALID_OPTION',
      `keys must be at most ${MAX_KEYS} strings of at most ${MAX_KEY_BYTES} bytes each`,
    )
  }
  return pack(keys)
}

function isKey(key: unknown): boolean {
  return typeof key === 'string' && key.isWellFormed() && Buffer.byteLength(key) <= MAX_KEY_BYTES
}

/** Decodes a body. Byte strings in it are copies. Throws CORRUPT if it is not a record's body. */
export function decodeRecord(bytes: Uint8Array, start: number, end: number): StoredRecord {
  const payloadAt = payloadStart(bytes, start, end)
  return {
    createdAt: createdAtOf(bytes, start),
    keys: recordKeys(bytes, start, end),
    payload: decodePayload(bytes, payloadAt, end),
  }
}

/** The keys of a record's body, without decoding the payload. */
export function recordKeys(bytes: Uint8Array, start: number, end: number): Keys {
  const payloadAt = payloadStart(bytes, start, end)
  if (bytes[start + ENVELOPE_BYTES] === NIL) return NO_KEYS
  const keys = decode(bytes, start + ENVELOPE_BYTES, payloadAt)
  if (!Array.isArray(keys) || !keys.every(isKey)) throw notARecord(start)
  return keys as Keys
}

/** Whether a reader that asked for `wanted` gets this record: a match, or no keys at all. */
export function recordMatches(
  bytes: Uint8Array,
  start: number,
  end: number,
  wanted: ReadonlySet<string>,
): boolean {
  const keys = recordKeys(bytes, start, end)
  return keys.length === 0 || keys.some((key) => wanted.has(key))
}

/** The time in a body, in nanoseconds since the epoch. The body must have been checked. */
export function createdAtOf(bytes: Uint8Array, start: number): bigint {
  return new DataView(bytes.buffer, bytes.byteOffset).getBigInt64(start + CREATED_AT)
}

function decodePayload(bytes: Uint8Array, at: number, end: number): unknown {
  const headerBytes = binHeaderAt(bytes[at] as number)
  if (headerBytes === 0) return decode(bytes, at, end)
  const length = readBigEndian(bytes, at + 1, headerBytes - 1)
  if (at + headerBytes + length !== end) throw notARecord(at)
  return copyOf(bytes, at + headerBytes, end)
}

function binHeaderAt(marker: number): number {
  return marker === BIN_8 ? 2 : marker === BIN_16 ? 3 : marker === BIN_32 ? 5 : 0
}

/** Walks over the envelope; every length is checked before it is believed. */
function payloadStart(bytes: Uint8Array, start: number, end: number): number {
  const keysAt = start + ENVELOPE_BYTES
  if (end > bytes.length || keysAt + 1 >= end) throw notARecord(start)
  if (bytes[start] !== ARRAY_OF_3 || bytes[start + 1] !== INT64) throw notARecord(start)
  if (bytes[keysAt] === NIL) return keysAt + 1
  let at = keysAt + 1
  let count = (bytes[keysAt] as number) - 0x90
  if (bytes[keysAt] === 0xdc) {
    count = readBigEndian(bytes, at, 2)
    at += 2
  }
  if (count < 1 || count > MAX_KEYS) throw notARecord(start)
  for (let i = 0; i < count; i++) at = afterKey(bytes, at, end)
  if (at >= end) throw notARecord(start)
  return at
}

function afterKey(bytes: Uint8Array, at: number, end: number): number {
  const marker = at < end ? (bytes[at] as number) : 0
  if (marker >= 0xa0 && marker <= 0xbf) return at + 1 + (marker - 0xa0)
  if (marker !== 0xd9 || at + 1 >= end) throw notARecord(at)
  return at + 2 + (bytes[at + 1] as number)
}

function readBigEndian(bytes: Uint8Array, at: number, count: number): number {
  let value = 0
  for (let i = 0; i < count; i++) value = value * 0x100 + (bytes[at + i] ?? 0)
  return value
}

function decode(bytes: Uint8Array, start: number, end: number): unknown {
  try {
    return unpack(bytes, start, end)
  } catch (cause) {
    throw notARecord(start, cause)
  }
}

/** The file is not known here; the reader that called adds it. */
function notARecord(position: number, cause?: unknown): LogErrorOf<'CORRUPT'> {
  const fields = { file: '', position, label: 'R4', logs: [] }
  return logError('CORRUPT', 'These bytes are not the body of a record', { cause, fields })
}
