/**
 * The store behind the public door: checks what its members are given and hands it on, appends to
 * the intake, everything else to the log's chain. It holds no state of logs itself.
 */
import { LogError, logError, sealed, type LogId } from '../codec/errors.ts'
import type { Metrics, RecoveryReport } from '../engine/metrics.ts'
import { invalidOption, type ResolvedStoreOptions } from '../engine/options.ts'
import { AppendIntake } from './append-intake.ts'
import {
  appendTerms,
  batchRecords,
  manyEntries,
  type AppendOptions,
  type BatchOptions,
  type Entry,
} from './append-options.ts'
import { BatchAppend, ManyAppend, SingleAppend } from './append-requests.ts'
import { AppendStream, type AppendStreamOptions, type AppendStreamResult } from './append-stream.ts'
import {
  resolveAppenderOptions,
  type AppenderOptions,
  type OpenWriter,
  type WriterContext,
} from './appender-options.ts'
import { LogAppender, type Appender } from './appender.ts'
import { IDLE_METRICS, NOTHING_RECOVERED } from './idle-reports.ts'
import { findTail, getTrimPoint, sealChain, trimChain } from './log-chain.ts'
import { LogDirectory } from './log-directory.ts'
import type { DataRecord, LogRecord } from './log-record.ts'
import { LogHandle, type Log, type LogMembers } from './log.ts'
import type { LogletProvider } from './loglet-provider.ts'
import { requireLsnOrNone, type Lsn } from './lsn.ts'
import { requireOptions, requireSignal } from './member-options.ts'
import {
  requireLogId,
  resolveBifrostOptions,
  type BifrostOptions,
  type ProviderKind,
  type ResolvedBifrostOptions,
} from './options.ts'
import { resolveReaderOptions, type ReaderOptions } from './reader-options.ts'
import { LogReadStream, type LogReader } from './read-stream.ts'
import type { TailState } from './tail-state.ts'
import { settledWithin, SHUTDOWN_GRACE_MS, Watchdog, type ManagedProvider } from './watchdog.ts'

/** How a kind of provider is made, and when it is started. */
export interface ProviderFactory {
  /** Whether `open` waits for its start, and fails with it; else the first use starts it. */
  readonly startsInOpen: boolean
  make(options: ResolvedStoreOptions): LogletProvider
}

export type ProviderFactories = Readonly<Record<ProviderKind, ProviderFactory>>

export type StoreStatus = 'open' | 'failed' | 'closing' | 'closed'

const SINGLE_OPTIONS = new Set(['signal'])
const MAX_REASON_BYTES = 4096

/** What a store is made of. Only `open` makes one. */
export class StoreParts {
  readonly options: ResolvedBifrostOptions
  readonly graceMs: number
  readonly watchdog: Watchdog = new Watchdog()
  readonly provider: ManagedProvider

  constructor(options: ResolvedBifrostOptions, factory: ProviderFactory, graceMs: number) {
    this.options = options
    this.graceMs = graceMs
    this.provider = this.watchdog.manage(options.provider, {
      make: () => factory.make(options.store),
      prepare: async ({ chains }) => {
        const missing = options.logs.filter((logId) => chains.chain(logId) === undefined)
        if (missing.length > 0) await chains.createLogs(missing)
      },
    })
  }
}

/** Checks the options, and starts the provider if it is of a kind that starts at once. */
export async function openParts(
  options: BifrostOptions,
  providers: ProviderFactories,
  graceMs: number = SHUTDOWN_GRACE_MS,
): Promise<StoreParts> {
  const resolved = resolveBifrostOptions(options)
  const factory = providers[resolved.provider]
  const parts = new StoreParts(resolved, factory, graceMs)
  if (factory.startsInOpen) await parts.provider.start()
  return parts
}

export class BifrostStore implements LogMembers {
  readonly #parts: StoreParts
  readonly #logs: LogDirectory
  readonly #intake: AppendIntake
  readonly #writers = new Set<OpenWriter>()
  readonly #context: WriterContext
  #closing: Promise<void> | undefined
  #closeStatus: Exclude<StoreStatus, 'open'> | undefined
  #closeFailure: LogError | undefined

  /** For `open` only, whatever the types of a subclass say. */
  constructor(parts?: StoreParts) {
    if (!(parts instanceof StoreParts)) throw invalidOption('Use Bifrost.open() to make a Bifrost')
    const { store } = parts.options
    this.#parts = parts
    this.#logs = new LogDirectory(parts.provider)
    this.#intake = new AppendIntake(parts.provider, store)
    this.#context = { logs: this.#logs, intake: this.#intake, store, writers: this.#writers }
  }

  get status(): StoreStatus {
    if (this.#closeStatus !== undefined) return this.#closeStatus
    return this.failure === undefined ? 'open' : 'failed'
  }

  get failure(): LogError | undefined {
    return this.#parts.provider.ready?.status.failure ?? this.#closeFailure
  }

  get recovery(): RecoveryReport {
    return this.#parts.provider.ready?.recovery ?? NOTHING_RECOVERED
  }

  async createLog(logId: LogId): Promise<void> {
    const id = requireLogId(logId)
    return this.#logs.onProvider(({ chains }) => chains.createLogs([id]))
  }

  async deleteLog(logId: LogId): Promise<void> {
    const id = requireLogId(logId)
    return this.#logs.onProvider(({ chains }) => chains.deleteLog(id))
  }

  logIds(): readonly LogId[] {
    return this.#parts.provider.ready?.chains.logIds() ?? this.#parts.options.logs
  }

  log<T = unknown>(logId: LogId): Log<T> {
    return new LogHandle<T>(requireLogId(logId), this)
  }

  // What is thrown while a promise is made rejects it, so these need no `async` and make one
  // promise each.

  append(logId: LogId, payload: unknown, options?: AppendOptions): Promise<Lsn> {
    return new Promise((resolve, reject) => {
      this.#logs.requireOpen()
      const terms = appendTerms(options)
      this.#intake.submit(new SingleAppend(logId, payload, options?.keys, terms, resolve, reject))
    })
  }

  appendBatch<T>(logId: LogId, payloads: readonly T[], options?: BatchOptions<T>): Promise<Lsn> {
    return new Promise((resolve, reject) => {
      this.#logs.requireOpen()
      const terms = appendTerms(options)
      const records = batchRecords(payloads, options?.keys)
      this.#intake.submit(new BatchAppend(logId, records, terms, resolve, reject))
    })
  }

  appendMany(entries: readonly Entry[]): Promise<Lsn[]> {
    return new Promise((resolve, reject) => {
      this.#logs.requireOpen()
      this.#intake.submit(new ManyAppend(manyEntries(entries), resolve, reject))
    })
  }

  async appendStream<T>(
    logId: LogId,
    items: AsyncIterable<T> | Iterable<T>,
    options?: AppendStreamOptions<T>,
  ): Promise<AppendStreamResult> {
    this.#logs.requireOpen()
    return new AppendStream(requireLogId(logId), this.#context, items, options).run()
  }

  createAppender<T = unknown>(logId: LogId, options?: AppenderOptions): Appender<T> {
    const resolved = resolveAppenderOptions(options, this.#parts.options.store)
    return new LogAppender(requireLogId(logId), this.#context, resolved)
  }

  /** The payloads' types are the caller's word. */
  createReader(logId: LogId, options?: ReaderOptions): LogReader<DataRecord<never>> {
    const resolved = resolveReaderOptions(options)
    const { readAheadBytes } = this.#parts.options
    const reader = new LogReadStream(this.#logs, requireLogId(logId), resolved, readAheadBytes)
    return reader as LogReader<LogRecord> as LogReader<DataRecord<never>>
  }

  async readNextSingle<T>(
    logId: LogId,
    after: Lsn,
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<LogRecord<T>> {
    requireOptions(options, SINGLE_OPTIONS)
    const reader = this.#singleReader(logId, after, requireSignal(options?.signal))
    const record = await reader.readNext()
    if (record !== undefined) return record as LogRecord<T>
    throw await this.#sealedError(logId)
  }

  async readNextSingleOpt<T>(logId: LogId, after: Lsn): Promise<LogRecord<T> | undefined> {
    const reader = this.#singleReader(logId, after, undefined)
    const record = await reader.readNextOpt()
    if (record === undefined && reader.ended) throw await this.#sealedError(logId)
    return record as LogRecord<T> | undefined
  }

  /** Reads no further than one record. */
  #singleReader(logId: LogId, after: Lsn, signal: AbortSignal | undefined): LogReadStream {
    const options = resolveReaderOptions({ after: requireLsnOrNone('after', after), signal })
    return new LogReadStream(this.#logs, requireLogId(logId), options, 1)
  }

  async #sealedError(logId: LogId): Promise<LogError> {
    const { lsn, reason } = await this.findTail(logId)
    return sealed(lsn, reason)
  }

  async findTail(logId: LogId): Promise<TailState> {
    return this.#logs.onLog(logId, findTail)
  }

  async getTrimPoint(logId: LogId): Promise<Lsn> {
    return this.#logs.onLog(logId, getTrimPoint)
  }

  async trim(logId: LogId, upTo: Lsn): Promise<Lsn> {
    const lsn = requireLsnOrNone('upTo', upTo)
    return this.#logs.onLog(logId, (links) => trimChain(links, lsn))
  }

  async seal(logId: LogId, reason?: string): Promise<TailState> {
    const checked = requireReason(reason)
    return this.#logs.onLog(logId, (links) => sealChain(links, checked))
  }

  metrics(): Metrics {
    const { ready } = this.#parts.provider
    if (ready !== undefined) return ready.metrics()
    return { ...IDLE_METRICS, bifrost_localloglet_waiting_bytes: this.#intake.heldBytes }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    const { watchdog, graceMs } = this.#parts
    const deadline = performance.now() + graceMs
    this.#closeStatus = 'closing'
    this.#logs.close()
    try {
      const writers = [...this.#writers].map((writer) => writer.finish())
      if (writers.length > 0) await settledWithin(Promise.all(writers), graceMs)
      await watchdog.shutdown(Math.max(0, deadline - performance.now()))
      this.#closeStatus = 'closed'
    } catch (error) {
      this.#closeStatus = 'failed'
      this.#closeFailure = asStoreFailure(error)
      throw this.#closeFailure
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}

function asStoreFailure(cause: unknown): LogError {
  if (cause instanceof LogError) return cause
  return logError('STORE_FAILED', 'The store could not be closed', { cause })
}

function requireReason(reason: unknown): string | undefined {
  if (reason === undefined) return undefined
  if (typeof reason === 'string' && reason.isWellFormed()) {
    if (Buffer.byteLength(reason) <= MAX_REASON_BYTES) return reason
  }
  throw invalidOption(`A reason must be a string of at most ${MAX_REASON_BYTES} bytes of UTF-8`)
}
