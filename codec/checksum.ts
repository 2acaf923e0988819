/**
 * CRC-32 (IEEE), seeded. Two implementations of the same function, each where it is faster: the
 * `crc-32` package for short input, zlib for long.
 */
import crc32 from 'crc-32'
import { crc32 as zlibCrc32 } from 'node:zlib'

/** From this many bytes on, zlib's call overhead is worth its speed. */
export const ZLIB_FROM_BYTES = 384

/** Up to this many bytes are copied rather than viewed: a view costs more than it saves. */
const COPIED_BYTES = 32

/** A buffer of each short length, because crc-32 sums whole arrays only. */
const copies = Array.from({ length: COPIED_BYTES + 1 }, (_, length) => new Uint8Array(length))

/** The checksum of `bytes` from `start` to `end`, continuing from `seed` (0 starts afresh). */
export function checksum(bytes: Uint8Array, start: number, end: number, seed: number): number {
  const part = partOf(bytes, start, end)
  return part.length < ZLIB_FROM_BYTES ? crc32.buf(part, seed) >>> 0 : zlibCrc32(part, seed)
}

function partOf(bytes: Uint8Array, start: number, end: number): Uint8Array {
  const length = end - start
  if (length === bytes.length) return bytes
  return length <= COPIED_BYTES ? copyShort(bytes, start, length) : bytes.subarray(start, end)
}

function copyShort(bytes: Uint8Array, start: number, length: number): Uint8Array {
  const copy = copies[length] as Uint8Array
  for (let i = 0; i < length; i++) copy[i] = bytes[start + i] as number
  return copy
}

/**
 * Mixes a position into the seed of a segment, so that the same bytes check at one place of one
 * segment only. Neighbouring positions give unrelated seeds (a plain sum would let a whole run of
 * copied frames pass at once where one does).
 */
export function seedAt(segmentSeed: number, position: number): number {
  const high = Math.floor(position / 0x1_0000_0000)
  return scramble(segmentSeed ^ scramble((position >>> 0) + Math.imul(high, 0x9e3779b1)))
}

/** A bijection of 32-bit integers in which each input bit changes about half of the output bits. */
function scramble(value: number): number {
  let bits = value | 0
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35)
  return (bits ^ (bits >>> 16)) >>> 0
}
