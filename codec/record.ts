/**
 * The body of a data frame: one plain msgpack array `[createdAt, keys, payload]`, where createdAt
 * is an int64 of nanoseconds since the epoch and keys an array of strings or nil. The envelope is
 * written by hand, byte for byte what msgpackr writes for the same value.
 *
 *     93 | d3 8 bytes of createdAt | c0, or 9n and the keys | the payload
 */
import { checksum } from './checksum.ts'
import { LogError, logError, type LogErrorOf } from './errors.ts'
import { binHeaderBytes, pack, packShared, unpack, writeBinHeader } from './msgpack.ts'
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
const CREATED_AT = 2
const ENVELOPE_BYTES = 10
const NANOS_PER_MS = 1_000_000n
const NO_KEYS: Keys = Object.freeze([])
const EMPTY = new Uint8Array(0)

/** A record as it was stored. */
export interface StoredRecord {
  /** Nanoseconds since the epoch. */
  readonly createdAt: bigint
  /** The same in whole milliseconds, rounded down. */
  readonly createdAtMs: number
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
  /** What `write` copies; never kept longer, because it may be the caller's. */
  #source: Uint8Array = EMPTY
  #start = 0
  #end = 0
  /** 0 when the source is a packed payload; else the size of the bin header before raw bytes. */
  #binHeaderBytes = 0
  #isEncoded = false
  #bodySum = 0
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
    if (size <= this.#maxRecordBytes) return size
    this.#source = EMPTY
    throw recordTooLarge(this.#maxRecordBytes)
  }

  #prepare(payload: unknown, keys: Keys | undefined): number {
    this.#isEncoded = payload instanceof EncodedRecord
    if (payload instanceof EncodedRecord) return this.#take(payload.body, 0, payload.body.length)
    this.#keys = keys === undefined ? undefined : encodeKeys(keys)
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
    try {
      return packShared(packablePayload(payload, this.#maxRecordBytes))
    } catch (cause) {
      if (cause instanceof LogError) throw cause
      throw logError('ENCODE_FAILED', 'The payload could not be encoded', { cause })
    }
  }

  #take(source: Uint8Array, start: number, end: number): number {
    this.#source = source
    this.#start = start
    this.#end = end
    return end - start
  }

  /** The checksum of the body that was written last. */
  get bodySum(): number {
    return this.#bodySum
  }

  /** Lays the prepared body down at `at`; returns where it ends. `createdAtMs` is a whole number. */
  write(target: Uint8Array, at: number, createdAtMs: number): number {
    const body = this.#start === 0 && this.#end === this.#source.length
    const source = body ? this.#source : this.#source.subarray(this.#start, this.#end)
    this.#source = EMPTY
    if (this.#isEncoded) {
      target.set(source, at)
      this.#writeCreatedAt(target, at, createdAtMs)
      this.#bodySum = checksum(target, at, at + source.length, 0)
      return at + source.length
    }
    target[at] = ARRAY_OF_3
    target[at + 1] = INT64
    this.#writeCreatedAt(target, at, createdAtMs)
    let end = this.#writeKeys(target, at + ENVELOPE_BYTES)
    if (this.#binHeaderBytes > 0) end = writeBinHeader(target, end, source.length)
    target.set(source, end)
    this.#bodySum = this.#sumBody(target, at, end, source)
    return end + source.length
  }

  /**
   * The payload is summed where it came from, which needs no view into the target. Memory that is
   * shared with other threads may change meanwhile, so then it is what was written that is summed.
   */
  #sumBody(target: Uint8Array, at: number, payloadAt: number, source: Uint8Array): number {
    const isShared = this.#binHeaderBytes > 0 && source.buffer instanceof SharedArrayBuffer
    if (isShared) return checksum(target, at, payloadAt + source.length, 0)
    return checksum(source, 0, source.length, checksum(target, at, payloadAt, 0))
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

function encodeKeys(keys: Keys): Uint8Array | undefined {
  if (!Array.isArray(keys) || keys.length > MAX_KEYS) throw invalidKeys()
  // A copy has no holes, which `every` would not see.
  const own = [...(keys as unknown[])]
  if (!own.every(isKey)) throw invalidKeys()
  return own.length === 0 ? undefined : pack(own)
}

function invalidKeys(): LogErrorOf<'INVALID_OPTION'> {
  return logError(
    'INVALID_OPTION',
    `keys must be at most ${MAX_KEYS} strings of at most ${MAX_KEY_BYTES} bytes each`,
  )
}

function isKey(key: unknown): boolean {
  return typeof key === 'string' && key.isWellFormed() && Buffer.byteLength(key) <= MAX_KEY_BYTES
}

/** Decodes a body. Byte strings in it are copies. Throws CORRUPT if it is not a record's body. */
export function decodeRecord(bytes: Uint8Array, start: number, end: number): StoredRecord {
  const payloadAt = payloadStart(bytes, start, end)
  const time = readTime(bytes, start)
  return {
    createdAt: time.nanos,
    createdAtMs: time.ms,
    keys: readKeys(bytes, start + ENVELOPE_BYTES, payloadAt),
    payload: decode(bytes, payloadAt, end),
  }
}

/** The keys of a record's body, without decoding the payload. */
export function recordKeys(bytes: Uint8Array, start: number, end: number): Keys {
  return readKeys(bytes, start + ENVELOPE_BYTES, payloadStart(bytes, start, end))
}

function readKeys(bytes: Uint8Array, keysAt: number, keysEnd: number): Keys {
  if (bytes[keysAt] === NIL) return NO_KEYS
  const keys = decode(bytes, keysAt, keysEnd)
  if (!Array.isArray(keys) || !keys.every(isKey)) throw notARecord(keysAt)
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
  return readTime(bytes, start).nanos
}

/** The records of a group mostly carry the same time: the last one is remembered. */
const lastTime = { high: 0, low: 0, nanos: 0n, ms: 0 }

function readTime(bytes: Uint8Array, start: number): { nanos: bigint; ms: number } {
  const high = readBigEndian(bytes, start + CREATED_AT, 4)
  const low = readBigEndian(bytes, start + CREATED_AT + 4, 4)
  if (high === lastTime.high && low === lastTime.low) return lastTime
  lastTime.nanos = BigInt.asIntN(64, (BigInt(high) << 32n) | BigInt(low))
  lastTime.ms = Number(lastTime.nanos / NANOS_PER_MS)
  lastTime.high = high
  lastTime.low = low
  return lastTime
}

/**
 * The time in a body as whole milliseconds, rounded up; 0 if the body is too short to have one.
 * Recovery asks this of every record, so it makes no bigint.
 */
export function createdAtMsOf(bytes: Uint8Array, start: number): number {
  const at = start + CREATED_AT
  if (at + 8 > bytes.length) return 0
  const nanos = readBigEndian(bytes, at, 8)
  // Rounding in the sum stays far below a microsecond, which is all that may be taken off.
  return Math.max(0, Math.ceil(nanos / 1e6 - 0.001))
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
