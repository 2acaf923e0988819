/** What an append may be told, and its translation into the words of a loglet. */
import { logError, type LogId } from '../codec/errors.ts'
import type { Keys } from '../codec/record.ts'
import { invalidOption, requireOneOf } from '../engine/options.ts'
import { emptyBatch } from './errors.ts'
import type { LogletAppendOptions, LogletRecord } from './loglet.ts'
import type { ChainLink } from './loglet-provider.ts'
import { offsetIn } from './log-chain.ts'
import type { Lsn } from './lsn.ts'
import {
  requireArray,
  requireExpectedTail,
  requireOptions,
  requireSignal,
} from './member-options.ts'
import { requireLogId } from './options.ts'

export interface AppendOptions {
  /** Labels that readers can filter by: up to 16 strings of at most 255 bytes. */
  readonly keys?: Keys | undefined
  /** Append only if this is the log's tail; TAIL_MISMATCH otherwise. */
  readonly expectedTail?: Lsn | undefined
  /** What to do when the queue is full: wait in line, or fail with QUEUE_FULL. Default 'wait'. */
  readonly whenFull?: 'wait' | 'reject' | undefined
  /** Withdraws the append while it is not yet in a group commit: ABORTED. */
  readonly signal?: AbortSignal | undefined
}

export interface BatchOptions<T> extends Omit<AppendOptions, 'keys'> {
  /** The same keys for all records, or a function that gives each record its own. */
  readonly keys?: Keys | ((payload: T, index: number) => Keys) | undefined
}

/** One record of an `appendMany`. */
export interface Entry<T = unknown> {
  readonly logId: LogId
  readonly payload: T
  /** Labels that readers can filter by: up to 16 strings of at most 255 bytes. */
  readonly keys?: Keys | undefined
  /** Only if this is the log's tail, where this entry would go; TAIL_MISMATCH otherwise. */
  readonly expectedTail?: Lsn | undefined
}

/** The terms of an append, checked and captured; the tail is still an LSN. */
export interface AppendTerms {
  readonly expectedTail: Lsn | undefined
  readonly whenFull: 'wait' | 'reject' | undefined
  readonly signal: AbortSignal | undefined
}

const WHEN_FULL: readonly ('wait' | 'reject')[] = ['wait', 'reject']
const APPEND_OPTIONS = new Set(['keys', 'expectedTail', 'whenFull', 'signal'])
const ENTRY_KEYS = new Set(['logId', 'payload', 'keys', 'expectedTail'])

/** Checks and captures; undefined if there is nothing to tell. Throws INVALID_OPTION. */
export function appendTerms(
  options: Omit<AppendOptions, 'keys'> | undefined,
): AppendTerms | undefined {
  if (options === undefined) return undefined
  requireOptions(options, APPEND_OPTIONS)
  const { expectedTail, whenFull, signal } = options
  return {
    expectedTail: requireExpectedTail(expectedTail),
    whenFull: requireOneOf('whenFull', whenFull ?? 'wait', WHEN_FULL),
    signal: requireSignal(signal),
  }
}

/** The terms as the loglet of this link understands them. */
export function logletOptions(
  terms: AppendTerms | undefined,
  link: ChainLink,
): LogletAppendOptions | undefined {
  if (terms === undefined) return undefined
  const { expectedTail, whenFull, signal } = terms
  return { expectedTail: expectedOffset(link, expectedTail), whenFull, signal }
}

/** A tail before the link is one that its loglet can't have. */
export function expectedOffset(link: ChainLink, expectedTail: Lsn | undefined): number | undefined {
  return expectedTail === undefined ? undefined : offsetIn(link, expectedTail)
}

/** The records of a batch, each with its keys. Throws EMPTY_BATCH and INVALID_OPTION. */
export function batchRecords<T>(
  payloads: readonly T[],
  keys: BatchOptions<T>['keys'],
): LogletRecord[] {
  const all = requireArray('payloads', payloads)
  if (all.length === 0) throw emptyBatch()
  // An index, because `map` would skip holes.
  const records: LogletRecord[] = []
  for (let i = 0; i < all.length; i++) {
    const payload = all[i] as T
    records.push({ payload, keys: typeof keys === 'function' ? keysOf(keys, payload, i) : keys })
  }
  return records
}

/** Asks the caller's function; what it throws is the cause of an INVALID_OPTION. */
export function keysOf<T>(
  keys: (payload: T, index: number) => Keys,
  payload: T,
  index: number,
): Keys {
  try {
    return keys(payload, index)
  } catch (cause) {
    throw logError('INVALID_OPTION', 'The function given as keys threw', { cause })
  }
}

/** Checks and captures the entries of an `appendMany`. Throws EMPTY_BATCH and INVALID_OPTION. */
export function manyEntries(entries: readonly Entry[]): Entry[] {
  const all = requireArray('entries', entries)
  if (all.length === 0) throw emptyBatch()
  return Array.from(all, (entry: Entry | undefined) => {
    if (entry === undefined) throw invalidOption('An entry must be an object')
    requireOptions(entry, ENTRY_KEYS)
    const { logId, payload, keys, expectedTail } = entry
    return {
      logId: requireLogId(logId),
      payload,
      keys,
      expectedTail: requireExpectedTail(expectedTail),
    }
  })
}
