/**
 * What a store is to the layers above, whether it is written here (log-store.ts) or followed while
 * another process writes it (read-only-store.ts).
 */
import type { LogError, LogId } from '../codec/errors.ts'
import type { LogFacts } from '../codec/log-state.ts'
import type { Offset } from '../codec/offset.ts'
import type { Keys } from '../codec/record.ts'
import type { AppendPart, OffsetListener, OffsetsListener } from './commands.ts'
import type { Metrics, RecoveryReport } from './metrics.ts'
import type { ReadOutcome, ReadRequest } from './store-reads.ts'
import type { LogletCell } from './store-state.ts'

/** How an append is to be taken. Durable when the listener hears of it. */
export interface AppendTerms {
  readonly expectedTail?: Offset | undefined
  readonly whenFull?: 'wait' | 'reject' | undefined
  readonly signal?: AbortSignal | undefined
}

/** A record to append: a payload, or an EncodedRecord made of one. */
export interface RecordInput {
  readonly payload: unknown
  readonly keys: Keys | undefined
}

/** One record of an append over several loglets. */
export interface PartInput extends RecordInput, AppendPart {}

export interface Store {
  readonly recovery: RecoveryReport
  /** Set once the store can't go on; it must be opened again. */
  readonly failure: LogError | undefined

  /** The logs that durably exist, in the order of their creation. */
  logs(): Iterable<LogFacts>
  log(logId: LogId): LogFacts | undefined
  /** The running loglet of an id that a log's link names. */
  cell(loglet: number): LogletCell | undefined

  /** Appends one record; the payload is captured before this returns. */
  append(
    cell: LogletCell,
    payload: unknown,
    keys: Keys | undefined,
    terms: AppendTerms | undefined,
    listener: OffsetListener,
  ): void
  /** Appends all records at consecutive offsets, or none. */
  appendBatch(
    cell: LogletCell,
    records: readonly RecordInput[],
    terms: AppendTerms | undefined,
    listener: OffsetListener,
  ): void
  /** Appends all records, over any loglets, or none. */
  appendMany(
    parts: readonly PartInput[],
    terms: AppendTerms | undefined,
    listener: OffsetsListener,
  ): void

  /** Trims up to `upTo`, inclusive. Resolves with the trim point, once it is durable. */
  trim(cell: LogletCell, upTo: Offset): Promise<Offset>
  /** Seals a loglet; the first reason wins. Durable when it resolves. */
  seal(cell: LogletCell, reason: string | undefined): Promise<void>
  /** Makes sure that logs exist; they share a group. Durable when it resolves. */
  createLogs(logIds: readonly LogId[]): Promise<void>
  /** Deletes a log: its records go, and its loglets end. Durable when it resolves. */
  deleteLog(logId: LogId): Promise<void>

  /** Reads what is durable, without waiting for more. */
  read(cell: LogletCell, request: ReadRequest): Promise<ReadOutcome>
  metrics(): Metrics

  /**
   * Refuses new work, commits what was accepted, lets go of the store. What is not in a group after
   * `graceMs` is CLOSED; if an operation is stuck then, rejects with STORE_FAILED, and the lock
   * stays until that operation returns. Idempotent.
   */
  shutdown(graceMs: number): Promise<void>
}
