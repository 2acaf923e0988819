/**
 * Reads on along a log's chain from one position: decoded records, a gap, the tail or the end. One
 * read at a time. It holds nothing between reads but its position and its link.
 */
import { LogError, logError, type LogId } from '../codec/errors.ts'
import { lsnOfOffset, type Offset } from '../codec/offset.ts'
import { decodeRecord, recordMatches } from '../codec/record.ts'
import { invalidLsn } from './errors.ts'
import { linkAfter, linkOf, offsetIn, tailLink, trimPointOf } from './log-chain.ts'
import type { LogDirectory } from './log-directory.ts'
import type { DataRecord, GapRecord } from './log-record.ts'
import type { LogletReadOutcome } from './loglet.ts'
import type { ChainLink } from './loglet-provider.ts'
import { Lsn } from './lsn.ts'
import type { ReaderStart } from './reader-options.ts'

/** What one read gave. */
export type CursorStep =
  /** Perhaps none, when none of those that were read carries a wanted key. */
  | { readonly kind: 'records'; readonly records: DataRecord[] }
  | { readonly kind: 'gap'; readonly gap: GapRecord }
  /** Nothing there yet. */
  | { readonly kind: 'tail' }
  /** Nothing will come. */
  | { readonly kind: 'end' }

export interface CursorOptions {
  readonly start: ReaderStart
  /** The last LSN to read; Infinity for no end. */
  readonly to: number
  readonly keys: ReadonlySet<string> | undefined
  readonly readAheadBytes: number
}

const TAIL: CursorStep = Object.freeze({ kind: 'tail' })
const END: CursorStep = Object.freeze({ kind: 'end' })

export class LogCursor {
  readonly #logs: LogDirectory
  readonly #logId: LogId
  readonly #options: CursorOptions
  #links: readonly ChainLink[] | undefined
  #link: ChainLink | undefined
  #start: Lsn
  #position: number

  /** Settles at once where it starts, if the log can be found at once. */
  constructor(logs: LogDirectory, logId: LogId, options: CursorOptions) {
    this.#logs = logs
    this.#logId = logId
    this.#options = options
    this.#start = 'from' in options.start ? options.start.from : Lsn.INVALID
    this.#position = this.#start
    this.#tryFind()
  }

  /** Where it started; `Lsn.INVALID` while it counts from a tail that isn't known yet. */
  get start(): Lsn {
    return this.#start
  }

  /** Whether everything up to `to` was read. */
  get isPastEnd(): boolean {
    return this.#position > this.#options.to
  }

  /** Why nothing at all can be read any more: the log was deleted, or the store closed. */
  get refusal(): LogError | undefined {
    const ended = this.#link?.loglet.state.ended
    return ended === undefined || LogError.is(ended, 'STORE_FAILED') ? undefined : ended
  }

  #tryFind(): void {
    try {
      const links = this.#logs.find(this.#logId)
      if (links !== undefined) this.#enter(links)
    } catch (error) {
      // The first read says so: making a reader throws for its options only.
      if (!(error instanceof LogError)) throw error
    }
  }

  #enter(links: readonly ChainLink[]): ChainLink {
    const { start } = this.#options
    if ('last' in start && this.#links === undefined) {
      const { loglet, baseLsn } = tailLink(links)
      const tail = lsnOfOffset(baseLsn, loglet.state.tail)
      this.#start = Math.max(Lsn.OLDEST, tail - start.last)
      this.#position = this.#start
    }
    this.#links = links
    this.#link = linkOf(links, this.#position)
    return this.#link
  }

  /** Reads on. Throws what the log or the disk throws; reading again goes on at the same place. */
  async read(): Promise<CursorStep> {
    const link = this.#link ?? (await this.#logs.onLog(this.#logId, (links) => this.#enter(links)))
    const trimPoint = trimPointOf(this.#links ?? [link])
    if (this.#position <= trimPoint) return this.#gap('trim-gap', trimPoint)
    return this.#readLink(link)
  }

  async #readLink(link: ChainLink): Promise<CursorStep> {
    const records: DataRecord[] = []
    const from = this.#position
    let outcome: LogletReadOutcome
    try {
      outcome = await this.#visit(link, records)
    } catch (error) {
      // What was read before the failure is given out first; the next read meets it again.
      if (this.#position === from) throw error
      return { kind: 'records', records }
    }
    switch (outcome.kind) {
      case 'data':
        return { kind: 'records', records }
      case 'tail':
        return this.#atTail(link)
      case 'end':
        return this.#atEnd(link)
      default:
        return this.#gap(outcome.kind, lsnOfOffset(link.baseLsn, outcome.until))
    }
  }

  #visit(link: ChainLink, records: DataRecord[]): Promise<LogletReadOutcome> {
    const { to, readAheadBytes } = this.#options
    return link.loglet.read({
      from: offsetIn(link, this.#position),
      to: offsetIn(link, Math.min(to, Number.MAX_SAFE_INTEGER)),
      maxBytes: readAheadBytes,
      visit: (offset, bytes, start, end) => {
        const lsn = lsnOfOffset(link.baseLsn, offset)
        const record = this.#decodeWanted(lsn, bytes, start, end)
        if (record !== undefined) records.push(record)
        this.#position = lsn + 1
        return true
      },
    })
  }

  /** The record, unless the reader asked for other keys. */
  #decodeWanted(lsn: Lsn, bytes: Uint8Array, start: number, end: number): DataRecord | undefined {
    const wanted = this.#options.keys
    try {
      if (wanted !== undefined && !recordMatches(bytes, start, end, wanted)) return undefined
      const { payload, createdAt, createdAtMs, keys } = decodeRecord(bytes, start, end)
      return { kind: 'data', lsn, payload, createdAt, createdAtMs, keys }
    } catch (cause) {
      throw this.#withStake(cause, lsn)
    }
  }

  /** The codec knows neither log nor LSN. */
  #withStake(cause: unknown, lsn: Lsn): unknown {
    if (!LogError.is(cause, 'CORRUPT')) return cause
    const { file, position, label } = cause
    const logs = [{ logId: this.#logId, from: lsn, to: lsn }]
    const message = `${cause.message}: ${JSON.stringify(this.#logId)} at ${lsn}`
    return logError('CORRUPT', message, { cause, fields: { file, position, label, logs } })
  }

  /** Moves past a gap. A trim that went on meanwhile makes the gap longer, not two of it. */
  #gap(kind: GapRecord['kind'], seenUntil: Lsn): CursorStep {
    const lsn = this.#position
    const whole = kind === 'trim-gap' ? Math.max(seenUntil, this.#trimPointNow()) : seenUntil
    const until = Math.min(this.#options.to, whole)
    this.#position = until + 1
    return { kind: 'gap', gap: { kind, lsn, until } }
  }

  /** The trim point of the whole log, links that were added since included. */
  #trimPointNow(): Lsn {
    const links = this.#logs.find(this.#logId) ?? []
    const isSameLog = links.some(({ loglet }) => loglet === this.#link?.loglet)
    return isSameLog ? trimPointOf(links) : Lsn.INVALID
  }

  /** A store that failed has nothing more than what could be read. */
  #atTail({ loglet }: ChainLink): CursorStep {
    const { ended } = loglet.state
    if (ended !== undefined) throw ended
    return TAIL
  }

  #atEnd(link: ChainLink): CursorStep {
    const links = this.#logs.find(this.#logId) ?? [link]
    const next = linkAfter(links, link.loglet, this.#logId)
    if (next !== undefined) {
      this.#enter(links)
      return NOTHING
    }
    const tail = lsnOfOffset(link.baseLsn, link.loglet.state.tail)
    if (this.#position <= tail) return END
    throw invalidLsn(`${this.#position} lies past ${tail}, where the log is sealed`)
  }

  /** Calls back when there may be something to read; returns how to stop that. */
  watch(listener: () => void): () => void {
    const link = this.#link
    if (link === undefined) return () => undefined
    const tell = (): void => {
      if (this.#isWorthReading(link)) listener()
    }
    const stop = link.loglet.watch(tell)
    // What changed since the read was not told.
    tell()
    return stop
  }

  #isWorthReading(link: ChainLink): boolean {
    const { tail, sealed, ended } = link.loglet.state
    const position: Offset = offsetIn(link, this.#position)
    return tail > position || sealed || ended !== undefined
  }
}

const NOTHING: CursorStep = Object.freeze({ kind: 'records', records: [] })
