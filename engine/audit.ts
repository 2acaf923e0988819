/**
 * Reads a segment frame by frame, also past damage, and keeps the account of each loglet: which
 * offset comes next. What is skipped was lost, and is charged to the damage before it. Verify
 * reports from it, and repair works from it.
 */
import { GROUP_ALIGNMENT, GROUP_HEADER_BYTES, FRAME_HEADER_BYTES } from '../codec/format.ts'
import { alignUp, isZero } from '../codec/bytes.ts'
import type { LogRange } from '../codec/errors.ts'
import { FRAME_KIND } from '../codec/format.ts'
import { decodeFrame, frameEnd, type Frame } from '../codec/frame.ts'
import { decodeGroupHeader, framesCheck, type GroupHeader } from '../codec/group.ts'
import type { LogFacts, StoreFacts } from '../codec/log-state.ts'
import { lsnOfOffset, OLDEST_POSITION, type Lsn, type Offset } from '../codec/offset.ts'
import type { Predecessor } from './group-scanner.ts'
import type { RecoveryLabel } from './metrics.ts'
import { bodyOf } from './replay.ts'

/** Something that doesn't check, and the records that it costs. */
export interface Damage {
  readonly label: RecoveryLabel
  readonly segment: number
  /** The stretch of bytes: from here to before `end`. */
  readonly position: number
  end: number
  readonly message: string
  /** Lost offsets per loglet, filled in as later frames show what is missing. */
  readonly lost: Map<number, { readonly from: Offset; readonly to: Offset }[]>
}

/** The account of all loglets, over all segments. */
export class Ledger {
  readonly #damages: Damage[] = []
  /** Damage that is known only because records are missing: a loss on record explains it. */
  readonly #inferred = new Set<Damage>()
  groups = 0
  frames = 0
  bytes = 0
  /** The next offset of each loglet. */
  readonly #next = new Map<number, Offset>()
  readonly #logs = new Map<number, { readonly logId: string; readonly baseLsn: Lsn }>()
  readonly #trimPoints = new Map<number, Offset>()

  /** A log is known: its name and where its loglets stand in it. */
  name({ logId, links }: LogFacts): void {
    for (const { loglet, baseLsn } of links) this.#logs.set(loglet, { logId, baseLsn })
  }

  nameOf(loglet: number): string | undefined {
    return this.#logs.get(loglet)?.logId
  }

  damage(label: RecoveryLabel, segment: number, position: number, message: string): Damage {
    const found = { label, segment, position, end: position, message, lost: new Map() }
    this.#damages.push(found)
    return found
  }

  /** Damage that was seen, rather than inferred from what is missing. */
  get certainDamages(): readonly Damage[] {
    return this.#damages.filter((damage) => !this.#inferred.has(damage))
  }

  /** All offsets that are lost, without what was trimmed anyway, in order. */
  losses(): { readonly loglet: number; readonly from: Offset; readonly to: Offset }[] {
    return this.#damages.flatMap((damage) => this.#lossesOf(damage))
  }

  #lossesOf({ lost }: Damage): { loglet: number; from: Offset; to: Offset }[] {
    return [...lost].flatMap(([loglet, ranges]) =>
      ranges
        .flatMap((range) => without(range, 1, this.#trimPoints.get(loglet) ?? 0))
        .map(({ from, to }) => ({ loglet, from, to })),
    )
  }

  /** How much damage was found so far. */
  get count(): number {
    return this.#damages.length
  }

  /** All damage so far, without what a loss on record explains. */
  get damages(): readonly Damage[] {
    return this.#damages.filter((damage) => {
      return !this.#inferred.has(damage) || this.#lossesOf(damage).length > 0
    })
  }

  /** The damage to which what is missing at a place is charged. */
  #blame(segment: number, position: number): Damage {
    const last = this.#damages.at(-1)
    if (last !== undefined) return last
    const inferred = this.damage('R4', segment, position, 'records are missing before here')
    this.#inferred.add(inferred)
    return inferred
  }

  /** Whether the last damage reaches up to a position of a segment. */
  endsWithDamage(segment: number, position: number): boolean {
    const last = this.#damages.at(-1)
    return last?.segment === segment && last.end === position
  }

  /** The state at the start of a segment: everything below its tails was there. */
  snapshot(facts: StoreFacts, segment: number, isFirst: boolean): void {
    for (const log of facts.logs.values()) this.name(log)
    for (const { id, tail, trimPoint } of facts.loglets.values()) {
      this.trim(id, trimPoint)
      if (isFirst) this.#next.set(id, tail)
      else this.reach(id, tail, segment, 0)
    }
  }

  trim(loglet: number, trimPoint: Offset): void {
    const known = this.#trimPoints.get(loglet) ?? 0
    this.#trimPoints.set(loglet, Math.max(known, trimPoint))
  }

  next(loglet: number): Offset {
    return this.#next.get(loglet) ?? OLDEST_POSITION
  }

  /** A loss that is on record already: nothing of it is charged again. */
  knownLoss(loglet: number, from: Offset, to: Offset): void {
    for (const damage of this.#damages) {
      const ranges = damage.lost.get(loglet)
      if (ranges === undefined) continue
      damage.lost.set(
        loglet,
        ranges.flatMap((range) => without(range, from, to)),
      )
    }
    if (this.next(loglet) >= from) this.#next.set(loglet, Math.max(this.next(loglet), to + 1))
  }

  /** A record was seen. */
  see(loglet: number, offset: Offset, segment: number, position: number): void {
    const next = this.next(loglet)
    if (offset < next) {
      const message = `offset ${offset} of loglet ${loglet} comes again`
      this.damage('R4', segment, position, message)
      return
    }
    this.reach(loglet, offset, segment, position)
    this.#next.set(loglet, offset + 1)
  }

  /** Everything below `tail` was there at this place; what was not seen is lost. */
  reach(loglet: number, tail: Offset, segment: number, position: number): void {
    const from = this.next(loglet)
    if (tail <= from) return
    const damage = this.#blame(segment, position)
    const ranges = damage.lost.get(loglet) ?? []
    ranges.push({ from, to: tail - 1 })
    damage.lost.set(loglet, ranges)
    this.#next.set(loglet, tail)
  }

  /** Everything that another account has seen was there. */
  reachAll(other: Ledger, segment: number, position: number): void {
    for (const [loglet, next] of other.#next) this.reach(loglet, next, segment, position)
  }

  /** What a damage costs in the users' terms, without what was trimmed anyway. */
  logsOf(damage: Damage): LogRange[] {
    const ranges: LogRange[] = []
    for (const { loglet, from, to } of this.#lossesOf(damage)) {
      const log = this.#logs.get(loglet)
      if (log === undefined) continue
      const lsn = (offset: Offset): Lsn => lsnOfOffset(log.baseLsn, offset)
      ranges.push({ logId: log.logId, from: lsn(from), to: lsn(to) })
    }
    return ranges
  }
}

function without(
  range: { readonly from: Offset; readonly to: Offset },
  from: Offset,
  to: Offset,
): { from: Offset; to: Offset }[] {
  if (to < range.from || from > range.to) return [{ ...range }]
  const rest: { from: Offset; to: Offset }[] = []
  if (range.from < from) rest.push({ from: range.from, to: from - 1 })
  if (range.to > to) rest.push({ from: to + 1, to: range.to })
  return rest
}

/** The bytes of a segment that are to be audited. */
export interface AuditedBytes {
  readonly segment: number
  readonly bytes: Uint8Array
  readonly seed: number
  /** Where the groups start, and before which position they must all check. */
  readonly start: number
  readonly mustReach: number
  readonly last: Predecessor
}

/** Called for each frame that checks, in order. */
export type VisitFrame = (frame: Frame, position: number) => void

export class SegmentAudit {
  readonly #audited: AuditedBytes
  readonly #ledger: Ledger
  readonly #visit: VisitFrame
  position: number
  last: Predecessor

  constructor(audited: AuditedBytes, ledger: Ledger, visit: VisitFrame = () => undefined) {
    this.#audited = audited
    this.#ledger = ledger
    this.#visit = visit
    this.position = audited.start
    this.last = audited.last
  }

  /** Audits group after group. Stops where nothing more must check, and nothing does. */
  run(): void {
    const { bytes, mustReach } = this.#audited
    while (this.position < bytes.length) {
      const header = this.#headerAt(this.position)
      if (header !== undefined) this.#group(header)
      else {
        const next = this.#nextHeader(this.position + GROUP_ALIGNMENT)
        if (next === undefined && this.position >= mustReach) return
        this.#hole(next ?? Math.max(mustReach, this.position + GROUP_ALIGNMENT))
      }
    }
    if (this.position < mustReach) this.#hole(mustReach)
  }

  #headerAt(position: number): GroupHeader | undefined {
    const header = decodeGroupHeader(this.#audited.bytes, position, this.#audited.seed, position)
    const isAhead = header !== undefined && header.number > this.last.number
    return isAhead ? header : undefined
  }

  #nextHeader(from: number): number | undefined {
    const { bytes } = this.#audited
    for (let at = from; at + GROUP_HEADER_BYTES <= bytes.length; at += GROUP_ALIGNMENT) {
      if (this.#headerAt(at) !== undefined) return at
    }
    return undefined
  }

  /** A stretch in which no group's header checks; frames in it may. */
  #hole(end: number): void {
    const { bytes, segment } = this.#audited
    const from = this.position
    const limit = Math.min(end, bytes.length)
    const damage = this.#ledger.damage('R4', segment, from, "a group's header doesn't check")
    damage.end = end
    this.#frames(from + GROUP_HEADER_BYTES, limit, Number.POSITIVE_INFINITY, undefined)
    this.position = end
  }

  #group(header: GroupHeader): void {
    const { bytes, seed, segment } = this.#audited
    const at = this.position
    const end = at + GROUP_HEADER_BYTES + header.length
    const follows = header.number === this.last.number + 1 && header.previous === this.last.checksum
    const isCharged = this.#ledger.endsWithDamage(segment, at)
    if (!follows && !isCharged) {
      this.#ledger.damage('R6', segment, at, 'a group follows another history')
    }
    this.last = { number: header.number, checksum: header.checksum }
    if (framesCheck(bytes, at, header, seed, at)) this.#whole(header, at, end)
    else this.#torn(header, at, Math.min(end, bytes.length))
    this.position = end
  }

  #whole(header: GroupHeader, at: number, end: number): void {
    const rest = this.#frames(at + GROUP_HEADER_BYTES, end, header.frames, 'R4')
    this.#ledger.groups++
    this.#ledger.bytes += end - at
    if (rest === undefined || alignUp(rest, GROUP_ALIGNMENT) !== end) return
    if (!isZero(this.#audited.bytes, rest, end)) {
      this.#ledger.damage('R4', this.#audited.segment, rest, 'the padding of a group is not zero')
    }
  }

  /** A group past what must check may be a write that was cut short; before, it is damage. */
  #torn(header: GroupHeader, at: number, end: number): void {
    const { segment, mustReach } = this.#audited
    if (at >= mustReach) {
      const torn = this.#ledger.damage('R3', segment, at, 'a group is torn')
      torn.end = end
      return
    }
    const before = this.#ledger.count
    this.#frames(at + GROUP_HEADER_BYTES, end, header.frames, 'R4')
    if (this.#ledger.count > before) return
    const damage = this.#ledger.damage('R4', segment, at, "a group's checksum doesn't check")
    damage.end = end
  }

  /**
   * Visits the frames that check between `from` and `limit`; those that don't are damage of the
   * given label, or part of damage that is on record already. Returns where the last one ended.
   */
  #frames(
    from: number,
    limit: number,
    count: number,
    label: RecoveryLabel | undefined,
  ): number | undefined {
    const { bytes, seed, segment } = this.#audited
    let at: number | undefined = from
    for (let i = 0; i < count && at !== undefined && at + FRAME_HEADER_BYTES <= limit; i++) {
      const frame = decodeFrame(bytes, at, limit, seed, at)
      if (frame !== undefined) {
        this.#seen(frame, at)
        at = frame.bodyEnd
        continue
      }
      const next = this.#afterDamaged(at, limit)
      if (label !== undefined) {
        const damage = this.#ledger.damage(label, segment, at, "a frame doesn't check")
        damage.end = next ?? limit
      }
      at = next
    }
    return at
  }

  /** Where the next frame that checks begins, if there is one before `limit`. */
  #afterDamaged(at: number, limit: number): number | undefined {
    const { bytes, seed } = this.#audited
    const end = frameEnd(bytes, at, limit)
    if (end !== undefined && decodeFrame(bytes, end, limit, seed, end) !== undefined) return end
    for (let next = at + 1; next + FRAME_HEADER_BYTES <= limit; next++) {
      if (decodeFrame(bytes, next, limit, seed, next) !== undefined) return next
    }
    return undefined
  }

  #seen(frame: Frame, position: number): void {
    const { segment } = this.#audited
    const { kind, loglet, offset } = frame
    this.#ledger.frames++
    if (kind === FRAME_KIND.data) this.#ledger.see(loglet, offset, segment, position)
    else if (kind === FRAME_KIND.trim) this.#ledger.trim(loglet, offset)
    else if (kind === FRAME_KIND.filler) this.last = { number: offset, checksum: loglet }
    else this.#seenName(frame)
    this.#visit(frame, position)
  }

  #seenName(frame: Frame): void {
    const { kind, loglet, offset } = frame
    if (kind !== FRAME_KIND.create && kind !== FRAME_KIND.lossGap) return
    const body = bodyOf(frame, this.#audited.bytes)
    if (kind === FRAME_KIND.lossGap) {
      if (typeof body === 'number') this.#ledger.knownLoss(loglet, body, offset)
    } else if (typeof body === 'string') {
      this.#ledger.name({ logId: body, links: [{ loglet, baseLsn: offset }] })
    }
  }
}
