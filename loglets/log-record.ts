/** What readers get: records with their data, and gaps that say what is gone. */
import type { Keys } from '../codec/record.ts'
import type { Lsn } from './lsn.ts'

/** A record as it was appended. */
export interface DataRecord<T = unknown> {
  readonly kind: 'data'
  readonly lsn: Lsn
  readonly payload: T
  /** Nanoseconds since the epoch; never decreases within a log. */
  readonly createdAt: bigint
  /** The same in whole milliseconds. */
  readonly createdAtMs: number
  readonly keys: Keys
}

/** A range of records that are gone: trimmed on request, or lost and reported. */
export interface GapRecord {
  readonly kind: 'trim-gap' | 'data-loss-gap'
  /** The first LSN of the gap. */
  readonly lsn: Lsn
  /** The last LSN of the gap. */
  readonly until: Lsn
}

export type LogRecord<T = unknown> = DataRecord<T> | GapRecord

/** The LSN after a record or a gap. */
export function lsnAfter(record: LogRecord): Lsn {
  return (record.kind === 'data' ? record.lsn : record.until) + 1
}
