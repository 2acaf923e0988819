/**
 * An append on its way: what was asked, and who is told. Each is the loglet's listener itself, so
 * that an append makes one object besides its promise, and lets go of the payload once the loglet
 * has taken it.
 */
import assert from 'node:assert/strict'
import type { LogError, LogId } from '../codec/errors.ts'
import { lsnOfOffset, MAX_POSITION, type Lsn, type Offset } from '../codec/offset.ts'
import type { Keys, RecordEncoder } from '../codec/record.ts'
import { expectedOffset, logletOptions, type AppendTerms, type Entry } from './append-options.ts'
import { inLsns } from './errors.ts'
import { requireChain, tailLink } from './log-chain.ts'
import type { AppendListener, LogletRecord } from './loglet.ts'
import type { LogletProvider, ManyListener } from './loglet-provider.ts'

type Resolve<T> = (value: T) => void
type Reject = (error: unknown) => void

export interface AppendRequest {
  readonly terms: AppendTerms | undefined
  /** Encodes the payloads, for a submission that comes later; returns their bytes. */
  capture(encoder: RecordEncoder): number
  /** Gives it to the last link of its log. Throws UNKNOWN_LOG. */
  submit(provider: LogletProvider): void
  /** Tells that it was never submitted. */
  reject(error: unknown): void
}

function toLsn(baseLsn: Lsn, offset: Offset): Lsn {
  const lsn = lsnOfOffset(baseLsn, offset)
  assert.ok(lsn <= MAX_POSITION, 'a provider gives no offset whose LSN would be rounded')
  return lsn
}

/** One record. */
export class SingleAppend implements AppendRequest, AppendListener {
  readonly terms: AppendTerms | undefined
  readonly #logId: LogId
  #payload: unknown
  #keys: Keys | undefined
  readonly #resolve: Resolve<Lsn>
  readonly #reject: Reject
  #baseLsn: Lsn = 0

  constructor(
    logId: LogId,
    payload: unknown,
    keys: Keys | undefined,
    terms: AppendTerms | undefined,
    resolve: Resolve<Lsn>,
    reject: Reject,
  ) {
    this.#logId = logId
    this.#payload = payload
    this.#keys = keys
    this.terms = terms
    this.#resolve = resolve
    this.#reject = reject
  }

  capture(encoder: RecordEncoder): number {
    const record = encoder.encode(this.#payload, this.#keys)
    this.#payload = record
    this.#keys = undefined
    return record.body.length
  }

  submit(provider: LogletProvider): void {
    const link = tailLink(requireChain(provider.chains, this.#logId))
    const payload = this.#payload
    this.#payload = undefined
    this.#baseLsn = link.baseLsn
    link.loglet.append(payload, this.#keys, logletOptions(this.terms, link), this)
  }

  reject(error: unknown): void {
    this.#reject(error)
  }

  committed(first: Offset): void {
    this.#resolve(toLsn(this.#baseLsn, first))
  }

  failed(error: LogError): void {
    this.#reject(inLsns(error, this.#baseLsn, this.terms?.expectedTail))
  }
}

/** Records of one log, all or none. */
export class BatchAppend implements AppendRequest, AppendListener {
  readonly terms: AppendTerms | undefined
  readonly #logId: LogId
  #records: readonly LogletRecord[]
  readonly #resolve: Resolve<Lsn>
  readonly #reject: Reject
  #baseLsn: Lsn = 0

  constructor(
    logId: LogId,
    records: readonly LogletRecord[],
    terms: AppendTerms | undefined,
    resolve: Resolve<Lsn>,
    reject: Reject,
  ) {
    this.#logId = logId
    this.#records = records
    this.terms = terms
    this.#resolve = resolve
    this.#reject = reject
  }

  capture(encoder: RecordEncoder): number {
    let bytes = 0
    this.#records = this.#records.map(({ payload, keys }) => {
      const record = encoder.encode(payload, keys)
      bytes += record.body.length
      return { payload: record, keys: undefined }
    })
    return bytes
  }

  submit(provider: LogletProvider): void {
    const link = tailLink(requireChain(provider.chains, this.#logId))
    const records = this.#records
    this.#records = []
    this.#baseLsn = link.baseLsn
    link.loglet.appendBatch(records, logletOptions(this.terms, link), this)
  }

  reject(error: unknown): void {
    this.#reject(error)
  }

  committed(first: Offset): void {
    this.#resolve(toLsn(this.#baseLsn, first))
  }

  failed(error: LogError): void {
    this.#reject(inLsns(error, this.#baseLsn, this.terms?.expectedTail))
  }
}

/** Records of any logs, all or none. */
export class ManyAppend implements AppendRequest, ManyListener {
  readonly terms: AppendTerms | undefined = undefined
  #entries: readonly Entry[]
  readonly #resolve: Resolve<Lsn[]>
  readonly #reject: Reject
  #bases: readonly Lsn[] = []
  #expected: readonly (Lsn | undefined)[] = []

  constructor(entries: readonly Entry[], resolve: Resolve<Lsn[]>, reject: Reject) {
    this.#entries = entries
    this.#resolve = resolve
    this.#reject = reject
  }

  capture(encoder: RecordEncoder): number {
    let bytes = 0
    this.#entries = this.#entries.map(({ logId, payload, keys, expectedTail }) => {
      const record = encoder.encode(payload, keys)
      bytes += record.body.length
      return { logId, payload: record, expectedTail }
    })
    return bytes
  }

  submit(provider: LogletProvider): void {
    const entries = this.#entries
    const links = entries.map(({ logId }) => tailLink(requireChain(provider.chains, logId)))
    const records = entries.map(({ payload, keys, expectedTail }, i) => {
      const link = links[i] as (typeof links)[number]
      return {
        loglet: link.loglet,
        payload,
        keys,
        expectedTail: expectedOffset(link, expectedTail),
      }
    })
    this.#entries = []
    this.#bases = links.map(({ baseLsn }) => baseLsn)
    this.#expected = entries.map(({ expectedTail }) => expectedTail)
    provider.appendMany(records, undefined, this)
  }

  reject(error: unknown): void {
    this.#reject(error)
  }

  committed(offsets: Offset[]): void {
    this.#resolve(offsets.map((offset, i) => toLsn(this.#bases[i] as Lsn, offset)))
  }

  failed(error: LogError, at: number | undefined): void {
    const inLog =
      at === undefined ? error : inLsns(error, this.#bases[at] as Lsn, this.#expected[at])
    this.#reject(inLog)
  }
}
