/** The public door to a store: what its members promise, and `Bifrost.open`. */
import type { LogError, LogId } from '../codec/errors.ts'
import type { Metrics, RecoveryReport } from '../engine/metrics.ts'
import type { AppendOptions, BatchOptions, Entry } from './append-options.ts'
import type { AppendStreamOptions, AppendStreamResult } from './append-stream.ts'
import type { AppenderOptions } from './appender-options.ts'
import type { Appender } from './appender.ts'
import { BifrostStore, openParts } from './bifrost-store.ts'
import type { DataRecord, LogRecord } from './log-record.ts'
import type { Log } from './log.ts'
import type { Lsn } from './lsn.ts'
import type { BifrostOptions } from './options.ts'
import { PROVIDERS } from './providers.ts'
import type { ReaderOptions } from './reader-options.ts'
import type { LogReader } from './read-stream.ts'
import type { TailState } from './tail-state.ts'

/**
 * An open store of logs.
 *
 * Async members never throw, they reject, always with a {@link LogError}; the others throw
 * INVALID_OPTION only. Payloads and options are captured during the call: what the caller changes
 * afterwards changes nothing. After `close` everything is CLOSED, and after a failure of the disk
 * (`status` 'failed') appends are STORE_FAILED while what is durable can still be read.
 *
 * @example
 * ```ts
 * const bifrost = await Bifrost.open({ dir: './data', logs: ['orders', 'emails'] })
 * const lsn = await bifrost.append('orders', { id: 1 }) // on the disk when it resolves
 * for await (const record of bifrost.createReader('orders', { follow: false })) {
 *   if (record.kind === 'data') console.log(record.lsn === lsn, record.payload)
 * }
 * await bifrost.close()
 * ```
 */
export interface Bifrost {
  /** 'failed' once nothing can be written any more; also after a `close` that rejected. */
  readonly status: 'open' | 'failed' | 'closing' | 'closed'
  /** Why the store failed, if it did. */
  readonly failure: LogError | undefined
  /** What opening found and did. */
  readonly recovery: RecoveryReport

  /** Ensures that a log exists, durably when it resolves. An existing one is left as it is. */
  createLog(logId: LogId): Promise<void>

  /**
   * Deletes a log, durably when it resolves. Its readers end with UNKNOWN_LOG and its space comes
   * back; a log created under the name again is a new one that starts at `Lsn.OLDEST`.
   */
  deleteLog(logId: LogId): Promise<void>

  /** The logs there are, in the order of their creation. */
  logIds(): readonly LogId[]

  /** A handle to a log. The log need not exist; then its members reject with UNKNOWN_LOG. */
  log<T = unknown>(logId: LogId): Log<T>

  /**
   * Appends one record. Resolves with its LSN once it, and everything before it, is durable.
   *
   * Refused at once: ENCODE_FAILED, RECORD_TOO_LARGE, QUEUE_FULL, CLOSED. In the order of the
   * queue: TAIL_MISMATCH, SEALED, UNKNOWN_LOG. Not written, and never appears: WRITE_FAILED, after
   * which later appends may succeed. Outcome unknown: STORE_FAILED.
   *
   * @example
   * ```ts
   * const { lsn: tail } = await bifrost.findTail('orders')
   * const lsn = await bifrost.append('orders', { id: 2 }, { expectedTail: tail, keys: ['id:2'] })
   * console.log(lsn === tail) // true
   * ```
   */
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- callers state T
  append<T>(logId: LogId, payload: T, options?: AppendOptions): Promise<Lsn>

  /**
   * Appends records at consecutive LSNs, all or none, also across a crash. Resolves with the first
   * record's LSN once all are durable. EMPTY_BATCH if there are none; BATCH_TOO_LARGE over
   * `maxBatchBytes`; else as `append`.
   *
   * @example
   * ```ts
   * const orders = [{ id: 3 }, { id: 4 }]
   * const first = await bifrost.appendBatch('orders', orders, { keys: ({ id }) => [`id:${id}`] })
   * console.log('the last one is at', first + orders.length - 1)
   * ```
   */
  appendBatch<T>(logId: LogId, payloads: readonly T[], options?: BatchOptions<T>): Promise<Lsn>

  /**
   * Appends records to several logs, all or none, also across a crash. Resolves with each entry's
   * LSN once all are durable. An entry's `expectedTail` is judged where the entry would go.
   *
   * @example
   * ```ts
   * const [orderLsn, emailLsn] = await bifrost.appendMany([
   *   { logId: 'orders', payload: { id: 5 } },
   *   { logId: 'emails', payload: { to: 'somebody', about: 5 } },
   * ])
   * console.log(orderLsn, emailLsn)
   * ```
   */
  appendMany(entries: readonly Entry[]): Promise<Lsn[]>

  /**
   * Appends what a source gives, in batches of what is ready, never waiting to fill one. Resolves
   * when the source has ended and everything is durable. If the source throws, or `signal` aborts,
   * what was taken from it is committed first; whatever the error, it carries `count` and `last`.
   *
   * @example
   * ```ts
   * async function* numbers() {
   *   for (let n = 1; n <= 100; n++) yield n
   * }
   * const { count, last } = await bifrost.appendStream('orders', numbers())
   * console.log(count, 'records up to', last)
   * ```
   */
  appendStream<T>(
    logId: LogId,
    items: AsyncIterable<T> | Iterable<T>,
    options?: AppendStreamOptions<T>,
  ): Promise<AppendStreamResult>

  /** Makes an appender that works in the background. */
  createAppender<T = unknown>(logId: LogId, options?: AppenderOptions): Appender<T>

  /**
   * Makes a reader, which reads nothing until it is asked. With `gaps: 'throw'` it gives records
   * with data only, and gaps are TRIMMED and DATA_LOSS errors.
   *
   * @example
   * ```ts
   * const reader = bifrost.createReader<{ id: number }>('orders', { last: 10, gaps: 'throw' })
   * const record = await reader.readNext()
   * console.log(record?.payload.id, 'go on later from', reader.readPointer)
   * await reader.return()
   * ```
   */
  createReader<T = unknown>(
    logId: LogId,
    options: ReaderOptions & { readonly gaps: 'throw' },
  ): LogReader<DataRecord<T>>
  createReader<T = unknown>(logId: LogId, options?: ReaderOptions): LogReader<LogRecord<T>>

  /** Waits for the first record, or gap, after an LSN. SEALED if none can come. */
  readNextSingle<T = unknown>(
    logId: LogId,
    after: Lsn,
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<LogRecord<T>>

  /** The first record, or gap, after an LSN; undefined if there is none yet. SEALED likewise. */
  readNextSingleOpt<T = unknown>(logId: LogId, after: Lsn): Promise<LogRecord<T> | undefined>

  /** The durable tail. */
  findTail(logId: LogId): Promise<TailState>

  /** The last LSN that is gone by trimming; `Lsn.INVALID` if none is. */
  getTrimPoint(logId: LogId): Promise<Lsn>

  /**
   * Gives up records up to an LSN, inclusive, at most up to the last one; never moves back, never
   * moves the tail. Resolves with the trim point then in force, once it is durable.
   *
   * @example
   * ```ts
   * const trimPoint = await bifrost.trim('orders', 2)
   * console.log('gone up to', trimPoint)
   * ```
   */
  trim(logId: LogId, upTo: Lsn): Promise<Lsn>

  /**
   * Ends a log for appends: they are SEALED. The first reason wins. Resolves with the tail, once
   * that is durable; no append is acknowledged at or past it.
   */
  seal(logId: LogId, reason?: string): Promise<TailState>

  /** What was counted and measured so far. Durations in seconds, sizes in bytes. */
  metrics(): Metrics

  /**
   * Refuses new work, commits what was called before it, ends readers with CLOSED and lets go of
   * the store. After 5 s what is not yet in a group commit is CLOSED and never written; if an
   * operation is stuck even then, it rejects with STORE_FAILED. Every call has the same outcome.
   */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** The class of stores. `new` throws: a store is opened. */
export interface BifrostClass {
  new (): Bifrost
  readonly prototype: Bifrost

  /**
   * Opens a store. With the provider 'local' it is locked, recovered and ready when it resolves,
   * and the logs exist durably; 'memory' is ready at the first use.
   *
   * INVALID_OPTION, LOCKED, LOCK_UNAVAILABLE, CORRUPT, UNSUPPORTED_VERSION, OPEN_FAILED; and what
   * making the logs can meet: WRITE_FAILED, READ_ONLY.
   *
   * @example
   * ```ts
   * const bifrost = await Bifrost.open({ provider: 'memory', logs: ['orders'] })
   * await bifrost.append('orders', { id: 1 })
   * await bifrost.close()
   * ```
   */
  open(options: BifrostOptions): Promise<Bifrost>
}

export const Bifrost: BifrostClass = class Bifrost extends BifrostStore {
  static async open(options: BifrostOptions): Promise<Bifrost> {
    return new Bifrost(await openParts(options, PROVIDERS))
  }
}
