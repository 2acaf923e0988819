/**
 * Decides which values can be a payload: exactly those that come back as what they were. It looks
 * at a value before anything is queued, and never changes the caller's objects. As in JSON, members
 * that are undefined, not enumerable or named by a symbol are no part of the value.
 */
import { logError, type LogErrorOf } from './errors.ts'
import { ByteString, NegativeZero, Timestamp } from './msgpack.ts'
import { MAX_DEPTH } from './msgpack-reader.ts'

/** Containers in a payload may be nested this deep; a cycle runs into the same limit. */
export const MAX_PAYLOAD_DEPTH: number = MAX_DEPTH

const MIN_INT64 = -(2n ** 63n)
const MAX_UINT64 = 2n ** 64n - 1n

/**
 * Returns what to pack for `payload`: itself, or a copy without its undefined members and with
 * stand-ins for what has to be written exactly. Throws ENCODE_FAILED naming the first part that
 * would not come back as it is, RECORD_TOO_LARGE as soon as the payload can't fit into `maxBytes`,
 * and whatever a getter of the caller's throws.
 */
export function packablePayload(payload: unknown, maxBytes: number): unknown {
  return new PayloadCheck(maxBytes).check(payload, 0)
}

class PayloadCheck {
  /** Every value takes at least its own length, so a payload that is far too large ends early. */
  #budget: number
  readonly #maxBytes: number
  readonly #path: (string | number)[] = []

  constructor(maxBytes: number) {
    this.#budget = maxBytes
    this.#maxBytes = maxBytes
  }

  check(value: unknown, depth: number): unknown {
    switch (typeof value) {
      case 'string':
        return this.#string(value)
      case 'number':
        this.#spend(1)
        return Object.is(value, -0) ? NegativeZero.instance : value
      case 'boolean':
        this.#spend(1)
        return value
      case 'bigint':
        return this.#bigint(value)
      case 'object':
        return value === null ? null : this.#object(value, depth)
      default:
        throw this.#refuse(value === undefined ? 'is undefined' : `is a ${typeof value}`)
    }
  }

  #string(value: string): string {
    this.#spend(value.length)
    if (!value.isWellFormed()) throw this.#refuse('is a string with a lone surrogate')
    return value
  }

  #bigint(value: bigint): bigint {
    this.#spend(8)
    if (value < MIN_INT64 || value > MAX_UINT64) throw this.#refuse('is a bigint over 64 bits')
    return value
  }

  #object(value: object, depth: number): unknown {
    if (depth >= MAX_PAYLOAD_DEPTH) {
      throw this.#refuse(`is nested deeper than ${MAX_PAYLOAD_DEPTH}, or is a cycle`)
    }
    if (isArray(value)) return this.#array(value, depth)
    if (isPlainObject(value)) return this.#members(value, depth)
    if (isBytes(value)) return this.#bytes(value)
    const time = timeOf(value)
    if (time !== undefined) return this.#date(time)
    throw this.#refuse(`is ${describe(value)}`)
  }

  #array(value: readonly unknown[], depth: number): readonly unknown[] {
    this.#spend(value.length)
    let copy: unknown[] | undefined
    for (let i = 0; i < value.length; i++) {
      this.#path.push(i)
      const item = value[i]
      const packable = this.check(item, depth + 1)
      this.#path.pop()
      if (copy === undefined && !Object.is(packable, item)) copy = value.slice(0, i)
      copy?.push(packable)
    }
    return copy ?? value
  }

  #members(value: Record<string, unknown>, depth: number): Record<string, unknown> {
    let copy: Record<string, unknown> | undefined
    const keys = Object.keys(value)
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i] as string
      const member = value[key]
      const packable = member === undefined ? undefined : this.#member(key, member, depth)
      if (copy === undefined && (member === undefined || !Object.is(packable, member))) {
        copy = firstMembers(value, keys, i)
      }
      if (copy !== undefined && packable !== undefined) copy[key] = packable
    }
    return copy ?? value
  }

  #member(key: string, member: unknown, depth: number): unknown {
    this.#path.push(key)
    this.#string(key)
    if (key === '__proto__') throw this.#refuse('has a name that readers of msgpack change')
    const packable = this.check(member, depth + 1)
    this.#path.pop()
    return packable
  }

  #bytes(value: Uint8Array): ByteString {
    this.#spend(value.length)
    return new ByteString(value)
  }

  #date(ms: number): Timestamp {
    this.#spend(4)
    if (Number.isNaN(ms)) throw this.#refuse('is an invalid Date')
    return new Timestamp(ms)
  }

  #spend(bytes: number): void {
    this.#budget -= bytes
    if (this.#budget < 0) throw recordTooLarge(this.#maxBytes)
  }

  #refuse(why: string): LogErrorOf<'ENCODE_FAILED'> {
    const where = this.#path.map((step) => `[${JSON.stringify(step)}]`).join('')
    return logError('ENCODE_FAILED', `payload${where} ${why}, which would not come back as it is`)
  }
}

/** The error for a record over its limit. */
export function recordTooLarge(maxBytes: number): LogErrorOf<'RECORD_TOO_LARGE'> {
  return logError('RECORD_TOO_LARGE', `The record takes more than maxRecordBytes (${maxBytes})`)
}

function firstMembers(
  value: Record<string, unknown>,
  keys: readonly string[],
  count: number,
): Record<string, unknown> {
  const copy: Record<string, unknown> = {}
  for (let i = 0; i < count; i++) {
    const key = keys[i] as string
    copy[key] = value[key]
  }
  return copy
}

// What a value is, is asked in ways that hold for values of another realm too (a vm context, a test
// runner), and that the value can't answer for itself.

/** An array, but not of a subclass: only the realms' own prototypes are arrays themselves. */
function isArray(value: object): value is unknown[] {
  return Array.isArray(value) && Array.isArray(Object.getPrototypeOf(value))
}

function isPlainObject(value: object): value is Record<string, unknown> {
  const prototype = Object.getPrototypeOf(value) as object | null
  if (prototype !== null && prototype !== Object.prototype && !isRootPrototype(prototype)) {
    return false
  }
  return Object.prototype.toString.call(value) === '[object Object]'
}

function isRootPrototype(prototype: object): boolean {
  return (
    Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'propertyIsEnumerable')
  )
}

const typedArrayTag = Object.getOwnPropertyDescriptor(
  Object.getPrototypeOf(Uint8Array.prototype) as object,
  Symbol.toStringTag,
)

function isBytes(value: object): value is Uint8Array {
  return typedArrayTag?.get?.call(value) === 'Uint8Array'
}

/** The time of a Date that is of no subclass; undefined for anything else. */
function timeOf(value: object): number | undefined {
  const prototype = Object.getPrototypeOf(value) as object | null
  if (prototype === null || !Object.hasOwn(prototype, 'getTimezoneOffset')) return undefined
  try {
    return Date.prototype.getTime.call(value)
  } catch {
    return undefined
  }
}

function describe(value: object): string {
  const name = (value as { constructor?: { name?: unknown } }).constructor?.name
  return typeof name === 'string' && name !== '' ? `an instance of ${name}` : 'not a plain object'
}
