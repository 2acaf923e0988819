/** The engine's own errors, in the words of the recovery table. */
import {
  logError,
  type LogError,
  type LogErrorOf,
  type LogId,
  type LogRange,
} from '../codec/errors.ts'
import type { RecoveryLabel } from './metrics.ts'

/** Damage below the durable mark, or a segment that is missing or not ours. */
export function corrupt(
  label: RecoveryLabel,
  file: string,
  position: number,
  logs: readonly LogRange[],
  what: string,
): LogErrorOf<'CORRUPT'> {
  const stake = logs.map(({ logId, from, to }) => `${JSON.stringify(logId)} ${from} to ${to}`)
  const atStake = stake.length === 0 ? '' : `; at stake: ${stake.join(', ')}`
  return logError('CORRUPT', `${label} in ${file} at ${position}: ${what}${atStake}`, {
    fields: { file, position, label, logs },
  })
}

export function unsupportedVersion(
  file: string,
  version: number | undefined,
): LogErrorOf<'UNSUPPORTED_VERSION'> {
  return logError(
    'UNSUPPORTED_VERSION',
    `R8: ${file} has format version ${String(version)}, which this version does not read`,
  )
}

/** What went wrong below `open` is OPEN_FAILED, unless it already has a code of ours. */
export function openFailed(cause: unknown, isOurs: boolean): LogError {
  if (isOurs) return cause as LogError
  return logError('OPEN_FAILED', `The store could not be opened: ${messageOf(cause)}`, { cause })
}

export function writeFailed(cause: unknown): LogErrorOf<'WRITE_FAILED'> {
  return logError('WRITE_FAILED', `The group was not written: ${messageOf(cause)}`, { cause })
}

export function storeFailed(cause: unknown): LogErrorOf<'STORE_FAILED'> {
  return logError(
    'STORE_FAILED',
    `The store has failed and must be opened again: ${messageOf(cause)}`,
    { cause },
  )
}

export function readFailed(cause: unknown): LogErrorOf<'READ_FAILED'> {
  return logError('READ_FAILED', `The read failed: ${messageOf(cause)}`, { cause })
}

export function closed(): LogErrorOf<'CLOSED'> {
  return logError('CLOSED', 'The store is closed')
}

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

/** The error for a batch that takes more bytes than one may. */
export function batchTooLarge(maxBatchBytes: number): LogErrorOf<'BATCH_TOO_LARGE'> {
  return logError('BATCH_TOO_LARGE', `The batch takes more than maxBatchBytes (${maxBatchBytes})`)
}

export function readOnly(): LogErrorOf<'READ_ONLY'> {
  return logError('READ_ONLY', 'The store is open for reading only')
}

export function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause)
}
