/** What a reader may be told. */
import type { LogError } from '../codec/errors.ts'
import type { Keys } from '../codec/record.ts'
import { invalidOption, requireBoolean, requireOneOf } from '../engine/options.ts'
import { invalidLsn } from './errors.ts'
import { isLsnOrNone, isTail, Lsn } from './lsn.ts'
import { requireArray, requireOptions, requireSignal } from './member-options.ts'

/** Where a reader starts, where it ends, and what it gives. */
export interface ReaderOptions {
  /** The first LSN wanted. Default `Lsn.OLDEST`; not together with `after` or `last`. */
  readonly from?: Lsn | undefined
  /** Start with the record after this LSN. */
  readonly after?: Lsn | undefined
  /** Start this many records before the tail. */
  readonly last?: number | undefined
  /** The last LSN wanted, inclusive. Default: no end. */
  readonly to?: Lsn | undefined
  /** Wait for more at the tail, rather than end there. Default true. */
  readonly follow?: boolean | undefined
  /** Only records that carry any of these keys, and those that carry none. Default: all. */
  readonly keys?: Keys | undefined
  /** Whether gaps are records or errors (TRIMMED, DATA_LOSS). Default 'yield'. */
  readonly gaps?: 'yield' | 'throw' | undefined
  /** Ends the reader with ABORTED. */
  readonly signal?: AbortSignal | undefined
}

/** Where a reader starts: at an LSN, or this many records before the tail. */
export type ReaderStart = { readonly from: Lsn } | { readonly last: number }

export interface ResolvedReaderOptions {
  readonly start: ReaderStart
  /** Why the reader can't read at all: making it throws for the wrong type only. */
  readonly refusal: LogError | undefined
  /** Infinity for no end. */
  readonly to: number
  readonly follow: boolean
  readonly keys: ReadonlySet<string> | undefined
  readonly throwsGaps: boolean
  readonly signal: AbortSignal | undefined
}

const READER_OPTIONS = new Set(['from', 'after', 'last', 'to', 'follow', 'keys', 'gaps', 'signal'])
const GAPS: readonly ('yield' | 'throw')[] = ['yield', 'throw']

/** Checks every option and fills in the defaults. Throws INVALID_OPTION. */
export function resolveReaderOptions(options: ReaderOptions = {}): ResolvedReaderOptions {
  requireOptions(options, READER_OPTIONS)
  const start = resolveStart(options)
  const to = options.to === undefined ? Infinity : requireInteger('to', options.to)
  return {
    start,
    to,
    refusal: refusalOf(start, to),
    follow: requireBoolean('follow', options.follow ?? true),
    keys: options.keys === undefined ? undefined : requireKeys(options.keys),
    throwsGaps: requireOneOf('gaps', options.gaps ?? 'yield', GAPS) === 'throw',
    signal: requireSignal(options.signal),
  }
}

function resolveStart({ from, after, last }: ReaderOptions): ReaderStart {
  const given = [from, after, last].filter((option) => option !== undefined)
  if (given.length > 1) throw invalidOption('Only one of from, after and last can be given')
  if (after !== undefined) return { from: requireInteger('after', after) + 1 }
  if (last !== undefined) return { last: requireCount(last) }
  return { from: requireInteger('from', from ?? Lsn.OLDEST) }
}

function refusalOf(start: ReaderStart, to: number): LogError | undefined {
  const from: number = 'from' in start ? start.from : Lsn.OLDEST
  const startsLegally = isTail(from)
  const endsLegally = to === Infinity || isLsnOrNone(to)
  if (startsLegally && endsLegally) return undefined
  return invalidLsn(`A reader reads from an LSN to an LSN, not from ${from} to ${to}`)
}

function requireInteger(name: string, value: unknown): number {
  if (Number.isInteger(value)) return value as number
  throw invalidOption(`${name} must be an LSN`)
}

function requireCount(last: unknown): number {
  if (Number.isSafeInteger(last) && (last as number) >= 0) return last as number
  throw invalidOption('last must be a whole number from 0')
}

function requireKeys(keys: Keys): ReadonlySet<string> {
  const all = [...requireArray<unknown>('keys', keys)]
  if (all.every((key) => typeof key === 'string')) return new Set(all)
  throw invalidOption('keys must be an array of strings')
}
