/**
 * A client that reads a stream as Server-Sent Events. It reads up to the end by itself, in bounded
 * stretches and never faster than its connection takes them, then waits at the hub. A client that
 * doesn't keep up with the hub goes back to reading; one that takes nothing at all is cut off.
 *
 *     reading ──(at the end)──▶ waiting ──(connection is full)──▶ draining ──▶ reading …
 *
 * Invariant: between two events nothing is in memory for the client but what its connection holds.
 */
import type { Logger } from '../index.ts'
import { formatCursor, leastCursor } from './cursor.ts'
import { eventControl, eventData, HEARTBEAT } from './events.ts'
import type { LiveBody, LiveConnection } from './exchange.ts'
import type { LiveReader, LiveReaders } from './live-readers.ts'
import { formatOffset, type StreamOffset } from './offset.ts'
import type { Stretch } from './stream-reader.ts'
import type { Stream } from './stream.ts'
import type { TailWaiter } from './tail-hub.ts'
import type { TailNews } from './tail-news.ts'

export interface EventStreamStart {
  readonly from: StreamOffset
  /** What was read from there already: whether that can be read decides on the reply's status. */
  readonly first: Stretch | undefined
  /** The cursor that the client sent. */
  readonly cursor: string | undefined
}

export class EventStream implements LiveBody, LiveReader, TailWaiter {
  readonly #stream: Stream
  readonly #readers: LiveReaders
  readonly #logger: Logger
  readonly #leastCursor: number
  #first: Stretch | undefined
  #connection: LiveConnection | undefined
  #offset: StreamOffset
  #lsn: number
  #isFull = false
  #isOver = false
  readonly #startedAtMs: number = performance.now()
  /** When something was last written, or taken by the client. */
  #movedAtMs: number = performance.now()
  #drained: (() => void) | undefined

  /** Joins `readers`, which may refuse it. The stream's tail must have been read. */
  constructor(stream: Stream, readers: LiveReaders, logger: Logger, start: EventStreamStart) {
    this.#stream = stream
    this.#readers = readers
    this.#logger = logger
    this.#leastCursor = leastCursor(start.cursor)
    this.#first = start.first
    this.#offset = start.from
    this.#lsn = start.from.lsn
    readers.add(this)
  }

  get lsn(): number {
    return this.#lsn
  }

  start(connection: LiveConnection): void {
    this.#connection = connection
    if (this.#isOver) {
      connection.end()
      return
    }
    connection.onChange(
      () => this.#becomeDrained(),
      () => this.#leave(),
    )
    if (this.#first !== undefined) this.#take(this.#first)
    else this.#writeControl()
    this.#first = undefined
    void this.#readOn()
  }

  /** Reads up to the end of the stream, and waits there. Never rejects. */
  async #readOn(): Promise<void> {
    try {
      while (!this.#isOver) {
        if (this.#isFull) await this.#untilDrained()
        else if (this.#stream.isUpToDate(this.#lsn) && this.#waitAtEnd()) return
        else this.#take(await this.#stream.read(this.#lsn))
      }
    } catch (error) {
      this.fail(error)
    }
  }

  #take({ messages, end, lsn }: Stretch): void {
    this.#lsn = lsn
    if (end !== undefined) this.#deliver(eventData(messages, this.#stream.entry.contentType), end)
  }

  /** False if there is more to read first. */
  #waitAtEnd(): boolean {
    if (!this.#stream.isEnd(this.#lsn)) return this.#stream.hub.join(this)
    this.#writeControl()
    return true
  }

  tell(news: TailNews): void {
    this.#lsn = news.lsn
    if (news.end === undefined) return
    this.#deliver(news.event(this.#stream.entry.contentType), news.end)
    if (this.#isOver || !this.#isFull) return
    this.#stream.hub.leave(this)
    void this.#readOn()
  }

  /** A control event follows each data event, and says where the client is then. */
  #deliver(event: Uint8Array, end: StreamOffset): void {
    this.#write(event)
    this.#offset = end
    this.#writeControl()
  }

  #writeControl(): void {
    const streamNextOffset = formatOffset(this.#offset)
    if (this.#stream.isEnd(this.#lsn)) {
      this.#write(eventControl({ streamNextOffset, upToDate: true, streamClosed: true }))
      this.#finish()
      return
    }
    const streamCursor = formatCursor(this.#leastCursor)
    const control = { streamNextOffset, streamCursor }
    const isUpToDate = this.#stream.isUpToDate(this.#lsn)
    this.#write(eventControl(isUpToDate ? { ...control, upToDate: true } : control))
  }

  #write(bytes: Uint8Array): void {
    if (this.#isOver || this.#connection === undefined) return
    this.#movedAtMs = performance.now()
    if (!this.#connection.write(bytes)) this.#isFull = true
  }

  #untilDrained(): Promise<void> {
    return new Promise((resolve) => (this.#drained = resolve))
  }

  #becomeDrained(): void {
    this.#isFull = false
    this.#movedAtMs = performance.now()
    this.#drained?.()
    this.#drained = undefined
  }

  /** The stream was closed, and the client has everything. */
  end(): void {
    this.#writeControl()
  }

  fail(error: unknown): void {
    const log = this.#stream.logId
    if (error !== undefined) this.#logger.info({ error, log }, 'an event stream ended early')
    this.#finish()
  }

  shutDown(): void {
    this.#finish()
  }

  tick(nowMs: number): void {
    const { eventStreamMs, heartbeatMs, stallMs } = this.#stream.limits
    const quietMs = nowMs - this.#movedAtMs
    if (this.#isFull) {
      if (quietMs >= stallMs) this.#cutOff()
    } else if (nowMs - this.#startedAtMs >= eventStreamMs) {
      this.#finish()
    } else if (quietMs >= heartbeatMs) {
      this.#write(HEARTBEAT)
    }
  }

  #cutOff(): void {
    this.#connection?.destroy()
    this.#leave()
  }

  #finish(): void {
    if (this.#isOver) return
    this.#connection?.end()
    this.#leave()
  }

  /** Lets go of everything. */
  #leave(): void {
    this.#isOver = true
    this.#stream.hub.leave(this)
    this.#readers.remove(this)
    this.#drained?.()
  }
}
