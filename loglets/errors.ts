/** The errors of this room, and the translation of a loglet's errors into those of its log. */
import { LogError, logError, sealed, tailMismatch, type LogErrorOf } from '../codec/errors.ts'
import { lsnOfOffset, type Lsn } from '../codec/offset.ts'

export { batchTooLarge, closed, emptyBatch, queueFull, unknownLog } from '../engine/errors.ts'

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
