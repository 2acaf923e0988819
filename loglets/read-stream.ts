/**
 * A reader of a log: one cursor, shared by the iterator, `readNext` and `chunks`.
 *
 *     readNext() ──▶ waiters, in call order ◀── served from ── buffer ◀── pump ◀── LogCursor
 *
 * Records that are buffered are given out without waiting. Otherwise a call waits, and the pump
 * reads for it: it runs only while somebody waits, so a reader that nobody asks holds no more than
 * its buffer, and nothing holds it.
 *
 * Invariants: while anybody waits, either the pump runs or the reader is over. Once it is over, the
 * buffer is empty and nobody waits.
 */
import { aborted, LogError, logError, type LogErrorCode, type LogId } from '../codec/errors.ts'
import { onAbort } from '../engine/on-abort.ts'
import { LogCursor, type CursorStep } from './log-cursor.ts'
import type { LogDirectory } from './log-directory.ts'
import { lsnAfter, type GapRecord, type LogRecord } from './log-record.ts'
import type { Lsn } from './lsn.ts'
import type { ResolvedReaderOptions } from './reader-options.ts'
import { RecordWaiter, StepWaiter, takeChunk, takeRecord, type Waiter } from './read-waiters.ts'

/**
 * Reads a log in order. Use it as an async iterator, or call its methods; all share one cursor.
 * Memory is bounded by `readAheadBytes` of the store, however slow the consumer is.
 *
 * It ends (`done`, or undefined) past `to`, at the tail with `follow: false`, at a sealed end, and
 * by `return()`, which `break` calls. Otherwise it rejects: ABORTED by its signal, CLOSED with the
 * store, UNKNOWN_LOG when the log is deleted, STORE_FAILED at the tail of a store that failed,
 * INVALID_LSN if it starts below 1 or past a sealed tail, READ_FAILED (try again) and CORRUPT.
 *
 * @example
 * ```ts
 * for await (const record of bifrost.createReader('orders', { follow: false })) {
 *   if (record.kind === 'data') console.log(record.lsn, record.payload)
 * }
 * ```
 */
export interface LogReader<R> extends AsyncIterableIterator<R, undefined> {
  /** The next record or gap; waits for one. Undefined at the end. Calls may overlap. */
  readNext(): Promise<R | undefined>
  /** The next record or gap if there is one now; undefined otherwise. */
  readNextOpt(): Promise<R | undefined>
  /** Arrays of records, as they are read; never empty. Far faster than one at a time. */
  chunks(): AsyncIterableIterator<readonly R[], undefined>
  /**
   * The LSN to pass as `from` to go on after what was returned. `Lsn.INVALID` while a reader with
   * `last` doesn't know the tail yet.
   */
  readonly readPointer: Lsn
  /** Whether nothing more will come: it is done, or rejects for good. */
  readonly ended: boolean
  /** Ends the reader and frees what it holds. Calls that wait are done at once. */
  return(): Promise<IteratorReturnResult<undefined>>
  [Symbol.asyncDispose](): Promise<void>
}

/** After any other error, reading again goes on at the same place. */
const FINAL: ReadonlySet<LogErrorCode> = new Set([
  'ABORTED',
  'CLOSED',
  'UNKNOWN_LOG',
  'STORE_FAILED',
  'INVALID_LSN',
])

const DONE: IteratorReturnResult<undefined> = Object.freeze({ value: undefined, done: true })

/** How a reader is over: for good, or with the error that every later call gets. */
type Outcome = { readonly error: unknown } | 'done'

export class LogReadStream implements LogReader<LogRecord> {
  readonly #cursor: LogCursor
  readonly #options: ResolvedReaderOptions
  readonly #waiters: Waiter[] = []
  #buffer: LogRecord[] = []
  /** Index of the next record in the buffer. */
  #index = 0
  /** The LSN after what was returned; undefined if nothing was. */
  #pointer: Lsn | undefined
  #outcome: Outcome | undefined
  #isPumping = false
  /** The read after the one whose records are buffered, begun while those are taken. */
  #ahead: Promise<CursorStep | undefined> | undefined
  /** Reads in a row that gave records: from the second on it is worth reading ahead. */
  #streak = 0
  /** Ends the pause at the tail. */
  #wake: (() => void) | undefined
  #ignoreSignal: (() => void) | undefined

  constructor(
    logs: LogDirectory,
    logId: LogId,
    options: ResolvedReaderOptions,
    readAheadBytes: number,
  ) {
    this.#options = options
    // Half for the records that are taken, half for those that are read meanwhile.
    const half = Math.ceil(readAheadBytes / 2)
    this.#cursor = new LogCursor(logs, logId, { ...options, readAheadBytes: half })
    if (options.refusal !== undefined) this.#outcome = { error: options.refusal }
  }

  get readPointer(): Lsn {
    return this.#pointer ?? this.#cursor.start
  }

  get ended(): boolean {
    return this.#outcome !== undefined
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<LogRecord, undefined>> {
    if (this.#canTake()) return Promise.resolve({ value: this.takeRecord(), done: false })
    return new Promise((resolve, reject) => {
      this.#wait(new StepWaiter(resolve, reject, takeRecord))
    })
  }

  readNext(): Promise<LogRecord | undefined> {
    if (this.#canTake()) return Promise.resolve(this.takeRecord())
    return new Promise((resolve, reject) => {
      this.#wait(new RecordWaiter(resolve, reject, true))
    })
  }

  readNextOpt(): Promise<LogRecord | undefined> {
    if (this.#canTake()) return Promise.resolve(this.takeRecord())
    return new Promise((resolve, reject) => {
      this.#wait(new RecordWaiter(resolve, reject, false))
    })
  }

  chunks(): AsyncIterableIterator<readonly LogRecord[], undefined> {
    const iterator: AsyncIterableIterator<readonly LogRecord[], undefined> = {
      next: () => this.#nextChunk(),
      return: () => this.return(),
      [Symbol.asyncIterator]: () => iterator,
    }
    return iterator
  }

  #nextChunk(): Promise<IteratorResult<readonly LogRecord[], undefined>> {
    if (this.#canTake()) return Promise.resolve({ value: this.takeChunk(), done: false })
    return new Promise((resolve, reject) => {
      this.#wait(new StepWaiter(resolve, reject, takeChunk))
    })
  }

  return(): Promise<IteratorReturnResult<undefined>> {
    this.#end('done')
    return Promise.resolve(DONE)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return()
  }

  /** Whether a call can be served at once: nothing stands in its way, nobody waits before it. */
  #canTake(): boolean {
    return (
      this.#index < this.#buffer.length &&
      this.#waiters.length === 0 &&
      this.#interruption() === undefined
    )
  }

  /** Why the reader has to stop although there may be more. */
  #interruption(): LogError | undefined {
    const { signal } = this.#options
    if (signal?.aborted === true) return aborted(signal)
    return this.#cursor.refusal
  }

  /** For waiters: the next record of the buffer, which must not be empty. */
  takeRecord(): LogRecord {
    const record = this.#buffer[this.#index++] as LogRecord
    this.#pointer = lsnAfter(record)
    if (this.#index === this.#buffer.length) this.#emptied()
    return record
  }

  /** For waiters: all that is buffered, which must be something. */
  takeChunk(): readonly LogRecord[] {
    const chunk = this.#index === 0 ? this.#buffer : this.#buffer.slice(this.#index)
    this.#pointer = lsnAfter(chunk.at(-1) as LogRecord)
    this.#emptied()
    return chunk
  }

  #emptied(): void {
    this.#buffer = []
    this.#index = 0
    if (this.#ahead === undefined && this.#cursor.isPastEnd) this.#end('done')
  }

  #wait(waiter: Waiter): void {
    if (this.#outcome !== undefined) {
      settle(waiter, this.#outcome)
      return
    }
    this.#waiters.push(waiter)
    this.#wake?.()
    if (!this.#isPumping) void this.#pump()
  }

  /** Serves those who wait, in order, until nobody does. Never rejects. */
  async #pump(): Promise<void> {
    const { signal } = this.#options
    this.#isPumping = true
    if (signal !== undefined) {
      this.#ignoreSignal = onAbort(signal, () => this.#end({ error: aborted(signal) }))
    }
    while (this.#waiters.length > 0) await this.#serve()
    this.#ignoreSignal?.()
    this.#isPumping = false
  }

  async #serve(): Promise<void> {
    const interruption = this.#interruption()
    if (interruption !== undefined) this.#end({ error: interruption })
    else if (this.#index < this.#buffer.length) this.#waiters.shift()?.serve(this)
    else if (this.#ahead === undefined && this.#cursor.isPastEnd) this.#end('done')
    else await this.#readOn()
  }

  async #readOn(): Promise<void> {
    try {
      const step = (await this.#takeAhead()) ?? (await this.#cursor.read())
      // It may have ended while the read was under way.
      if (this.#outcome === undefined) await this.#take(step)
    } catch (error) {
      this.#failOne(error)
    }
  }

  /** What was read ahead, if anything was that can't have changed since. */
  async #takeAhead(): Promise<CursorStep | undefined> {
    const ahead = this.#ahead
    this.#ahead = undefined
    const step = await ahead
    // A tail may have moved, and an error may be over: both are asked for again.
    return step?.kind === 'records' || step?.kind === 'gap' ? step : undefined
  }

  #readAhead(): void {
    if (this.#cursor.isPastEnd) return
    this.#ahead = this.#cursor.read().catch(() => undefined)
  }

  async #take(step: CursorStep): Promise<void> {
    this.#streak = step.kind === 'records' && step.records.length > 0 ? this.#streak + 1 : 0
    switch (step.kind) {
      case 'records':
        this.#buffer = step.records
        if (this.#streak > 1) this.#readAhead()
        break
      case 'gap':
        if (this.#options.throwsGaps) this.#end({ error: gapError(step.gap) })
        else this.#buffer = [step.gap]
        break
      case 'tail':
        if (this.#options.follow) await this.#pauseAtTail()
        else this.#end('done')
        break
      default:
        this.#end('done')
    }
  }

  async #pauseAtTail(): Promise<void> {
    this.#settleThoseWhoDoNotWait()
    if (this.#waiters.length === 0) return
    let stop: (() => void) | undefined
    await new Promise<void>((resolve) => {
      this.#wake = resolve
      stop = this.#cursor.watch(resolve)
    })
    this.#wake = undefined
    stop?.()
  }

  #settleThoseWhoDoNotWait(): void {
    const waiting = this.#waiters.splice(0)
    for (const waiter of waiting) {
      if (waiter.isPatient) this.#waiters.push(waiter)
      else waiter.end()
    }
  }

  /** An error that reading again may not meet is told to the one who is served. */
  #failOne(error: unknown): void {
    if (this.#outcome !== undefined) return
    if (error instanceof LogError && FINAL.has(error.code)) this.#end({ error })
    else this.#waiters.shift()?.fail(error)
  }

  #end(outcome: Outcome): void {
    if (this.#outcome !== undefined) return
    this.#outcome = outcome
    this.#buffer = []
    this.#index = 0
    this.#ignoreSignal?.()
    this.#wake?.()
    for (const waiter of this.#waiters.splice(0)) settle(waiter, outcome)
  }
}

function settle(waiter: Waiter, outcome: Outcome): void {
  if (outcome === 'done') waiter.end()
  else waiter.fail(outcome.error)
}

function gapError({ kind, lsn, until }: GapRecord): LogError {
  if (kind === 'trim-gap') {
    return logError('TRIMMED', `The records from ${lsn} to ${until} were trimmed`, {
      fields: { trimPoint: until },
    })
  }
  return logError('DATA_LOSS', `The records from ${lsn} to ${until} are lost`, {
    fields: { from: lsn, to: until },
  })
}
