/** Reads the headers of the protocol. A header that is there and makes no sense is 400. */
import type { HttpRequest } from './exchange.ts'
import { badRequest } from './http-error.ts'
import { parseOffset, type StreamOffset } from './offset.ts'
import type { ProducerStamp } from './stream-record.ts'

const MAX_NAME_LENGTH = 256
const WHOLE_NUMBER = /^(?:0|[1-9]\d*)$/
const DIGITS = /^\d+$/
const TIMESTAMP = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/

/** `Stream-Closed: true`; any other value is as good as none. */
export function closesStream(request: HttpRequest): boolean {
  return request.header('stream-closed')?.toLowerCase() === 'true'
}

/** All three headers of an idempotent producer, or none. */
export function producerStamp(request: HttpRequest): ProducerStamp | undefined {
  const id = request.header('producer-id')
  const epoch = request.header('producer-epoch')
  const seq = request.header('producer-seq')
  if (id === undefined && epoch === undefined && seq === undefined) return undefined
  if (id === undefined || epoch === undefined || seq === undefined) {
    throw badRequest('Producer-Id, Producer-Epoch and Producer-Seq belong together')
  }
  if (id === '' || id.length > MAX_NAME_LENGTH) {
    throw badRequest(`Producer-Id has 1 to ${MAX_NAME_LENGTH} characters`)
  }
  return { id, epoch: counter('Producer-Epoch', epoch), seq: counter('Producer-Seq', seq) }
}

function counter(name: string, text: string): number {
  const value = DIGITS.test(text) ? Number(text) : Number.NaN
  if (Number.isSafeInteger(value)) return value
  throw badRequest(`${name} is a whole number from 0 to 2^53 - 1`)
}

export function streamSeq(request: HttpRequest): string | undefined {
  const seq = request.header('stream-seq')
  if (seq === undefined || (seq !== '' && seq.length <= MAX_NAME_LENGTH)) return seq
  throw badRequest(`Stream-Seq has 1 to ${MAX_NAME_LENGTH} characters`)
}

/** How long a stream lives without being used, in seconds, and until when at most. */
export function lifetime(request: HttpRequest): {
  readonly ttlSeconds: number | undefined
  readonly expiresAtMs: number | undefined
} {
  const ttl = request.header('stream-ttl')
  const expiresAt = request.header('stream-expires-at')
  if (ttl !== undefined && expiresAt !== undefined) {
    throw badRequest('Only one of Stream-TTL and Stream-Expires-At can be given')
  }
  return {
    ttlSeconds: ttl === undefined ? undefined : wholeNumber('Stream-TTL', ttl),
    expiresAtMs: expiresAt === undefined ? undefined : timestamp(expiresAt),
  }
}

/** A whole number written the one way there is: no sign, no leading zero. */
export function wholeNumber(name: string, text: string): number {
  const value = WHOLE_NUMBER.test(text) ? Number(text) : Number.NaN
  if (Number.isSafeInteger(value)) return value
  throw badRequest(`${name} is a whole number without sign or leading zeros`)
}

function timestamp(text: string): number {
  const ms = TIMESTAMP.test(text) ? Date.parse(text) : Number.NaN
  if (!Number.isNaN(ms)) return ms
  throw badRequest('Stream-Expires-At is a timestamp as in RFC 3339')
}

/** A header that names a place in the stream. */
export function offsetHeader(request: HttpRequest, name: string): StreamOffset | undefined {
  const token = request.header(name.toLowerCase())
  if (token === undefined) return undefined
  const offset = parseOffset(token)
  if (offset !== undefined) return offset
  throw badRequest(`${name} is an offset that this server gave`)
}
