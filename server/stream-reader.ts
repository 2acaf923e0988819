/**
 * Reads messages of a stream from a place on: a bounded stretch, through the log of the stream and
 * those that it inherits from.
 */
import type { Bifrost, GapRecord, LogRecord } from '../index.ts'
import { HttpError } from './http-error.ts'
import type { StreamOffset } from './offset.ts'
import { decodeRecord } from './stream-record.ts'

/** A stretch of a stream that one log holds. */
export interface Span {
  readonly logId: string
  /** The stream's LSN before the log's first record. */
  readonly baseLsn: number
  /** LSNs in the log; `to` is inclusive, and undefined for the log that the stream ends in. */
  readonly from: number
  readonly to: number | undefined
}

export interface Message {
  readonly lsn: number
  readonly data: Uint8Array
}

export interface Stretch {
  readonly messages: readonly Message[]
  /** The place after the last message, where there is one. */
  readonly end: StreamOffset | undefined
  /** Everything up to this LSN of the stream was read. */
  readonly lsn: number
}

export interface ReadLimits {
  /** Where reading stops once this much data was read; one message is read whatever its size. */
  readonly maxBytes: number
  readonly maxMessages: number
}

/** The records that a place needs are gone: reading can go on at `resumeAt`, in LSNs. */
export class GoneError extends HttpError {
  readonly resumeAfter: number

  constructor(kind: GapRecord['kind'], resumeAfter: number) {
    const isTrimmed = kind === 'trim-gap'
    const code = isTrimmed ? 'TRIMMED' : 'DATA_LOSS'
    super(410, code, isTrimmed ? 'The offset was trimmed' : 'The data at the offset was lost')
    this.resumeAfter = resumeAfter
  }
}

/** Reads from the first span on. Throws GoneError if what comes first is gone. */
export async function readStretch(
  bifrost: Bifrost,
  spans: readonly Span[],
  limits: ReadLimits,
): Promise<Stretch> {
  const stretch = new StretchReader(limits)
  for (const span of spans) {
    const { logId, from, to } = span
    const reader = bifrost.createReader(logId, { from, to, follow: false })
    stretch.enter(span)
    for await (const chunk of reader.chunks()) {
      if (!stretch.take(chunk)) return stretch
    }
  }
  return stretch
}

class StretchReader implements Stretch {
  readonly #limits: ReadLimits
  readonly messages: Message[] = []
  end: StreamOffset | undefined
  lsn = 0
  #baseLsn = 0
  #bytes = 0

  constructor(limits: ReadLimits) {
    this.#limits = limits
  }

  enter({ baseLsn, from }: Span): void {
    this.#baseLsn = baseLsn
    this.lsn = baseLsn + from - 1
  }

  /** Whether more is wanted. */
  take(records: readonly LogRecord[]): boolean {
    return records.every((record) => {
      if (record.kind !== 'data') return this.#meet(record)
      const decoded = decodeRecord(record)
      this.lsn = this.#baseLsn + record.lsn
      if (decoded.kind === 'note') return true
      this.messages.push({ lsn: this.lsn, data: decoded.data })
      this.end = { lsn: this.lsn, bytes: decoded.bytes }
      this.#bytes += decoded.data.length
      return this.#bytes < this.#limits.maxBytes && this.messages.length < this.#limits.maxMessages
    })
  }

  /** A gap behind data ends the stretch; the next one starts with it. */
  #meet({ kind, until }: GapRecord): false {
    if (this.messages.length === 0) throw new GoneError(kind, this.#baseLsn + until)
    return false
  }
}
