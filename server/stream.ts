/**
 * One stream: its entry, the end of its log as far as that is durable, and those who wait there.
 * Nothing is read before somebody asks.
 */
import type { Bifrost } from '../index.ts'
import type { HandlerLimits } from './options.ts'
import { START, type StreamOffset } from './offset.ts'
import { streamLogId, type StreamEntry } from './stream-entry.ts'
import { readStretch, type Span, type Stretch } from './stream-reader.ts'
import { decodeRecord } from './stream-record.ts'
import { readTail, type StreamTail } from './stream-tail.ts'
import { TailHub, type Followed } from './tail-hub.ts'

export class Stream implements Followed {
  readonly bifrost: Bifrost
  readonly limits: HandlerLimits
  readonly logId: string
  /** What this is a fork of. */
  readonly source: Stream | undefined
  readonly hub: TailHub
  #entry: StreamEntry
  #tail: StreamTail | undefined
  #readingTail: Promise<StreamTail> | undefined
  #earliest: Promise<StreamOffset> | undefined
  /** When it was last read or written, for its time to live. */
  #usedAtMs: number = Date.now()
  /** The forks that read through it. */
  forks = 0
  /** Settles when a delete that is under way has succeeded or failed. */
  deleting: Promise<void> | undefined

  constructor(bifrost: Bifrost, limits: HandlerLimits, entry: StreamEntry, source?: Stream) {
    this.bifrost = bifrost
    this.limits = limits
    this.#entry = entry
    this.source = source
    this.logId = streamLogId(entry)
    this.hub = new TailHub(this)
  }

  get entry(): StreamEntry {
    return this.#entry
  }

  /** Where the stream's own log starts in it. */
  get base(): StreamOffset {
    return this.#entry.fork?.base ?? START
  }

  /** The durable end of the log, if it was read before. */
  get knownTail(): StreamTail | undefined {
    return this.#tail
  }

  /** The durable end of the log. */
  async tail(): Promise<StreamTail> {
    if (this.#tail !== undefined) return this.#tail
    this.#readingTail ??= readTail(this.bifrost, this.logId, this.base).finally(() => {
      this.#readingTail = undefined
    })
    this.reached(await this.#readingTail)
    return this.tail()
  }

  /** The log is durable up to here. */
  reached(tail: StreamTail): void {
    if (this.#tail === undefined || tail.next >= this.#tail.next) this.#tail = tail
  }

  /** The entry as it is now durable. */
  changed(entry: StreamEntry): void {
    const wasClosed = this.#entry.isClosed
    this.#entry = entry
    if (entry.isClosed && !wasClosed) this.hub.closed()
  }

  /** Whether nothing will come after a place, given as an LSN. */
  isEnd(lsn: number): boolean {
    return this.#entry.isClosed && this.isUpToDate(lsn)
  }

  /** Whether there is no data after a place, given as an LSN. The tail must have been read. */
  isUpToDate(lsn: number): boolean {
    return this.#tail !== undefined && lsn >= this.#tail.offset.lsn
  }

  /** It was read or written. */
  touch(): void {
    this.#usedAtMs = Date.now()
  }

  isExpired(nowMs: number): boolean {
    const { ttlSeconds, expiresAtMs } = this.#entry
    if (expiresAtMs !== undefined && nowMs >= expiresAtMs) return true
    if (ttlSeconds === undefined || this.hub.isWatched) return false
    return nowMs >= this.#usedAtMs + ttlSeconds * 1000
  }

  /** The first place from which everything is still there. */
  earliest(): Promise<StreamOffset> {
    this.#earliest ??= this.#findEarliest().catch((error: unknown) => {
      this.#earliest = undefined
      throw error
    })
    return this.#earliest
  }

  /** It was trimmed. */
  trimmed(): void {
    this.#earliest = undefined
  }

  async #findEarliest(): Promise<StreamOffset> {
    const trimPoint = await this.bifrost.getTrimPoint(this.logId)
    if (trimPoint > 0) return this.placeAfter(this.base.lsn + trimPoint)
    return this.source === undefined ? START : this.source.earliest()
  }

  /** The place after an LSN, in bytes too, as the next record tells. */
  async placeAfter(lsn: number): Promise<StreamOffset> {
    const next = await this.bifrost.readNextSingleOpt(this.logId, lsn - this.base.lsn)
    if (next?.kind !== 'data') return { lsn, bytes: (await this.tail()).offset.bytes }
    const record = decodeRecord(next)
    const bytes = record.kind === 'data' ? record.bytes - record.data.length : record.bytes
    return { lsn, bytes }
  }

  /** Reads what comes after a place, given as an LSN. */
  read(after: number): Promise<Stretch> {
    const { maxReadBytes: maxBytes, maxMessages } = this.limits
    return readStretch(this.bifrost, this.spans(after, undefined), { maxBytes, maxMessages })
  }

  /** The logs that hold what comes after an LSN, up to `to`. */
  spans(after: number, to: number | undefined): Span[] {
    const baseLsn = this.base.lsn
    const seam = Math.min(baseLsn, to ?? baseLsn)
    const inherited = after < seam ? (this.source?.spans(after, seam) ?? []) : []
    const from = Math.max(after - baseLsn, 0) + 1
    const own = { logId: this.logId, baseLsn, from, to: to === undefined ? to : to - baseLsn }
    return own.to !== undefined && own.to < from ? inherited : [...inherited, own]
  }
}
