/**
 * Appends what a source gives, batch after batch: each batch is what was ready when the one before
 * it had become durable. On the way out, whatever the reason, what was taken from the source is
 * committed first, and the reason says how far it came.
 */
import { LogError, logError, aborted, type LogId } from '../codec/errors.ts'
import { RecordEncoder, type EncodedRecord, type Keys } from '../codec/record.ts'
import { onAbort } from '../engine/on-abort.ts'
import { invalidOption, requireInRange } from '../engine/options.ts'
import { keysOf } from './append-options.ts'
import { BatchAppend } from './append-requests.ts'
import {
  frameBytes,
  requireBatchBytes,
  type OpenWriter,
  type WriterContext,
} from './appender-options.ts'
import { closed } from './errors.ts'
import type { Lsn } from './lsn.ts'
import { requireOptions, requireSignal } from './member-options.ts'
import { ReadyChunks } from './ready-chunks.ts'

export interface AppendStreamOptions<T> {
  /** Most records in a batch. Default 10, at most 100,000. */
  readonly maxBatchCount?: number | undefined
  /** Most encoded bytes in a batch, its first record aside. Default 1 MiB, or the store's. */
  readonly maxBatchBytes?: number | undefined
  /** The same keys for all records, or a function that gives each record its own. */
  readonly keys?: Keys | ((payload: T) => Keys) | undefined
  /** Stops taking from the source; what was taken is committed, then ABORTED. */
  readonly signal?: AbortSignal | undefined
}

/** What a stream appended. */
export interface AppendStreamResult {
  /** How many records. */
  readonly count: number
  /** The first one's LSN; undefined if there was none. */
  readonly first: Lsn | undefined
  /** The last one's LSN; undefined if there was none. Others may have appended in between. */
  readonly last: Lsn | undefined
}

const STREAM_OPTIONS = new Set(['maxBatchCount', 'maxBatchBytes', 'keys', 'signal'])
const MAX_BATCH_COUNT = { default: 10, min: 1, max: 100_000 }

type Source<T> = AsyncIterable<T> | Iterable<T>

/** One `appendStream`. Throws INVALID_OPTION when it is made. */
export class AppendStream<T> implements OpenWriter {
  readonly #logId: LogId
  readonly #context: WriterContext
  readonly #signal: AbortSignal | undefined
  readonly #keys: AppendStreamOptions<T>['keys']
  readonly #encoder: RecordEncoder
  readonly #chunks: ReadyChunks<T, EncodedRecord>
  #count = 0
  #first: Lsn | undefined
  #last: Lsn | undefined
  #running: Promise<AppendStreamResult> | undefined

  constructor(
    logId: LogId,
    context: WriterContext,
    items: Source<T>,
    options: AppendStreamOptions<T> | undefined,
  ) {
    requireOptions(options, STREAM_OPTIONS)
    const { maxBatchCount, maxBatchBytes, keys, signal } = options ?? {}
    this.#logId = logId
    this.#context = context
    this.#signal = requireSignal(signal)
    this.#keys = keys
    this.#encoder = new RecordEncoder(context.store.maxRecordBytes)
    this.#chunks = new ReadyChunks(requireSource(items), (item) => this.#encode(item), {
      maxCount: requireInRange('maxBatchCount', maxBatchCount, MAX_BATCH_COUNT),
      maxSize: requireBatchBytes(maxBatchBytes, context.store),
      sizeOf: frameBytes,
    })
  }

  #encode(item: T): EncodedRecord {
    const keys = typeof this.#keys === 'function' ? keysOf(this.#keys, item, 0) : this.#keys
    return this.#encoder.encode(item, keys)
  }

  run(): Promise<AppendStreamResult> {
    this.#running ??= this.#run()
    return this.#running
  }

  async #run(): Promise<AppendStreamResult> {
    const signal = this.#signal
    const abort = (): void => {
      if (signal !== undefined) this.#chunks.stop(aborted(signal))
    }
    const stopListening = signal && onAbort(signal, abort)
    this.#context.writers.add(this)
    try {
      if (signal?.aborted === true) abort()
      // An unknown log is told before anything is taken, where that is known already.
      this.#context.logs.find(this.#logId)
      await this.#appendAll()
      return { count: this.#count, first: this.#first, last: this.#last }
    } catch (error) {
      this.#chunks.stop(error)
      throw withProgress(error, this.#count, this.#last)
    } finally {
      stopListening?.()
      this.#context.writers.delete(this)
    }
  }

  async #appendAll(): Promise<void> {
    for (;;) {
      const chunk = await this.#chunks.next()
      if (chunk.length === 0) return
      const first = await this.#append(chunk)
      this.#first ??= first
      this.#count += chunk.length
      this.#last = first + chunk.length - 1
    }
  }

  #append(chunk: readonly EncodedRecord[]): Promise<Lsn> {
    const records = chunk.map((payload) => ({ payload, keys: undefined }))
    return new Promise((resolve, reject) => {
      this.#context.intake.submit(new BatchAppend(this.#logId, records, undefined, resolve, reject))
    })
  }

  async finish(): Promise<void> {
    this.#chunks.stop(closed())
    // Whoever called `run` is told.
    await this.#running?.catch(() => undefined)
  }
}

function requireSource<T>(items: Source<T>): Source<T> {
  const source = items as Partial<AsyncIterable<T> & Iterable<T>> | null | undefined
  const methods = [source?.[Symbol.asyncIterator], source?.[Symbol.iterator]]
  if (methods.some((method) => typeof method === 'function')) return items
  throw invalidOption('items must be an iterable or an async iterable')
}

/** The error, carrying how many records were committed and the last one's LSN. */
function withProgress(error: unknown, count: number, last: Lsn | undefined): unknown {
  const carrier = carrierOf(error)
  for (const [name, value] of Object.entries({ count, last })) {
    Object.defineProperty(carrier, name, { value, enumerable: true, configurable: true })
  }
  return carrier
}

/** An error of a group is told to many: each gets its own. What can't carry anything is wrapped. */
function carrierOf(error: unknown): object {
  if (error instanceof LogError) {
    const copy = logError(error.code as 'CLOSED', error.message, { cause: error.cause })
    return Object.assign(copy, error)
  }
  if (typeof error === 'object' && error !== null && Object.isExtensible(error)) return error
  return new Error('The source of the stream failed', { cause: error })
}
