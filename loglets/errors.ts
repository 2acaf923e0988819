/** The errors of this room, and the translation of a loglet's errors into those of its log. */
import {
  LogError,
  logError,
  sealed,
  tailMismatch,
  type LogErrorOf,
  type LogId,
} from '../codec/errors.ts'
import { lsnOfOffset, type Lsn } from '../codec/offset.ts'

/** The error for a log that doesn't exist, or does no more. */
export function unknownLog(logId: LogId): LogErrorOf<'UNKNOWN_LOG'> {
  return logError('UNKNOWN_LOG', `There is no log ${JSON.stringify(logId)}`)
}

/** The error for anything begun after a close, and for what a close ended. */
export function closed(): LogErrorOf<'CLOSED'> {
  return logError('CLOSED', 'The store is closed')
}

/** The error for an append of no records. */
export function emptyBatch(): LogErrorOf<'EMPTY_BATCH'> {
  return logError('EMPTY_BATCH', 'A batch has at least one record')
}

/** The error for an argument that can't be an LSN of the kind that is wanted. */
export function invalidLsn(message: string): LogErrorOf<'INVALID_LSN'> {
  return logError('INVALID_LSN', message)
}

/** A loglet's error in the LSNs of its log: only its tails are offsets. */
export function inLsns(error: LogError, baseLsn: Lsn, expectedTail: Lsn | undefined): LogError {
  if (LogError.is(error, 'TAIL_MISMATCH')) {
    return tailMismatch(expectedTail ?? 0, lsnOfOffset(baseLsn, error.tail))
  }
  if (LogError.is(error, 'SEALED')) return sealed(lsnOfOffset(baseLsn, error.tail), error.reason)
  return error
}
