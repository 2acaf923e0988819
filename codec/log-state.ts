/**
 * The state of a store as its frames make it: the registry of logs and, per loglet, tail, trim
 * point, seal, time and losses. Its merge rules are the only ones: release pointer and trim point
 * move forward only, the first seal wins, a loglet id is never used twice.
 */
import type { LogId } from './errors.ts'
import { MAX_LOG_ID_BYTES, MAX_LOGLET_ID } from './format.ts'
import { pack, unpack } from './msgpack.ts'
import { INVALID_POSITION, MAX_POSITION, type Lsn, type Offset } from './offset.ts'

/** Why a loglet was sealed; the reason may be unknown. */
export interface Seal {
  readonly reason: string | undefined
}

/** Records that were lost to damage: a range of offsets, both ends inclusive. */
export interface LossGap {
  readonly from: Offset
  readonly to: Offset
}

/** The state of one loglet. */
export interface LogletFacts {
  readonly id: number
  /** The first unwritten offset; the release pointer is the one before it. */
  tail: Offset
  trimPoint: Offset
  seal: Seal | undefined
  /** The time of the newest record, in milliseconds since the epoch, rounded up. */
  createdAtMs: number
  gaps: readonly LossGap[]
}

/** One link of a log's chain. */
export interface Link {
  readonly loglet: number
  readonly baseLsn: Lsn
}

/** A log and its chain, oldest link first. */
export interface LogFacts {
  readonly logId: LogId
  readonly links: readonly Link[]
}

/** Everything that a snapshot holds. */
export interface StoreFacts {
  /** The next loglet to be made gets this id, or a greater one. */
  nextLogletId: number
  /** The oldest segment that is still needed. */
  firstSegment: number
  readonly logs: Map<LogId, LogFacts>
  readonly loglets: Map<number, LogletFacts>
  /** Set in the snapshot of a segment whose start was lost and made anew: it knows nothing. */
  readonly isPartial?: boolean
}

/** The state of a store in which nothing has happened. */
export function emptyFacts(): StoreFacts {
  return { nextLogletId: 1, firstSegment: 1, logs: new Map(), loglets: new Map() }
}

/** The state of a loglet in which nothing has happened. */
export function emptyLoglet(id: number): LogletFacts {
  return {
    id,
    tail: INVALID_POSITION + 1,
    trimPoint: INVALID_POSITION,
    seal: undefined,
    createdAtMs: 0,
    gaps: [],
  }
}

/** The trim point that a request leads to: clamped to the last record, never moved back. */
export function effectiveTrimPoint(
  facts: Pick<LogletFacts, 'tail' | 'trimPoint'>,
  upTo: Offset,
): Offset {
  return Math.max(facts.trimPoint, Math.min(upTo, facts.tail - 1))
}

// What follows is applied to facts by recovery and by followers, frame by frame. Each returns false
// if the frame contradicts the state: its bytes check, but they can't belong here.

export function applyRecord(
  facts: LogletFacts | undefined,
  offset: Offset,
  createdAtMs: number,
): boolean {
  if (facts?.tail !== offset || facts.seal !== undefined || offset > MAX_POSITION) return false
  facts.tail = offset + 1
  facts.createdAtMs = Math.max(facts.createdAtMs, createdAtMs)
  return true
}

export function applyTrim(facts: LogletFacts | undefined, trimPoint: Offset): boolean {
  if (facts === undefined || trimPoint >= facts.tail) return false
  facts.trimPoint = Math.max(facts.trimPoint, trimPoint)
  return true
}

export function applySeal(facts: LogletFacts | undefined, tail: Offset, seal: Seal): boolean {
  if (facts?.tail !== tail) return false
  facts.seal ??= seal
  return true
}

export function applyCreate(facts: StoreFacts, logId: LogId, link: Link): boolean {
  if (facts.logs.has(logId) || link.loglet < facts.nextLogletId) return false
  if (!isLogId(logId) || link.loglet > MAX_LOGLET_ID || !isPosition(link.baseLsn)) return false
  facts.nextLogletId = link.loglet + 1
  facts.logs.set(logId, { logId, links: [link] })
  facts.loglets.set(link.loglet, emptyLoglet(link.loglet))
  return true
}

export function applyDelete(facts: StoreFacts, logId: LogId): boolean {
  const log = facts.logs.get(logId)
  if (log === undefined) return false
  facts.logs.delete(logId)
  for (const link of log.links) facts.loglets.delete(link.loglet)
  return true
}

export function applyDeadSegments(facts: StoreFacts, last: number, current: number): boolean {
  if (last >= current) return false
  facts.firstSegment = Math.max(facts.firstSegment, last + 1)
  return true
}

/** A loss moves the tail past what was lost, so that no offset is used twice. */
export function applyLossGap(facts: LogletFacts | undefined, gap: LossGap): boolean {
  if (facts === undefined || gap.from > gap.to || !isPosition(gap.to)) return false
  if (!facts.gaps.some((known) => known.from === gap.from && known.to === gap.to)) {
    facts.gaps = [...facts.gaps, gap].sort((a, b) => a.from - b.from)
  }
  facts.tail = Math.max(facts.tail, gap.to + 1)
  return true
}

/** Whether a string can name a log. */
export function isLogId(value: unknown): value is LogId {
  if (typeof value !== 'string' || value === '' || !value.isWellFormed()) return false
  return Buffer.byteLength(value) <= MAX_LOG_ID_BYTES
}

function isPosition(value: unknown): value is number {
  return isCount(value) && value >= 1 && value <= MAX_POSITION
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

// Upper bounds of what an encoded snapshot takes, to keep room for it without encoding it.
const SNAPSHOT_BASE_BYTES = 64
const LINK_BYTES = 20
const LOGLET_BYTES = 48
const GAP_BYTES = 20

/** At most what a log and its loglets take in a snapshot, without seals and gaps. */
export function logBytesBound({ logId, links }: LogFacts): number {
  return Buffer.byteLength(logId) + 12 + links.length * (LINK_BYTES + LOGLET_BYTES)
}

/** At most what a seal takes in a snapshot. */
export function sealBytesBound(seal: Seal | undefined): number {
  return Buffer.byteLength(seal?.reason ?? '') + 8
}

/** At most what a loglet's seal and gaps take in a snapshot. */
export function logletBytesBound({ seal, gaps }: Pick<LogletFacts, 'seal' | 'gaps'>): number {
  return gaps.length * GAP_BYTES + (seal === undefined ? 0 : sealBytesBound(seal))
}

/** At most what an encoded snapshot takes. */
export function snapshotBytesBound(facts: StoreFacts): number {
  let bytes = SNAPSHOT_BASE_BYTES
  for (const log of facts.logs.values()) bytes += logBytesBound(log)
  for (const loglet of facts.loglets.values()) bytes += logletBytesBound(loglet)
  return bytes
}

/** Encodes a snapshot: one msgpack array. */
export function encodeSnapshot(facts: StoreFacts): Uint8Array {
  return pack(snapshotFields(facts))
}

/**
 * Encodes a snapshot at exactly the given length, to stand in for one that was lost; undefined if
 * it doesn't fit.
 */
export function encodeSnapshotOfLength(facts: StoreFacts, length: number): Uint8Array | undefined {
  const exact = encodeSnapshot(facts)
  if (exact.length === length && facts.isPartial !== true) return exact
  for (let padding = Math.max(0, length - exact.length - 8); padding <= length; padding++) {
    const fields = [...snapshotFields(facts), new Uint8Array(padding), facts.isPartial === true]
    const bytes = pack(fields)
    if (bytes.length === length) return bytes
    if (bytes.length > length) return undefined
  }
  return undefined
}

function snapshotFields(facts: StoreFacts): unknown[] {
  const logs = [...facts.logs.values()].map(({ logId, links }) => [
    logId,
    links.map(({ loglet, baseLsn }) => [loglet, baseLsn]),
  ])
  const loglets = [...facts.loglets.values()].map((loglet) => [
    loglet.id,
    loglet.tail,
    loglet.trimPoint,
    loglet.createdAtMs,
    loglet.seal === undefined ? null : [loglet.seal.reason ?? null],
    loglet.gaps.map(({ from, to }) => [from, to]),
  ])
  return [facts.nextLogletId, facts.firstSegment, logs, loglets]
}

/** Decodes a snapshot whose checksum was checked; undefined if it is not one all the same. */
export function decodeSnapshot(bytes: Uint8Array): StoreFacts | undefined {
  try {
    return readSnapshot(unpack(bytes, 0, bytes.length))
  } catch {
    // msgpackr throws what it likes for bytes that are not msgpack; all of it means the same here.
    return undefined
  }
}

function readSnapshot(value: unknown): StoreFacts | undefined {
  if (!Array.isArray(value)) return undefined
  const [nextLogletId, firstSegment, logs, loglets, , partial] = value as unknown[]
  if (!isCount(nextLogletId) || !isPosition(firstSegment)) return undefined
  if (!Array.isArray(logs) || !Array.isArray(loglets)) return undefined
  const isPartial = partial === true
  const known = { logs: new Map<LogId, LogFacts>(), loglets: new Map<number, LogletFacts>() }
  const facts: StoreFacts = { nextLogletId, firstSegment, isPartial, ...known }
  if (!loglets.every((loglet) => readLoglet(facts, loglet))) return undefined
  return logs.every((log) => readLog(facts, log)) ? facts : undefined
}

function readLoglet(facts: StoreFacts, value: unknown): boolean {
  if (!Array.isArray(value)) return false
  const [id, tail, trimPoint, createdAtMs, seal, gaps] = value as unknown[]
  if (!isPosition(id) || id >= facts.nextLogletId || facts.loglets.has(id)) return false
  if (!isCount(tail) || tail < 1 || !isCount(trimPoint) || trimPoint >= tail) return false
  if (!isCount(createdAtMs) || !Array.isArray(gaps)) return false
  const lost = (gaps as unknown[]).map(readGap)
  const sealed = readSeal(seal)
  if (sealed === 'invalid' || lost.includes(undefined)) return false
  const known = lost as LossGap[]
  facts.loglets.set(id, { id, tail, trimPoint, seal: sealed, createdAtMs, gaps: known })
  return true
}

function readSeal(value: unknown): Seal | undefined | 'invalid' {
  if (value === null) return undefined
  const reason: unknown = Array.isArray(value) ? value[0] : 0
  if (reason === null) return { reason: undefined }
  return typeof reason === 'string' ? { reason } : 'invalid'
}

function readGap(value: unknown): LossGap | undefined {
  if (!Array.isArray(value)) return undefined
  const [from, to] = value as unknown[]
  return isPosition(from) && isPosition(to) && from <= to ? { from, to } : undefined
}

function readLog(facts: StoreFacts, value: unknown): boolean {
  if (!Array.isArray(value)) return false
  const [logId, links] = value as unknown[]
  if (!isLogId(logId) || facts.logs.has(logId) || !Array.isArray(links)) return false
  const chain = (links as unknown[]).map((link) => readLink(facts, link))
  if (chain.length === 0 || chain.includes(undefined)) return false
  facts.logs.set(logId, { logId, links: chain as Link[] })
  return true
}

function readLink(facts: StoreFacts, value: unknown): Link | undefined {
  if (!Array.isArray(value)) return undefined
  const [loglet, baseLsn] = value as unknown[]
  if (!isPosition(loglet) || !facts.loglets.has(loglet) || !isPosition(baseLsn)) return undefined
  return { loglet, baseLsn }
}
