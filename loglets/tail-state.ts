/** Where a log ends, made of what its loglets say. */
import { lsnOfOffset, type Lsn } from '../codec/offset.ts'
import type { LogletState } from './loglet.ts'

/** Where a log ends, as of one moment. */
export interface TailState {
  /** Whether nothing can be appended any more. */
  readonly sealed: boolean
  /** Why it was sealed, if the one who sealed it said so. */
  readonly reason: string | undefined
  /** First unwritten LSN; everything below it is durable. */
  readonly lsn: Lsn
  /** Last readable LSN; undefined if the log is empty or wholly trimmed. */
  readonly last: Lsn | undefined
}

/** The tail of a log whose last link is in `state`; `trimPoint` is the whole log's. */
export function tailStateOf(state: LogletState, baseLsn: Lsn, trimPoint: Lsn): TailState {
  const lsn = lsnOfOffset(baseLsn, state.tail)
  const last = lsn - 1 > trimPoint ? lsn - 1 : undefined
  return { sealed: state.sealed, reason: state.reason, lsn, last }
}
