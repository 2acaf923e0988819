/**
 * The one door to msgpackr. Bytes on disk are plain msgpack: no records extension, no shared
 * structures, so that any msgpack reader decodes them. Nothing here knows what a value means.
 */
import { addExtension, Packr, RESET_BUFFER_MODE, REUSE_BUFFER_MODE, type Options } from 'msgpackr'

/** Stands for -0, which msgpackr would write as 0: `pack` writes it as a 64-bit float instead. */
export class NegativeZero {
  static readonly instance: NegativeZero = new NegativeZero()
}

const FLOAT64_BYTES = 9
const FLOAT64_MARKER = 0xcb

interface WriteSpace {
  readonly target: Uint8Array
  readonly targetView: DataView
  readonly position: number
}

// msgpackr's types know only extensions that return bytes; this form writes in place, as its own
// extension for dates does. The class is private to this package, so no other user is affected.
const negativeZeroExtension = {
  Class: NegativeZero,
  pack(_value: NegativeZero, allocate: (bytes: number) => WriteSpace): void {
    const { target, targetView, position } = allocate(FLOAT64_BYTES)
    target[position] = FLOAT64_MARKER
    targetView.setFloat64(position + 1, -0)
  },
}
addExtension(negativeZeroExtension as unknown as Parameters<typeof addExtension>[0])

const options = {
  useRecords: false,
  mapsAsObjects: true,
  variableMapSize: true,
  copyBuffers: true,
  int64AsType: 'bigint',
  useToJSON: false,
} as const
const packr = new Packr(options as Options)

/** A range of bytes in somebody else's buffer. */
export interface ByteRange {
  readonly bytes: Uint8Array
  readonly start: number
  readonly end: number
}

/** Packs `value` into a buffer that the next call overwrites: copy the range before that. */
export function packShared(value: unknown): ByteRange {
  const bytes = packr.pack(value, REUSE_BUFFER_MODE | RESET_BUFFER_MODE) as Buffer & ByteRange
  return { bytes, start: bytes.start, end: bytes.end }
}

/** Packs `value` into bytes of its own. */
export function pack(value: unknown): Uint8Array {
  const { bytes, start, end } = packShared(value)
  return copyOf(bytes, start, end)
}

/** A copy that stands on its own, never a view and never a Buffer. */
export function copyOf(bytes: Uint8Array, start: number, end: number): Uint8Array {
  const copy = new Uint8Array(end - start)
  copy.set(bytes.subarray(start, end))
  return copy
}

const range = { start: 0, end: 0 }

/**
 * Unpacks exactly the bytes from `start` to `end`. Byte strings in the result are copies.
 * Throws whatever msgpackr throws when the bytes are not one msgpack value.
 */
export function unpack(bytes: Uint8Array, start: number, end: number): unknown {
  if (start >= end || end > bytes.length) throw new RangeError('No msgpack value in an empty range')
  range.start = start
  range.end = end
  return packr.unpack(plainView(bytes), range) as unknown
}

/** msgpackr hands out Buffers for byte strings when it reads from a Buffer; users get Uint8Array. */
function plainView(bytes: Uint8Array): Uint8Array {
  if (!Buffer.isBuffer(bytes)) return bytes
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
