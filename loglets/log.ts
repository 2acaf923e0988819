/** A log by its handle: the members of a store, with the log's name filled in. */
import type { LogId } from '../codec/errors.ts'
import type { AppendOptions, BatchOptions } from './append-options.ts'
import type { AppendStreamOptions, AppendStreamResult } from './append-stream.ts'
import type { AppenderOptions } from './appender-options.ts'
import type { Appender } from './appender.ts'
import type { DataRecord, LogRecord } from './log-record.ts'
import type { Lsn } from './lsn.ts'
import type { ReaderOptions } from './reader-options.ts'
import type { LogReader } from './read-stream.ts'
import type { TailState } from './tail-state.ts'

/**
 * One log. Every member does what the store's member of the same name does for this log. A handle
 * is only a name: it can be made before the log is, and outlives it.
 *
 * @example
 * ```ts
 * const orders = bifrost.log<{ id: number }>('orders')
 * const lsn = await orders.append({ id: 1 })
 * const { lsn: tail } = await orders.findTail()
 * console.log(tail === lsn + 1) // true
 * ```
 */
export interface Log<T = unknown> {
  readonly logId: LogId
  append(payload: T, options?: AppendOptions): Promise<Lsn>
  appendBatch(payloads: readonly T[], options?: BatchOptions<T>): Promise<Lsn>
  appendStream(
    items: AsyncIterable<T> | Iterable<T>,
    options?: AppendStreamOptions<T>,
  ): Promise<AppendStreamResult>
  createAppender(options?: AppenderOptions): Appender<T>
  createReader(options: ReaderOptions & { readonly gaps: 'throw' }): LogReader<DataRecord<T>>
  createReader(options?: ReaderOptions): LogReader<LogRecord<T>>
  readNextSingle(
    after: Lsn,
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<LogRecord<T>>
  readNextSingleOpt(after: Lsn): Promise<LogRecord<T> | undefined>
  findTail(): Promise<TailState>
  getTrimPoint(): Promise<Lsn>
  trim(upTo: Lsn): Promise<Lsn>
  seal(reason?: string): Promise<TailState>
}

/** The members of a store that a handle needs. */
export interface LogMembers {
  append(logId: LogId, payload: unknown, options?: AppendOptions): Promise<Lsn>
  appendBatch<T>(logId: LogId, payloads: readonly T[], options?: BatchOptions<T>): Promise<Lsn>
  appendStream<T>(
    logId: LogId,
    items: AsyncIterable<T> | Iterable<T>,
    options?: AppendStreamOptions<T>,
  ): Promise<AppendStreamResult>
  createAppender<T>(logId: LogId, options?: AppenderOptions): Appender<T>
  createReader(logId: LogId, options?: ReaderOptions): LogReader<DataRecord<never>>
  readNextSingle<T>(
    logId: LogId,
    after: Lsn,
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<LogRecord<T>>
  readNextSingleOpt<T>(logId: LogId, after: Lsn): Promise<LogRecord<T> | undefined>
  findTail(logId: LogId): Promise<TailState>
  getTrimPoint(logId: LogId): Promise<Lsn>
  trim(logId: LogId, upTo: Lsn): Promise<Lsn>
  seal(logId: LogId, reason?: string): Promise<TailState>
}

export class LogHandle<T> implements Log<T> {
  readonly logId: LogId
  readonly #store: LogMembers

  constructor(logId: LogId, store: LogMembers) {
    this.logId = logId
    this.#store = store
  }

  append(payload: T, options?: AppendOptions): Promise<Lsn> {
    return this.#store.append(this.logId, payload, options)
  }

  appendBatch(payloads: readonly T[], options?: BatchOptions<T>): Promise<Lsn> {
    return this.#store.appendBatch(this.logId, payloads, options)
  }

  appendStream(
    items: AsyncIterable<T> | Iterable<T>,
    options?: AppendStreamOptions<T>,
  ): Promise<AppendStreamResult> {
    return this.#store.appendStream(this.logId, items, options)
  }

  createAppender(options?: AppenderOptions): Appender<T> {
    return this.#store.createAppender(this.logId, options)
  }

  createReader(options?: ReaderOptions): LogReader<DataRecord<never>> {
    return this.#store.createReader(this.logId, options)
  }

  readNextSingle(
    after: Lsn,
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<LogRecord<T>> {
    return this.#store.readNextSingle(this.logId, after, options)
  }

  readNextSingleOpt(after: Lsn): Promise<LogRecord<T> | undefined> {
    return this.#store.readNextSingleOpt(this.logId, after)
  }

  findTail(): Promise<TailState> {
    return this.#store.findTail(this.logId)
  }

  getTrimPoint(): Promise<Lsn> {
    return this.#store.getTrimPoint(this.logId)
  }

  trim(upTo: Lsn): Promise<Lsn> {
    return this.#store.trim(this.logId, upTo)
  }

  seal(reason?: string): Promise<TailState> {
    return this.#store.seal(this.logId, reason)
  }
}
