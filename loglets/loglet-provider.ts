/**
 * A provider starts, makes and stops the loglets of one kind, and keeps the registry of the logs
 * that live on it (their chains) with the same durability as their records.
 */
import type { LogError, LogId } from '../codec/errors.ts'
import type { Lsn, Offset } from '../codec/offset.ts'
import type { Metrics, RecoveryReport } from '../engine/metrics.ts'
import type { Loglet, LogletAppendOptions, LogletRecord } from './loglet.ts'

/** One link of a log's chain: a loglet, and the LSN of the loglet's first offset. */
export interface ChainLink {
  readonly loglet: Loglet
  readonly baseLsn: Lsn
}

/** One record of an `appendMany`. */
export interface ManyRecord extends LogletRecord {
  readonly loglet: Loglet
  /**
   * Judged where this record would go: earlier records of the same call count. The tail in a
   * TAIL_MISMATCH is the loglet's without them, so that all below it can be read.
   */
  readonly expectedTail?: Offset | undefined
}

/** Told the outcome of an `appendMany`, exactly once. */
export interface ManyListener {
  /** Everything is durable; one offset per record, in the order of the records. */
  committed(offsets: Offset[]): void
  /** `at` is the index of the record that was refused, if one was: whose loglet a tail is of. */
  failed(error: LogError, at: number | undefined): void
}

/** The registry: which logs exist, and of what links they are made. */
export interface ChainStore {
  /** The logs that durably exist, in the order of their creation. */
  logIds(): readonly LogId[]
  /** The links of a log, oldest first, at least one; undefined if there is no such log. */
  chain(logId: LogId): readonly ChainLink[] | undefined
  /** Ensures that the logs exist, durably when it resolves. Existing ones are left as they are. */
  createLogs(logIds: readonly LogId[]): Promise<void>
  /** Deletes a log, durably when it resolves; its loglets end with UNKNOWN_LOG. */
  deleteLog(logId: LogId): Promise<void>
}

export interface ProviderStatus {
  /** Set once the provider can't take writes any more. */
  readonly failure: LogError | undefined
}

export interface LogletProvider {
  readonly chains: ChainStore
  readonly status: ProviderStatus
  readonly recovery: RecoveryReport

  /** Makes the provider ready, or rejects. Called once, before anything else. */
  start(): Promise<void>

  /** Appends all the records, over any of this provider's loglets, or none. */
  appendMany(
    records: readonly ManyRecord[],
    options: LogletAppendOptions | undefined,
    listener: ManyListener,
  ): void

  metrics(): Metrics

  /**
   * Refuses new work at once, commits what was accepted, ends every loglet with CLOSED. What is not
   * yet in a group after `graceMs` is CLOSED and never written. Rejects with STORE_FAILED if an
   * operation is stuck even then. Idempotent.
   */
  shutdown(graceMs: number): Promise<void>
}
