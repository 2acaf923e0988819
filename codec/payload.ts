/**
 * Decides which values can be a payload: exactly those that come back as what they were. It looks
 * at a value before anything is queued, and never changes the caller's objects.
 */
import { logError, type LogErrorOf } from './errors.ts'
import { NegativeZero } from './msgpack.ts'

/** Containers in a payload may be nested this deep; a cycle runs into the same limit. */
export const MAX_PAYLOAD_DEPTH = 500

const MIN_INT64 = -(2n ** 63n)
const MAX_UINT64 = 2n ** 64n - 1n

/**
 * Returns what to pack for `payload`: itself, or a copy without its undefined members. Throws
 * ENCODE_FAILED naming the first part that would not come back as it is, and RECORD_TOO_LARGE as
 * soon as the payload can't fit into `maxBytes`.
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
    if (Array.isArray(value)) return this.#array(value, depth)
    if (isBytes(value)) {
      this.#spend(value.length)
      return ownRealmBytes(value)
    }
    if (isDate(value)) return this.#date(value)
    if (!isPlainObject(value)) throw this.#refuse(`is ${describe(value)}`)
    return this.#members(value as Record<string, unknown>, depth)
  }

  #array(value: readonly unknown[], depth: number): readonly unknown[] {
    if (Object.getPrototypeOf(value) !== Array.prototype && value.constructor.name !== 'Array') {
      throw this.#refuse(`is ${describe(value)}`)
    }
    this.#spend(value.length)
    let copy: unknown[] | undefined
    for (let i = 0; i < value.length; i++) {
      this.#path.push(i)
      const item = this.check(value[i], depth + 1)
      this.#path.pop()
      if (copy === undefined && !Object.is(item, value[i])) copy = value.slice(0, i)
      if (copy !== undefined) copy[i] = item
    }
    return copy ?? value
  }

  #members(value: Record<string, unknown>, depth: number): Record<string, unknown> {
    let copy: Record<string, unknown> | undefined
    let seen = 0
    const keys = Object.keys(value)
    for (const key of keys) {
      const member = value[key]
      const packable = member === undefined ? undefined : this.#member(key, member, depth)
      if (copy === undefined && (member === undefined || !Object.is(packable, member))) {
        copy = Object.fromEntries(keys.slice(0, seen).map((k) => [k, value[k]]))
      }
      if (copy !== undefined && packable !== undefined) copy[key] = packable
      seen++
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

  #date(value: Date): Date {
    this.#spend(4)
    if (Number.isNaN(value.getTime())) throw this.#refuse('is an invalid Date')
    if (Object.getPrototypeOf(value) === Date.prototype) return value
    return new Date(value.getTime())
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

// The tags below are read by toString rather than instanceof, so that values from another realm (a
// vm context, a test runner) count too.

function isBytes(value: object): value is Uint8Array {
  return ArrayBuffer.isView(value) && tagOf(value) === 'Uint8Array'
}

/** msgpackr knows bytes by `instanceof`. */
function ownRealmBytes(value: Uint8Array): Uint8Array {
  if (value instanceof Uint8Array) return value
  const { buffer, byteOffset, length } = value as Uint8Array
  return new Uint8Array(buffer, byteOffset, length)
}

function isDate(value: object): value is Date {
  return tagOf(value) === 'Date' && (value.constructor as { name?: string }).name === 'Date'
}

function tagOf(value: object): string {
  return Object.prototype.toString.call(value).slice(8, -1)
}

function isPlainObject(value: object): boolean {
  const prototype = Object.getPrototypeOf(value) as object | null
  if (prototype === null || prototype === Object.prototype) return !(Symbol.toStringTag in value)
  return (
    Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'propertyIsEnumerable')
  )
}

function describe(value: object): string {
  const name = (value as { constructor?: { name?: unknown } }).constructor?.name
  return typeof name === 'string' && name !== '' ? `an instance of ${name}` : 'not a plain object'
}
