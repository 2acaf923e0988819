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

export { closed } from '../engine/errors.ts'

/** The error for a log that doesn't exist, or does no more. */
export function unknownLog(logId: LogId): LogErrorOf<'UNKNOWN_LOG'> {
  return logError('UNKNOWN_LOG', `There is no log ${JSON.stringify(logId)}`)
}

/** The error for an append that finds no room, and does not want to wait for it. */
export function queueFull(queueBytes: number): LogErrorOf<'QUEUE_FULL'> {
  return logError('QUEUE_FULL', `The queue holds queueBytes (${queueBytes}) already`)
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
