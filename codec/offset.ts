/**
 * Positions of records: offsets within a loglet, LSNs within a log. Both are safe integers that
 * start at 1; 0 means "none". Nothing here rounds: a number past the limit is refused instead.
 */

/** A record's position in one loglet, from 1. */
export type Offset = number

/** A record's position in one log, from 1. Equal to the offset plus the base of its link, minus 1. */
export type Lsn = number

/** Stands for "no record": the trim point of a log that was never trimmed, for example. */
export const INVALID_POSITION = 0

/** The first offset of a loglet and the first LSN of a log. */
export const OLDEST_POSITION = 1

/** The greatest position a record can have, so that the tail after it is still a safe integer. */
export const MAX_POSITION: number = Number.MAX_SAFE_INTEGER - 1

/** Whether `value` could be the position of a record. */
export function isRecordPosition(value: unknown): value is number {
  return (
    Number.isSafeInteger(value) &&
    (value as number) >= OLDEST_POSITION &&
    (value as number) <= MAX_POSITION
  )
}

/** Turns a loglet's offset into the log's LSN, given the LSN of the loglet's first record. */
export function lsnOfOffset(baseLsn: Lsn, offset: Offset): Lsn {
  return baseLsn + offset - OLDEST_POSITION
}

/** Turns a log's LSN into the loglet's offset, given the LSN of the loglet's first record. */
export function offsetOfLsn(baseLsn: Lsn, lsn: Lsn): Offset {
  return lsn - baseLsn + OLDEST_POSITION
}
