/**
 * Decodes one msgpack value, strictly: exactly what `pack` writes and nothing more. msgpackr's own
 * reader is not used, because it drops a leading byte order mark from longer strings, knows
 * extensions that make code and classes, and keeps a view on every buffer that it has seen.
 *
 * Any bytes are safe to give: no length is believed before it was held against what is left, the
 * depth is bounded, and byte strings are copies.
 */

/** Containers may be nested this deep, the record's own array included. */
export const MAX_DEPTH = 510

const SHORT_STRING_BYTES = 24
const KEY_CACHE_SIZE = 1024
const MAX_CACHED_KEY_BYTES = 32
const TIMESTAMP = 0xff
const MS_PER_SECOND = 1000
const NANOS_PER_MS = 1_000_000

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const float64 = new Float64Array(1)
const float64Bytes = new Uint8Array(float64.buffer)
const float32 = new Float32Array(1)
const float32Bytes = new Uint8Array(float32.buffer)
const isLittleEndian = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1
const shortUnits = Array.from({ length: SHORT_STRING_BYTES + 1 }, (_, n) => new Array<number>(n))

interface CachedKey {
  readonly bytes: Uint8Array
  readonly text: string
}
const keyCache = new Array<CachedKey | undefined>(KEY_CACHE_SIZE).fill(undefined)

/** Where the next byte is read. Only meaningful during one call of `readMsgpack`. */
let at = 0

/** Decodes the one value that lies exactly between `start` and `end`. Throws RangeError. */
export function readMsgpack(bytes: Uint8Array, start: number, end: number): unknown {
  if (start < 0 || start >= end || end > bytes.length) throw malformed('an empty range')
  at = start
  const value = read(bytes, end, 0)
  if (at !== end) throw malformed('bytes after the value')
  return value
}

function malformed(what: string): RangeError {
  return new RangeError(`Not a msgpack value: ${what}`)
}

/** Up to this length V8 keeps the memory of a Uint8Array beside the object itself. */
const CHEAP_BYTES = 64
/** Up to this length a memory block of its own costs many times the copy. */
const POOLED_BYTES = 1024

/**
 * A copy to hand out. It is never a view of what it was read from, and never a Buffer. Between 64
 * bytes and 1 KiB it lies in one of Node's own small pools, which are never written twice, can't be
 * transferred away, and keep at most 8 KiB alive.
 */
function handOut(bytes: Uint8Array, start: number, end: number): Uint8Array {
  const length = end - start
  if (length <= CHEAP_BYTES || length > POOLED_BYTES) return copyOf(bytes, start, end)
  const { buffer, byteOffset } = Buffer.allocUnsafe(length)
  const copy = new Uint8Array(buffer, byteOffset, length)
  copy.set(bytes.subarray(start, end))
  return copy
}

/** A copy that stands on its own, never a view and never a Buffer. */
export function copyOf(bytes: Uint8Array, start: number, end: number): Uint8Array {
  const copy = new Uint8Array(end - start)
  copy.set(bytes.subarray(start, end))
  return copy
}

/** Moves on by `count` bytes, if there are as many; returns where they start. */
function take(count: number, end: number): number {
  const from = at
  if (count > end - from) throw malformed('cut short')
  at = from + count
  return from
}

function read(bytes: Uint8Array, end: number, depth: number): unknown {
  const marker = bytes[take(1, end)] as number
  if (marker < 0x80) return marker
  if (marker >= 0xe0) return marker - 0x100
  if (marker < 0x90) return readMap(bytes, end, marker - 0x80, depth)
  if (marker < 0xa0) return readArray(bytes, end, marker - 0x90, depth)
  if (marker < 0xc0) return readString(bytes, end, marker - 0xa0)
  if (marker >= 0xca && marker <= 0xd3) return readNumber(bytes, end, marker)
  return readOther(bytes, end, marker, depth)
}

function readOther(bytes: Uint8Array, end: number, marker: number, depth: number): unknown {
  switch (marker) {
    case 0xc0:
      return null
    case 0xc2:
      return false
    case 0xc3:
      return true
    case 0xc4:
    case 0xc5:
    case 0xc6:
      return readBytes(bytes, end, readUint(bytes, end, 1 << (marker - 0xc4)))
    case 0xc7:
      return readTimestamp(bytes, end, readUint(bytes, end, 1))
    case 0xd6:
      return readTimestamp(bytes, end, 4)
    case 0xd7:
      return readTimestamp(bytes, end, 8)
    case 0xd9:
    case 0xda:
    case 0xdb:
      return readString(bytes, end, readUint(bytes, end, 1 << (marker - 0xd9)))
    case 0xdc:
    case 0xdd:
      return readArray(bytes, end, readUint(bytes, end, 2 << (marker - 0xdc)), depth)
    case 0xde:
    case 0xdf:
      return readMap(bytes, end, readUint(bytes, end, 2 << (marker - 0xde)), depth)
    default:
      throw malformed(`the marker ${marker}`)
  }
}

function readNumber(bytes: Uint8Array, end: number, marker: number): number | bigint {
  switch (marker) {
    case 0xca:
      return readFloat32(bytes, take(4, end))
    case 0xcb:
      return readFloat64(bytes, take(8, end))
    case 0xcf:
      return BigInt.asUintN(64, readInt64(bytes, end))
    case 0xd3:
      return readInt64(bytes, end)
    default:
      return marker < 0xd0
        ? readUint(bytes, end, 1 << (marker - 0xcc))
        : readInt(bytes, end, 1 << (marker - 0xd0))
  }
}

/** A big-endian unsigned integer of up to 4 bytes. */
function readUint(bytes: Uint8Array, end: number, count: number): number {
  const from = take(count, end)
  let value = bytes[from] as number
  for (let i = 1; i < count; i++) value = value * 0x100 + (bytes[from + i] as number)
  return value
}

function readInt(bytes: Uint8Array, end: number, count: number): number {
  const value = readUint(bytes, end, count)
  const limit = 2 ** (8 * count - 1)
  return value < limit ? value : value - 2 * limit
}

function readInt64(bytes: Uint8Array, end: number): bigint {
  const high = readInt(bytes, end, 4)
  return (BigInt(high) << 32n) | BigInt(readUint(bytes, end, 4))
}

function readFloat64(bytes: Uint8Array, from: number): number {
  for (let i = 0; i < 8; i++) {
    float64Bytes[isLittleEndian ? 7 - i : i] = bytes[from + i] as number
  }
  return float64[0] as number
}

function readFloat32(bytes: Uint8Array, from: number): number {
  for (let i = 0; i < 4; i++) {
    float32Bytes[isLittleEndian ? 3 - i : i] = bytes[from + i] as number
  }
  return float32[0] as number
}

function readBytes(bytes: Uint8Array, end: number, length: number): Uint8Array {
  const from = take(length, end)
  return handOut(bytes, from, from + length)
}

function readString(bytes: Uint8Array, end: number, length: number): string {
  const from = take(length, end)
  if (length === 0) return ''
  if (length > SHORT_STRING_BYTES) return utf8.decode(bytes.subarray(from, from + length))
  return readShortString(bytes, from, length)
}

/** Short strings are mostly ASCII, and made faster than any decoder is called. */
function readShortString(bytes: Uint8Array, from: number, length: number): string {
  const units = shortUnits[length] as number[]
  for (let i = 0; i < length; i++) {
    const unit = bytes[from + i] as number
    if (unit >= 0x80) return utf8.decode(bytes.subarray(from, from + length))
    units[i] = unit
  }
  return String.fromCharCode.apply(null, units)
}

function readArray(bytes: Uint8Array, end: number, length: number, depth: number): unknown[] {
  // Every element takes at least one byte.
  if (length > end - at || depth >= MAX_DEPTH) throw malformed('an array out of bounds')
  const array: unknown[] = []
  for (let i = 0; i < length; i++) array.push(read(bytes, end, depth + 1))
  return array
}

function readMap(
  bytes: Uint8Array,
  end: number,
  length: number,
  depth: number,
): Record<string, unknown> {
  if (depth >= MAX_DEPTH) throw malformed('a map nested too deep')
  const map: Record<string, unknown> = {}
  for (let i = 0; i < length; i++) {
    const key = readKey(bytes, end)
    if (key === '__proto__') throw malformed('a member that no object may have')
    map[key] = read(bytes, end, depth + 1)
  }
  return map
}

function readKey(bytes: Uint8Array, end: number): string {
  const marker = bytes[take(1, end)] as number
  if (marker >= 0xa0 && marker < 0xc0) return readCachedKey(bytes, end, marker - 0xa0)
  if (marker < 0xd9 || marker > 0xdb) throw malformed('a member without a name')
  return readString(bytes, end, readUint(bytes, end, 1 << (marker - 0xd9)))
}

/** The same few names come again and again; making an object of known strings is far faster. */
function readCachedKey(bytes: Uint8Array, end: number, length: number): string {
  if (length === 0 || length > MAX_CACHED_KEY_BYTES) return readString(bytes, end, length)
  const from = take(length, end)
  const last = bytes[from + length - 1] as number
  const middle = bytes[from + (length >> 1)] as number
  const hash =
    ((bytes[from] as number) * 31 + middle * 7 + last * 17 + length * 67) % KEY_CACHE_SIZE
  const cached = keyCache[hash]
  if (cached !== undefined && isSame(cached.bytes, bytes, from, length)) return cached.text
  at = from
  const text = readString(bytes, end, length)
  keyCache[hash] = { bytes: copyOf(bytes, from, from + length), text }
  return text
}

function isSame(expected: Uint8Array, bytes: Uint8Array, from: number, length: number): boolean {
  if (expected.length !== length) return false
  for (let i = 0; i < length; i++) if (expected[i] !== bytes[from + i]) return false
  return true
}

/** The one extension of plain msgpack: 32, 64 and 96 bits, as a Date. */
function readTimestamp(bytes: Uint8Array, end: number, length: number): Date {
  if (bytes[take(1, end)] !== TIMESTAMP) throw malformed('an unknown extension')
  const date = new Date(readTimestampMs(bytes, end, length))
  if (Number.isNaN(date.getTime())) throw malformed('a time out of range')
  return date
}

function readTimestampMs(bytes: Uint8Array, end: number, length: number): number {
  switch (length) {
    case 4:
      return readUint(bytes, end, 4) * MS_PER_SECOND
    case 8: {
      const high = readUint(bytes, end, 4)
      const seconds = (high & 3) * 2 ** 32 + readUint(bytes, end, 4)
      return seconds * MS_PER_SECOND + Math.floor((high >>> 2) / NANOS_PER_MS)
    }
    case 12: {
      const nanos = readUint(bytes, end, 4)
      return Number(readInt64(bytes, end)) * MS_PER_SECOND + Math.floor(nanos / NANOS_PER_MS)
    }
    default:
      throw malformed('a timestamp of an unknown size')
  }
}
