/**
 * The one error type that users meet. They match on `code`, never on a class; each code has one
 * meaning (docs/errors.md), and some carry typed fields. Our own bugs are assertions, not these.
 */
import type { Lsn } from './offset.ts'

/** A log's name: a string of 1 to 255 UTF-8 bytes. Never a path. */
export type LogId = string

/** Every way in which the disk, the caller or the moment can be at fault. */
export type LogErrorCode =
  | 'UNKNOWN_LOG'
  | 'SEALED'
  | 'INVALID_LSN'
  | 'EMPTY_BATCH'
  | 'RECORD_TOO_LARGE'
  | 'BATCH_TOO_LARGE'
  | 'ENCODE_FAILED'
  | 'TAIL_MISMATCH'
  | 'QUEUE_FULL'
  | 'ABORTED'
  | 'TRIMMED'
  | 'DATA_LOSS'
  | 'LOCKED'
  | 'LOCK_UNAVAILABLE'
  | 'READ_ONLY'
  | 'CLOSED'
  | 'OPEN_FAILED'
  | 'READ_FAILED'
  | 'WRITE_FAILED'
  | 'STORE_FAILED'
  | 'CORRUPT'
  | 'UNSUPPORTED_VERSION'
  | 'INVALID_OPTION'

/** A range of LSNs of one log, both ends inclusive. */
export interface LogRange {
  readonly logId: LogId
  readonly from: Lsn
  readonly to: Lsn
}

/** What an error of a given code carries besides its message. */
export interface LogErrorFields {
  TAIL_MISMATCH: { readonly tail: Lsn }
  SEALED: { readonly tail: Lsn; readonly reason: string | undefined }
  LOCKED: { readonly dir: string; readonly sameProcess: boolean }
  CORRUPT: {
    readonly file: string
    readonly position: number
    readonly label: string
    readonly logs: readonly LogRange[]
  }
  TRIMMED: { readonly trimPoint: Lsn }
  DATA_LOSS: { readonly from: Lsn; readonly to: Lsn }
}

type FieldsOf<C extends LogErrorCode> = C extends keyof LogErrorFields ? LogErrorFields[C] : unknown

/** An error of the code `C`, with that code's fields. */
export type LogErrorOf<C extends LogErrorCode> = LogError & { readonly code: C } & FieldsOf<C>

/**
 * An error with a stable `code`.
 *
 * @example
 * ```ts
 * try {
 *   await bifrost.append('orders', order, { expectedTail: 7 })
 * } catch (error) {
 *   if (!LogError.is(error, 'TAIL_MISMATCH')) throw error
 *   console.log('somebody was faster; the tail is', error.tail)
 * }
 * ```
 */
export abstract class LogError extends Error {
  declare readonly code: LogErrorCode
  /** Whether the very same call may succeed later, without the caller changing anything. */
  declare readonly retryable: boolean

  /** Whether `e` is a LogError of this code; narrows to that code's fields. */
  static is<C extends LogErrorCode>(e: unknown, code: C): e is LogErrorOf<C> {
    return e instanceof LogError && e.code === code
  }
}

const RETRYABLE: ReadonlySet<LogErrorCode> = new Set([
  'QUEUE_FULL',
  'LOCKED',
  'OPEN_FAILED',
  'READ_FAILED',
  'WRITE_FAILED',
])

class CodedError extends LogError {}

/** How to make an error: the fields are required exactly where the code has some. */
export type LogErrorDetails<C extends LogErrorCode> = {
  readonly cause?: unknown
} & (C extends keyof LogErrorFields ? { readonly fields: LogErrorFields[C] } : unknown)

/** Makes a LogError. Pass the `cause` on whenever there is one. */
export function logError<C extends LogErrorCode>(
  code: C,
  message: string,
  ...[details]: C extends keyof LogErrorFields
    ? [details: LogErrorDetails<C>]
    : [details?: LogErrorDetails<C>]
): LogErrorOf<C> {
  const error = new CodedError(message, cause(details))
  const fields = (details as { fields?: object } | undefined)?.fields
  Object.assign(error, { code, retryable: RETRYABLE.has(code) }, fields)
  hidden(error, 'name', code === 'ABORTED' ? 'AbortError' : 'LogError')
  return error as unknown as LogErrorOf<C>
}

function cause(details: { readonly cause?: unknown } | undefined): ErrorOptions | undefined {
  return details !== undefined && 'cause' in details ? { cause: details.cause } : undefined
}

function hidden(error: Error, key: string, value: string): void {
  Object.defineProperty(error, key, { value, configurable: true, writable: true })
}

/** The error for an aborted `signal`: its reason is the cause. */
export function aborted(signal: AbortSignal): LogErrorOf<'ABORTED'> {
  return logError('ABORTED', 'The operation was aborted', { cause: signal.reason })
}

/** The error for a conditional append that lost; `tail` is the tail that was found. */
export function tailMismatch(expected: number, tail: number): LogErrorOf<'TAIL_MISMATCH'> {
  return logError('TAIL_MISMATCH', `Expected the tail to be ${expected}, but it is ${tail}`, {
    fields: { tail },
  })
}

/** The error for an append to a sealed log or loglet. */
export function sealed(tail: number, reason: string | undefined): LogErrorOf<'SEALED'> {
  const why = reason === undefined ? '' : `: ${reason}`
  return logError('SEALED', `Sealed at ${tail}${why}`, { fields: { tail, reason } })
}
