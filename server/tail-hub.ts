/**
 * Tells those who wait at a stream's end what comes. One reader follows the log, whoever many wait;
 * what it reads is put into form once and shared.
 *
 *     log ──▶ one reader ──▶ TailNews ──▶ waiter, waiter, waiter …
 *
 * A waiter is told everything behind the place where it joined, in order, until it leaves. Nothing
 * is kept for one that is slow: it leaves, reads for itself, and joins again.
 */
import { LogError, type Bifrost, type LogReader, type LogRecord } from '../index.ts'
import type { StreamOffset } from './offset.ts'
import type { Message } from './stream-reader.ts'
import { decodeRecord } from './stream-record.ts'
import { TailNews } from './tail-news.ts'

/** Somebody at the end of a stream. It must not throw. */
export interface TailWaiter {
  /** Up to which LSN of the stream it knows everything. */
  readonly lsn: number
  /** Takes what is new to it. */
  tell(news: TailNews): void
  /** The stream was closed, and the waiter knows all of it. */
  end(): void
  /** Nothing more can be told: the stream is gone, or can't be read. */
  fail(error: unknown): void
}

/** The stream whose end is followed. */
export interface Followed {
  readonly bifrost: Bifrost
  readonly logId: string
  /** Where its own log starts in it. */
  readonly base: StreamOffset
  /** Whether nothing will come after a place, given as an LSN. */
  isEnd(lsn: number): boolean
  /** It is still in use. */
  touch(): void
}

type Follower = LogReader<LogRecord>

export class TailHub {
  readonly #stream: Followed
  readonly #waiters = new Set<TailWaiter>()
  #reader: Follower | undefined
  /** Up to this LSN of the stream the waiters have been told everything. */
  #lsn = 0

  constructor(stream: Followed) {
    this.#stream = stream
  }

  get isWatched(): boolean {
    return this.#waiters.size > 0
  }

  /** Joins a waiter; false if it has to read up to the end first, because it is behind. */
  join(waiter: TailWaiter): boolean {
    if (this.#reader === undefined) this.#start(waiter.lsn)
    else if (waiter.lsn < this.#lsn) return false
    this.#waiters.add(waiter)
    return true
  }

  leave(waiter: TailWaiter): void {
    if (!this.#waiters.delete(waiter)) return
    this.#stream.touch()
    if (this.#waiters.size > 0) return
    void this.#reader?.return()
    this.#reader = undefined
  }

  /** The stream was closed: those who know everything are told at once, others once they do. */
  closed(): void {
    for (const waiter of this.#waiters) {
      if (this.#stream.isEnd(waiter.lsn)) waiter.end()
    }
  }

  #start(lsn: number): void {
    const { bifrost, logId, base } = this.#stream
    this.#lsn = lsn
    this.#reader = bifrost.createReader(logId, { after: lsn - base.lsn })
    void this.#follow(this.#reader)
  }

  async #follow(reader: Follower): Promise<void> {
    try {
      for await (const records of reader.chunks()) {
        if (this.#reader !== reader) return
        this.#tell(this.#newsOf(records))
      }
    } catch (error) {
      if (this.#reader === reader) this.fail(error)
    }
  }

  #newsOf(records: readonly LogRecord[]): TailNews {
    const baseLsn = this.#stream.base.lsn
    const messages: Message[] = []
    let end: StreamOffset | undefined
    let lsn = this.#lsn
    for (const record of records) {
      if (record.kind !== 'data') throw missing(record.lsn)
      lsn = baseLsn + record.lsn
      const decoded = decodeRecord(record)
      if (decoded.kind === 'note') continue
      messages.push({ lsn, data: decoded.data })
      end = { lsn, bytes: decoded.bytes }
    }
    return new TailNews(this.#lsn, lsn, messages, end)
  }

  #tell(news: TailNews): void {
    this.#lsn = news.lsn
    for (const waiter of this.#waiters) {
      if (waiter.lsn < news.lsn) waiter.tell(news.since(waiter.lsn))
    }
  }

  /** Nothing more can be told: the waiters have to come back, and see why. */
  fail(error: unknown): void {
    void this.#reader?.return()
    this.#reader = undefined
    const told = LogError.is(error, 'CLOSED') ? undefined : error
    for (const waiter of this.#waiters) waiter.fail(told)
    this.#waiters.clear()
  }
}

function missing(lsn: number): Error {
  return new Error(`The records from LSN ${lsn} on went before they were read`)
}
