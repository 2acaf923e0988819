/**
 * What a reader of a loglet gets at an offset: records, a gap, or the news that nothing is there
 * yet, or ever will be. The same for a store that is written here and for one that is followed.
 */
import { LogError } from '../codec/errors.ts'
import type { StoreFacts } from '../codec/log-state.ts'
import type { Offset } from '../codec/offset.ts'
import { readFailed } from './errors.ts'
import type { SegmentReader, VisitRecord } from './segment-reader.ts'
import { lsnIn, type LogletCell } from './store-state.ts'

export interface ReadRequest {
  readonly from: Offset
  /** Inclusive. */
  readonly to: Offset
  readonly maxBytes: number
  readonly visit: VisitRecord
}

export type ReadOutcome =
  | { readonly kind: 'data'; readonly next: Offset }
  | { readonly kind: 'trim-gap' | 'data-loss-gap'; readonly until: Offset }
  | { readonly kind: 'tail' }
  | { readonly kind: 'end' }

/** Reads what is durable from `request.from` on. Rejects with a LogError only. */
export async function readLoglet(
  cell: LogletCell,
  facts: StoreFacts,
  reader: SegmentReader,
  request: ReadRequest,
): Promise<ReadOutcome> {
  const { from, maxBytes, visit } = request
  const { id } = cell.facts
  const known = withoutReading(cell, request)
  if (known !== undefined) return known
  const stake = (first: Offset, last: Offset): { logId: string; from: number; to: number }[] => {
    const lsn = (offset: Offset): number => lsnIn(facts, cell.logId, id, offset)
    return [{ logId: cell.logId, from: lsn(first), to: lsn(last) }]
  }
  const to = lastReadable(cell, request)
  try {
    const next = await reader.read({ loglet: id, from, to, maxBytes, visit, stake })
    return { kind: 'data', next }
  } catch (error) {
    // A trim or a delete may have taken the segment away beneath the read.
    const instead = withoutReading(cell, request)
    if (instead !== undefined) return instead
    throw error instanceof LogError ? error : readFailed(error)
  }
}

/** The outcome where there is nothing to read; throws if the loglet is gone or closed. */
function withoutReading(cell: LogletCell, { from, to }: ReadRequest): ReadOutcome | undefined {
  const { facts, ended } = cell
  if (ended !== undefined && ended.code !== 'STORE_FAILED') throw ended
  if (from <= facts.trimPoint) return { kind: 'trim-gap', until: facts.trimPoint }
  const lost = facts.gaps.find((gap) => gap.from <= from && from <= gap.to)
  if (lost !== undefined) return { kind: 'data-loss-gap', until: lost.to }
  if (from >= facts.tail) return { kind: facts.seal === undefined ? 'tail' : 'end' }
  return to < from ? { kind: 'data', next: from } : undefined
}

/** The last offset up to which there are records without a gap, within what is asked for. */
function lastReadable({ facts }: LogletCell, { from, to }: ReadRequest): Offset {
  const gap = facts.gaps.find((candidate) => candidate.from > from)
  return Math.min(to, facts.tail - 1, (gap?.from ?? Number.POSITIVE_INFINITY) - 1)
}
