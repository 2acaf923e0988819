/**
 * A request that is not granted: its status, a code for programs, a message for people. The store's
 * errors are turned into these in one place, so that each has one status everywhere.
 */
import { LogError, type LogErrorCode } from '../index.ts'

export type ReplyHeaders = Readonly<Record<string, string>>

export interface HttpErrorDetails {
  readonly headers?: ReplyHeaders | undefined
  readonly cause?: unknown
}

export class HttpError extends Error {
  readonly status: number
  readonly code: string
  readonly headers: ReplyHeaders

  constructor(status: number, code: string, message: string, details: HttpErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.name = 'HttpError'
    this.status = status
    this.code = code
    this.headers = details.headers ?? {}
  }
}

export function badRequest(message: string, cause?: unknown): HttpError {
  return new HttpError(400, 'BAD_REQUEST', message, { cause })
}

export function notFound(): HttpError {
  return new HttpError(404, 'NOT_FOUND', 'There is no stream here')
}

/** What is kept only for its forks. */
export function wasDeleted(cause?: unknown): HttpError {
  return new HttpError(410, 'GONE', 'The stream was deleted', { cause })
}

/** Something that a later attempt may find different. Clients of the protocol retry it. */
export function unavailable(code: string, message: string, cause?: unknown): HttpError {
  return new HttpError(503, code, message, { headers: { 'retry-after': '1' }, cause })
}

/** What each of the store's errors means to a client; any other is a bug of ours: 500. */
const STATUS: Partial<Record<LogErrorCode, number>> = {
  UNKNOWN_LOG: 404,
  RECORD_TOO_LARGE: 413,
  BATCH_TOO_LARGE: 413,
  // Only an append before it, which failed, makes an append of ours miss the tail.
  TAIL_MISMATCH: 503,
  QUEUE_FULL: 503,
  READ_FAILED: 503,
  STORE_FAILED: 503,
  CLOSED: 503,
  WRITE_FAILED: 507,
  READ_ONLY: 405,
}

/** Any error as the refusal that a client gets. */
export function asHttpError(error: unknown): HttpError {
  if (error instanceof HttpError) return error
  if (!(error instanceof LogError)) return internalError(error)
  const status = STATUS[error.code]
  if (status === 404) return notFound()
  if (status === undefined) return internalError(error)
  const headers = status === 503 || status === 507 ? { 'retry-after': '1' } : {}
  return new HttpError(status, error.code, error.message, { headers, cause: error })
}

/** Damage has a name worth telling; a bug of ours says nothing to strangers. */
function internalError(cause: unknown): HttpError {
  const code = cause instanceof LogError ? cause.code : 'INTERNAL'
  return new HttpError(500, code, 'The server could not do this', { cause })
}
