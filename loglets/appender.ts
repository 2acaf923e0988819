/**
 * Appends in the background: payloads are encoded as they come, gathered into batches of what is
 * ready, and one batch is in flight at a time, so that order holds and a failure stops everything.
 *
 *     enqueue ──▶ waiting (no room) ──▶ queued ──▶ the batch in flight ──▶ committed
 *
 * Invariants: records are numbered in call order from 1, and those up to `#committed` are durable.
 * `#heldBytes` is what the queued records and those in flight take. While anything is not durable,
 * a batch is in flight or about to be formed, or the appender has failed.
 */
import type { Writable } from 'node:stream'
import type { LogId } from '../codec/errors.ts'
import { RecordEncoder, type EncodedRecord, type Keys } from '../codec/record.ts'
import { BatchAppend } from './append-requests.ts'
import {
  frameBytes,
  type OpenWriter,
  type ResolvedAppenderOptions,
  type WriterContext,
} from './appender-options.ts'
import { appenderWritable } from './appender-writable.ts'
import { closed } from './errors.ts'
import { Lsn } from './lsn.ts'
import { requireArray, requireOptions } from './member-options.ts'
import { afterReady } from './ready-chunks.ts'

/** How a payload is enqueued. */
export interface EnqueueOptions {
  /** Labels that readers can filter by: up to 16 strings of at most 255 bytes. */
  readonly keys?: Keys | undefined
}

/**
 * Appends to one log in the background: it batches what is ready, without a timer, and has one
 * batch in flight. After a failed batch nothing later is written, and every member rejects with
 * that error. What is not durable yet when the store is closed is committed by the close.
 *
 * @example
 * ```ts
 * const appender = bifrost.createAppender('orders')
 * for (let id = 1; id <= 1000; id++) await appender.enqueue({ id })
 * const last = await appender.committed()
 * console.log('durable up to', last)
 * ```
 */
export interface Appender<T = unknown> {
  /**
   * Takes a payload, captured during the call. Resolves when it is accepted, not when it is
   * durable; waits at `memoryLimitBytes`. ENCODE_FAILED and RECORD_TOO_LARGE refuse only this one.
   */
  enqueue(payload: T, options?: EnqueueOptions): Promise<void>
  /** Takes payloads in order; none if one of them can't be encoded. Not one batch. */
  enqueueMany(payloads: readonly T[], options?: EnqueueOptions): Promise<void>
  /** Resolves with the last LSN when all that was enqueued before the call is durable. */
  committed(): Promise<Lsn>
  /** Resolves with the last LSN when nothing is left, what is enqueued meanwhile included. */
  drain(): Promise<Lsn>
  /**
   * A new object-mode stream into this appender, whose `finish` means durable. A chunk is captured
   * when the stream passes it on, which may be after `write` returned false: leave it alone.
   */
  writable(): Writable
  /** The LSN of the last record that is durable; `Lsn.INVALID` before the first. */
  readonly lastCommitted: Lsn
  /** Takes no more, and waits as `drain` does. */
  [Symbol.asyncDispose](): Promise<void>
}

const ENQUEUE_OPTIONS = new Set(['keys'])
const ACCEPTED: Promise<void> = Promise.resolve()

/** Records that wait for room; a part of them may have been accepted. */
export class WaitingRecords {
  readonly records: readonly EncodedRecord[]
  /** Index of the first record that waits. */
  next = 0
  accepted: () => void = ignore
  failed: (error: unknown) => void = ignore

  constructor(records: readonly EncodedRecord[]) {
    this.records = records
  }
}

function ignore(): void {
  // Nobody asked to be told.
}

/** Somebody who waits until this many records are durable. */
interface CommitWaiter {
  readonly upTo: number
  readonly resolve: (lsn: Lsn) => void
  readonly reject: (error: unknown) => void
}

export class LogAppender implements Appender, OpenWriter {
  readonly #logId: LogId
  readonly #context: WriterContext
  readonly #options: ResolvedAppenderOptions
  readonly #encoder: RecordEncoder
  readonly #waiting: WaitingRecords[] = []
  readonly #commitWaiters: CommitWaiter[] = []
  readonly #queue: EncodedRecord[] = []
  #heldBytes = 0
  /** How many records were taken, those that wait included. */
  #taken = 0
  #committed = 0
  #lastCommitted: Lsn = Lsn.INVALID
  /** Whether a batch is in flight, or about to be formed. */
  #isBusy = false
  #isDisposed = false
  #failure: { readonly error: unknown } | undefined

  constructor(logId: LogId, context: WriterContext, options: ResolvedAppenderOptions) {
    this.#logId = logId
    this.#context = context
    this.#options = options
    this.#encoder = new RecordEncoder(context.store.maxRecordBytes)
  }

  get lastCommitted(): Lsn {
    return this.#lastCommitted
  }

  enqueue(payload: unknown, options?: EnqueueOptions): Promise<void> {
    return this.#whenTaken([payload], options)
  }

  enqueueMany(payloads: readonly unknown[], options?: EnqueueOptions): Promise<void> {
    return this.#whenTaken(payloads, options)
  }

  /** Whoever is accepted at once shares one promise, which saves making one for each. */
  #whenTaken(payloads: readonly unknown[], options?: EnqueueOptions): Promise<void> {
    try {
      const waiting = this.take(payloads, options)
      return waiting === undefined ? ACCEPTED : whenAccepted(waiting)
    } catch (error) {
      return rejected(error)
    }
  }

  /** Takes payloads; returns those that wait for room, if any do. Throws why none was taken. */
  take(payloads: readonly unknown[], options?: EnqueueOptions): WaitingRecords | undefined {
    this.#requireUsable()
    requireOptions(options, ENQUEUE_OPTIONS)
    const all = Array.from(requireArray('payloads', payloads))
    const waiting = new WaitingRecords(
      all.map((payload) => this.#encoder.encode(payload, options?.keys)),
    )
    this.#taken += all.length
    this.#waiting.push(waiting)
    this.#admit()
    this.#work()
    return waiting.next < all.length ? waiting : undefined
  }

  #requireUsable(): void {
    this.#requireNoFailure()
    if (this.#isDisposed) throw closed()
    this.#context.logs.requireOpen()
  }

  #requireNoFailure(): void {
    if (this.#failure !== undefined) throw this.#failure.error
  }

  /** First come, first served; what holds nothing takes any record. */
  #admit(): void {
    for (;;) {
      const [first] = this.#waiting
      if (first === undefined) return
      const record = first.records[first.next]
      if (record !== undefined) {
        const bytes = frameBytes(record)
        const hasRoom = this.#heldBytes + bytes <= this.#options.memoryLimitBytes
        if (this.#heldBytes > 0 && !hasRoom) return
        this.#queue.push(record)
        this.#heldBytes += bytes
        first.next++
      }
      if (first.next < first.records.length) continue
      this.#waiting.shift()
      first.accepted()
    }
  }

  /** Forms the next batch once everything that is ready is in the queue. */
  #work(): void {
    if (this.#isBusy || this.#queue.length === 0) return
    this.#isBusy = true
    this.#context.writers.add(this)
    afterReady(() => this.#sendBatch())
  }

  #sendBatch(): void {
    const batch = this.#takeBatch()
    const records = batch.map((payload) => ({ payload, keys: undefined }))
    const request = new BatchAppend(
      this.#logId,
      records,
      undefined,
      (first) => this.#batchCommitted(batch, first),
      (error) => this.#fail(error),
    )
    try {
      this.#context.intake.submit(request)
    } catch (error) {
      this.#fail(error)
    }
  }

  #takeBatch(): EncodedRecord[] {
    const { maxBatchCount, maxBatchBytes } = this.#options
    let count = 0
    let bytes = 0
    for (const record of this.#queue) {
      bytes += frameBytes(record)
      if (count >= maxBatchCount || (count > 0 && bytes > maxBatchBytes)) break
      count++
    }
    return this.#queue.splice(0, count)
  }

  #batchCommitted(batch: readonly EncodedRecord[], first: Lsn): void {
    const before = this.#committed
    for (const record of batch) this.#heldBytes -= frameBytes(record)
    this.#committed += batch.length
    this.#lastCommitted = first + batch.length - 1
    while (this.#commitWaiters[0] !== undefined && this.#commitWaiters[0].upTo <= this.#committed) {
      const waiter = this.#commitWaiters.shift()
      waiter?.resolve(first + waiter.upTo - before - 1)
    }
    this.#isBusy = false
    this.#admit()
    this.#work()
    this.#leaveIfIdle()
  }

  #leaveIfIdle(): void {
    if (!this.#isBusy) this.#context.writers.delete(this)
  }

  #fail(error: unknown): void {
    this.#failure = { error }
    this.#isBusy = false
    this.#queue.length = 0
    this.#heldBytes = 0
    this.#leaveIfIdle()
    for (const waiting of this.#waiting.splice(0)) waiting.failed(error)
    for (const waiter of this.#commitWaiters.splice(0)) waiter.reject(error)
  }

  async committed(): Promise<Lsn> {
    this.#requireNoFailure()
    if (this.#committed === this.#taken) return this.#lastCommitted
    return new Promise((resolve, reject) => {
      this.#commitWaiters.push({ upTo: this.#taken, resolve, reject })
    })
  }

  async drain(): Promise<Lsn> {
    do await this.committed()
    while (this.#committed < this.#taken)
    return this.#lastCommitted
  }

  writable(): Writable {
    return appenderWritable(this)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isDisposed = true
    await this.drain()
  }

  async finish(): Promise<void> {
    // A failure was told to everybody who asks this appender.
    await this.drain().catch(() => undefined)
  }
}

function whenAccepted(waiting: WaitingRecords): Promise<void> {
  return new Promise((resolve, reject) => {
    waiting.accepted = resolve
    waiting.failed = reject
  })
}

async function rejected(error: unknown): Promise<never> {
  throw error
}
