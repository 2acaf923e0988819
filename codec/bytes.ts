/**
 * Bounds-checked reads and writes of little-endian integers. A read past the end, or of an integer
 * that JavaScript would round, is a RangeError; decoders turn it into "these bytes don't check".
 */

const TWO_32 = 0x1_0000_0000
/** The greatest high half of a safe integer. */
const MAX_HIGH = 0x1f_ffff

function requireRange(bytes: Uint8Array, at: number, length: number): void {
  if (at >= 0 && at + length <= bytes.length) return
  throw new RangeError(`No ${length} bytes at ${at} of ${bytes.length}`)
}

export function readU32(bytes: Uint8Array, at: number): number {
  requireRange(bytes, at, 4)
  return (
    ((bytes[at] as number) |
      ((bytes[at + 1] as number) << 8) |
      ((bytes[at + 2] as number) << 16) |
      ((bytes[at + 3] as number) << 24)) >>>
    0
  )
}

/** Reads an unsigned 64-bit integer that must be a safe integer. */
export function readU64(bytes: Uint8Array, at: number): number {
  const high = readU32(bytes, at + 4)
  if (high > MAX_HIGH) throw new RangeError(`The integer at ${at} is greater than 2^53 - 1`)
  return high * TWO_32 + readU32(bytes, at)
}

export function writeU32(bytes: Uint8Array, at: number, value: number): void {
  requireRange(bytes, at, 4)
  bytes[at] = value
  bytes[at + 1] = value >>> 8
  bytes[at + 2] = value >>> 16
  bytes[at + 3] = value >>> 24
}

/** Writes a safe integer that is not negative as 64 bits. */
export function writeU64(bytes: Uint8Array, at: number, value: number): void {
  writeU32(bytes, at, value >>> 0)
  writeU32(bytes, at + 4, Math.floor(value / TWO_32))
}

/** The next multiple of `alignment`, a power of two below 2^31, from `position` on. */
export function alignUp(position: number, alignment: number): number {
  const over = position % alignment
  return over === 0 ? position : position + alignment - over
}

const WORD = 4

/** Whether the bytes from `start` to `end` are all zero. */
export function isZero(bytes: Uint8Array, start: number, end: number): boolean {
  let at = start
  for (; at < end && (bytes.byteOffset + at) % WORD !== 0; at++) if (bytes[at] !== 0) return false
  if (at >= end) return true
  const words = Math.floor((end - at) / WORD)
  const wide = new Int32Array(bytes.buffer, bytes.byteOffset + at, words)
  for (let i = 0; i < words; i++) if (wide[i] !== 0) return false
  for (at += words * WORD; at < end; at++) if (bytes[at] !== 0) return false
  return true
}
