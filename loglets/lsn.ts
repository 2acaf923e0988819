/** Positions in a log, as users meet them. */
import { INVALID_POSITION, MAX_POSITION, OLDEST_POSITION } from '../codec/offset.ts'
import { invalidLsn } from './errors.ts'

/**
 * A record's position in its log: a safe integer from `Lsn.OLDEST`. `Lsn.INVALID` stands for "no
 * record".
 *
 * @example
 * ```ts
 * const lsn: Lsn = await bifrost.append('orders', { id: 1 })
 * console.log(lsn >= Lsn.OLDEST) // true
 * ```
 */
export type Lsn = number

export const Lsn: { readonly INVALID: 0; readonly OLDEST: 1 } = Object.freeze({
  INVALID: INVALID_POSITION,
  OLDEST: OLDEST_POSITION,
})

/** The tail of a log whose last record has the greatest LSN there is. */
export const MAX_TAIL: Lsn = MAX_POSITION + 1

/** Whether a log's tail, or a cursor in it, could be there. */
export function isTail(value: unknown): value is Lsn {
  return isLsnOrNone(value) && value >= Lsn.OLDEST
}

/** Whether `value` is an LSN, a tail, or `Lsn.INVALID` for none. */
export function isLsnOrNone(value: unknown): value is Lsn {
  return Number.isSafeInteger(value) && (value as number) >= Lsn.INVALID
}

/** The value if it is an LSN, a tail or `Lsn.INVALID`; throws INVALID_LSN if not. */
export function requireLsnOrNone(name: string, value: unknown): Lsn {
  if (isLsnOrNone(value)) return value
  throw invalidLsn(`${name} must be a whole number from 0 to ${MAX_TAIL}`)
}
