/**
 * The one door to msgpackr, which packs; what is read back goes through our own strict reader.
 * Bytes on disk are plain msgpack: no records extension, no shared structures, so that any msgpack
 * reader decodes them. Nothing here knows what a value means.
 */
import { addExtension, Packr, RESET_BUFFER_MODE, REUSE_BUFFER_MODE } from 'msgpackr'
import { copyOf, readMsgpack } from './msgpack-reader.ts'

export { copyOf } from './msgpack-reader.ts'

interface WriteSpace {
  readonly target: Uint8Array
  readonly targetView: DataView
  readonly position: number
}
type Allocate = (bytes: number) => WriteSpace

/**
 * Stands for a value whose bytes are written here, not by msgpackr: where msgpackr would write
 * something else, or where an application could tell the msgpackr that it shares with us to.
 */
export abstract class ExactValue {
  abstract write(allocate: Allocate): void
}

// msgpackr's types know only extensions that return bytes; this form writes in place, as its own
// extension for dates does. The class is private to this package, and a type that is no number
// claims none, so no other user of msgpackr is affected.
const exactValueExtension = {
  Class: ExactValue,
  type: 'bifrost-log',
  pack(value: ExactValue, allocate: Allocate): void {
    value.write(allocate)
  },
}
addExtension(exactValueExtension as unknown as Parameters<typeof addExtension>[0])

/** Stands for -0, which msgpackr would write as 0: a 64-bit float. */
export class NegativeZero extends ExactValue {
  static readonly instance: NegativeZero = new NegativeZero()

  write(allocate: Allocate): void {
    const { target, targetView, position } = allocate(9)
    target[position] = 0xcb
    targetView.setFloat64(position + 1, -0)
  }
}

/** Stands for bytes: a byte string. */
export class ByteString extends ExactValue {
  readonly #bytes: Uint8Array

  constructor(bytes: Uint8Array) {
    super()
    this.#bytes = bytes
  }

  write(allocate: Allocate): void {
    const { length } = this.#bytes
    const headerBytes = binHeaderBytes(length)
    const { target, position } = allocate(headerBytes + length)
    writeBinHeader(target, position, length)
    target.set(this.#bytes, position + headerBytes)
  }
}

const MS_PER_SECOND = 1000
const NANOS_PER_MS = 1_000_000
const TIMESTAMP = 0xff

/** Stands for a Date: the shortest of the three timestamps of plain msgpack. */
export class Timestamp extends ExactValue {
  readonly #seconds: number
  readonly #nanos: number

  /** `ms` is a whole number of milliseconds since the epoch. */
  constructor(ms: number) {
    super()
    this.#seconds = Math.floor(ms / MS_PER_SECOND)
    this.#nanos = (ms - this.#seconds * MS_PER_SECOND) * NANOS_PER_MS
  }

  write(allocate: Allocate): void {
    const seconds = this.#seconds
    if (seconds < 0 || seconds >= 2 ** 34) this.#write96(allocate)
    else if (this.#nanos > 0 || seconds >= 2 ** 32) this.#write64(allocate)
    else this.#write32(allocate)
  }

  #write32(allocate: Allocate): void {
    const { target, targetView, position } = allocate(6)
    target[position] = 0xd6
    target[position + 1] = TIMESTAMP
    targetView.setUint32(position + 2, this.#seconds)
  }

  #write64(allocate: Allocate): void {
    const { target, targetView, position } = allocate(10)
    target[position] = 0xd7
    target[position + 1] = TIMESTAMP
    targetView.setUint32(position + 2, this.#nanos * 4 + Math.floor(this.#seconds / 2 ** 32))
    targetView.setUint32(position + 6, this.#seconds)
  }

  #write96(allocate: Allocate): void {
    const { target, targetView, position } = allocate(15)
    target[position] = 0xc7
    target[position + 1] = 12
    target[position + 2] = TIMESTAMP
    targetView.setUint32(position + 3, this.#nanos)
    targetView.setBigInt64(position + 7, BigInt(this.#seconds))
  }
}

/** How many bytes come before a byte string of this length. */
export function binHeaderBytes(length: number): number {
  return length < 0x100 ? 2 : length < 0x10000 ? 3 : 5
}

/** Writes what comes before a byte string of this length; returns where the bytes go. */
export function writeBinHeader(target: Uint8Array, at: number, length: number): number {
  const bytes = binHeaderBytes(length)
  target[at] = bytes === 2 ? 0xc4 : bytes === 3 ? 0xc5 : 0xc6
  for (let i = 1; i < bytes; i++) target[at + i] = (length >>> ((bytes - 1 - i) * 8)) & 0xff
  return at + bytes
}

const packr = new Packr({ useRecords: false, variableMapSize: true, useToJSON: false })

/** msgpackr grows its buffer to the largest value it met; a larger one than this is let go. */
const KEPT_BUFFER_BYTES = 1024 * 1024
const INITIAL_BUFFER_BYTES = 8 * 1024

/** A range of bytes in somebody else's buffer. */
export interface ByteRange {
  readonly bytes: Uint8Array
  readonly start: number
  readonly end: number
}

/** Packs `value` into a buffer that the next call overwrites: copy the range before that. */
export function packShared(value: unknown): ByteRange {
  const bytes = packr.pack(value, REUSE_BUFFER_MODE | RESET_BUFFER_MODE) as Buffer & {
    start: number
    end: number
  }
  const range = { bytes, start: bytes.start, end: bytes.end }
  if (bytes.length > KEPT_BUFFER_BYTES) {
    packr.useBuffer(Buffer.allocUnsafeSlow(INITIAL_BUFFER_BYTES))
  }
  return range
}

/** Packs `value` into bytes of its own. */
export function pack(value: unknown): Uint8Array {
  const { bytes, start, end } = packShared(value)
  return copyOf(bytes, start, end)
}

/**
 * Unpacks exactly the bytes from `start` to `end`. Byte strings in the result are copies.
 * Throws RangeError or TypeError when the bytes are not one value that `pack` could have written.
 */
export function unpack(bytes: Uint8Array, start: number, end: number): unknown {
  return readMsgpack(bytes, start, end)
}
