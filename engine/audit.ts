/**
 * Reads a segment frame by frame, also past damage, and keeps the account of each loglet: which
 * offset comes next. What is skipped was lost, and is charged to the damage before it. Verify
 * reports from it, and repair works from it.
 */
import { GROUP_ALIGNMENT, GROUP_HEADER_BYTES, FRAME_HEADER_BYTES } from '../codec/format.ts'
import { alignUp, isZero, readU32 } from '../codec/bytes.ts'
import type { LogRange } from '../codec/errors.ts'
import { FRAME_KIND, FRAME_KIND_AT, FRAME_LOGLET_AT, FRAME_OFFSET_AT } from '../codec/format.ts'
import { decodeFrame, findOwner, frameEnd, type Frame } from '../codec/frame.ts'
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
  /** What came before this segment is dead: damage there is none, unless it is charged with a loss. */
  firstSegment = 1
  /** Segments in which an earlier repair filled holes. */
  readonly patched: Set<number> = new Set<number>()
  groups = 0
  frames = 0
  bytes = 0
  /** The next offset of each loglet. */
  readonly #next = new Map<number, Offset>()
  readonly #logs = new Map<number, { readonly logId: string; readonly baseLsn: Lsn }>()
  readonly #trimPoints = new Map<number, Offset>()
  /** How much damage there was when a loglet was last known for certain. */
  readonly #certainAt = new Map<number, number>()
  /** Frames that were lost without a trace of whose they were, by the damage that took them. */
  readonly #nameless = new Map<Damage, number>()

  /** A log is known: its name and where its loglets stand in it. */
  name({ logId, links }: LogFacts): void {
    for (const { loglet, baseLsn } of links) {
      this.#logs.set(loglet, { logId, baseLsn })
      if (!this.#certainAt.has(loglet)) this.#certainAt.set(loglet, this.#damages.length)
    }
  }

  /** A log was deleted: nothing of it can be lost any more. */
  deleteLog(logId: string): void {
    for (const [loglet, log] of this.#logs) if (log.logId === logId) this.#forget(loglet)
  }

  #forget(loglet: number): void {
    this.#logs.delete(loglet)
    this.#next.delete(loglet)
    this.#certainAt.delete(loglet)
    for (const { lost } of this.#damages) lost.delete(loglet)
  }

  damage(label: RecoveryLabel, segment: number, position: number, message: string): Damage {
    const found = { label, segment, position, end: position, message, lost: new Map() }
    this.#damages.push(found)
    return found
  }

  /** Damage that was seen, rather than inferred from what is missing. */
  get certainDamages(): readonly Damage[] {
    return this.#damages.filter((damage) => !this.#inferred.has(damage) && this.#matters(damage))
  }

  /** All offsets that are lost, without what was trimmed anyway, in order. */
  losses(): { readonly loglet: number; readonly from: Offset; readonly to: Offset }[] {
    return this.#damages.flatMap((damage) => this.#lossesOf(damage))
  }

  #lossesOf({ lost }: Damage): { loglet: number; from: Offset; to: Offset }[] {
    // Of a loglet without a name nothing can be told to anybody.
    const named = [...lost].filter(([loglet]) => this.#logs.has(loglet))
    return named.flatMap(([loglet, ranges]) =>
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
      const needsLoss = this.#inferred.has(damage) || !this.#matters(damage)
      return !needsLoss || this.#lossesOf(damage).length > 0
    })
  }

  #matters({ segment }: Damage): boolean {
    return segment >= this.firstSegment
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
    // The start of a repaired segment may know nothing.
    if (facts.isPartial === true) {
      this.patched.add(segment)
      return
    }
    for (const log of facts.logs.values()) this.name(log)
    for (const loglet of this.#logs.keys()) if (!facts.loglets.has(loglet)) this.#forget(loglet)
    for (const { id, tail, trimPoint, gaps } of facts.loglets.values()) {
      this.trim(id, trimPoint)
      if (isFirst) this.#next.set(id, tail)
      else this.reach(id, tail, segment, 0)
      for (const { from, to } of gaps) this.knownLoss(id, from, to, segment, 0)
      this.#certainAt.set(id, this.#damages.length)
    }
  }

  trim(loglet: number, trimPoint: Offset): void {
    const known = this.#trimPoints.get(loglet) ?? 0
    this.#trimPoints.set(loglet, Math.max(known, trimPoint))
  }

  /** The next offset of each loglet that has a name. */
  get nextOffsets(): Iterable<readonly [loglet: number, offset: Offset]> {
    return Array.from(this.#logs.keys(), (loglet) => [loglet, this.next(loglet)] as const)
  }

  next(loglet: number): Offset {
    return this.#next.get(loglet) ?? OLDEST_POSITION
  }

  /** A loss that is on record already: nothing of it is charged again. */
  knownLoss(loglet: number, from: Offset, to: Offset, segment: number, position: number): void {
    this.reach(loglet, from, segment, position)
    for (const damage of this.#damages) {
      const ranges = damage.lost.get(loglet)
      if (ranges === undefined) continue
      damage.lost.set(
        loglet,
        ranges.flatMap((range) => without(range, from, to)),
      )
    }
    this.#next.set(loglet, Math.max(this.next(loglet), to + 1))
    this.#certainAt.set(loglet, this.#damages.length)
  }

  /**
   * A frame is lost. Its header may still say whose it was: that is believed if it is the record
   * that comes next there.
   */
  loseFrame(damage: Damage, kind: number, loglet: number, offset: Offset): void {
    const isNext =
      kind === FRAME_KIND.data && this.#logs.has(loglet) && offset === this.next(loglet)
    if (isNext) this.#charge(damage, loglet, offset + 1)
    else this.loseNameless(damage, 1)
  }

  /** Frames are lost, and nothing says whose they were. */
  loseNameless(damage: Damage, frames: number): void {
    if (frames > 0) this.#nameless.set(damage, (this.#nameless.get(damage) ?? 0) + frames)
  }

  /**
   * The account is complete. A frame that was lost without a trace may have been a record of any
   * loglet that nothing later speaks of: that one's next offsets must not be given away again.
   */
  settle(): void {
    this.#damages.forEach((damage, i) => {
      const frames = this.#nameless.get(damage) ?? 0
      if (frames === 0) return
      for (const [loglet, certainAt] of this.#certainAt) {
        if (certainAt <= i) this.#charge(damage, loglet, this.next(loglet) + frames)
      }
    })
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
    this.#certainAt.set(loglet, this.#damages.length)
  }

  /** Everything below `tail` was there at this place; what was not seen is lost. */
  reach(loglet: number, tail: Offset, segment: number, position: number): void {
    if (tail > this.next(loglet)) this.#charge(this.#blame(segment, position), loglet, tail)
  }

  /** What the metadata saw of a loglet, at a place that is behind so many damages. */
  witness(loglet: number, tail: Offset, segment: number, position: number): void {
    this.reach(loglet, tail, segment, position)
    const before = this.#damages.filter((damage) => {
      return damage.segment < segment || (damage.segment === segment && damage.end <= position)
    })
    const certainAt = this.#certainAt.get(loglet) ?? 0
    this.#certainAt.set(loglet, Math.max(certainAt, before.length))
  }

  #charge(damage: Damage, loglet: number, tail: Offset): void {
    const from = this.next(loglet)
    const ranges = damage.lost.get(loglet) ?? []
    ranges.push({ from, to: tail - 1 })
    damage.lost.set(loglet, ranges)
    this.#next.set(loglet, tail)
  }

  /** Everything that another account has seen was there. */
  reachAll(other: Ledger, segment: number, position: number): void {
    for (const [loglet, next] of other.#next) this.reach(loglet, next, segment, position)
  }

  /** No loglet that was seen, with a name or without, has this id or a greater one. */
  get unusedLogletId(): number {
    return Math.max(0, ...this.#next.keys()) + 1
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

/** What was found where a group's frames should be. */
interface FoundFrames {
  /** Frames that check, and those that don't. */
  frames: number
  damaged: number
  /** Bytes of the frames that check. */
  bytes: number
  /** Where the last one ended; undefined if nothing that checks followed. */
  rest: number | undefined
  lastDamage: Damage | undefined
}

/** No record takes less: its frame's header, and a body with time, keys and payload. */
const MIN_FRAME_BYTES = FRAME_HEADER_BYTES + 12

/** Whose a frame is said to be. */
interface Claim {
  readonly kind: number
  readonly loglet: number
  readonly offset: Offset
}

/** What the header of a frame that doesn't check says all the same. */
function claimOf(bytes: Uint8Array, at: number): Claim {
  return {
    kind: readU32(bytes, at + FRAME_KIND_AT),
    loglet: readU32(bytes, at + FRAME_LOGLET_AT),
    offset:
      readU32(bytes, at + FRAME_OFFSET_AT + 4) * 2 ** 32 + readU32(bytes, at + FRAME_OFFSET_AT),
  }
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
    const found = this.#frames(from + GROUP_HEADER_BYTES, limit, Number.POSITIVE_INFINITY)
    const unaccounted = end - from - GROUP_HEADER_BYTES - found.bytes
    this.#ledger.loseNameless(damage, Math.floor(unaccounted / MIN_FRAME_BYTES))
    this.position = end
  }

  #group(header: GroupHeader): void {
    const { bytes, seed, segment } = this.#audited
    const at = this.position
    const end = at + GROUP_HEADER_BYTES + header.length
    const follows = header.number === this.last.number + 1 && header.previous === this.last.checksum
    const isCharged = this.#ledger.endsWithDamage(segment, at)
    if (header.isPatched) this.#ledger.patched.add(segment)
    if (!follows && !isCharged) {
      this.#ledger.damage('R6', segment, at, 'a group follows another history')
    }
    this.last = { number: header.number, checksum: header.checksum }
    if (framesCheck(bytes, at, header, seed, at)) this.#whole(header, at, end)
    else this.#torn(header, at, Math.min(end, bytes.length))
    this.position = end
  }

  #whole(header: GroupHeader, at: number, end: number): void {
    const { rest } = this.#frames(at + GROUP_HEADER_BYTES, end, header.frames, 'R4')
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
    const found = this.#frames(at + GROUP_HEADER_BYTES, end, header.frames, 'R4')
    if (found.lastDamage !== undefined) {
      this.#ledger.loseNameless(found.lastDamage, header.frames - found.frames - found.damaged)
    }
    if (this.#ledger.count > before) return
    const damage = this.#ledger.damage('R4', segment, at, "a group's checksum doesn't check")
    damage.end = end
  }

  /**
   * Visits the frames that check between `from` and `limit`; those that don't are damage of the
   * given label, or part of damage that is on record already.
   */
  #frames(from: number, limit: number, count: number, label?: RecoveryLabel): FoundFrames {
    const { bytes, seed } = this.#audited
    const found: FoundFrames = {
      frames: 0,
      damaged: 0,
      bytes: 0,
      rest: from,
      lastDamage: undefined,
    }
    for (let at = from; found.frames + found.damaged < count && at + FRAME_HEADER_BYTES <= limit;) {
      const frame = decodeFrame(bytes, at, limit, seed, at)
      if (frame !== undefined) {
        this.#seen(frame, at)
        found.frames++
        found.bytes += frame.bodyEnd - at
        at = frame.bodyEnd
        found.rest = at
        continue
      }
      found.rest = this.#afterDamaged(at, limit)
      if (label !== undefined) this.#damagedFrame(found, label, at, found.rest ?? limit)
      if (found.rest === undefined) break
      at = found.rest
    }
    return found
  }

  #damagedFrame(found: FoundFrames, label: RecoveryLabel, at: number, end: number): void {
    const { bytes, segment } = this.#audited
    const damage = this.#ledger.damage(label, segment, at, "a frame doesn't check")
    damage.end = end
    found.damaged++
    found.lastDamage = damage
    if (end - at < MIN_FRAME_BYTES) return
    const { kind, loglet, offset } = this.#ownerOf(at) ?? claimOf(bytes, at)
    this.#ledger.loseFrame(damage, kind, loglet, offset)
  }

  /** Whose the damaged frame is for certain, if its body is as it was. */
  #ownerOf(at: number): Claim | undefined {
    const { bytes, seed } = this.#audited
    const end = frameEnd(bytes, at, bytes.length)
    if (end === undefined) return undefined
    const owner = findOwner(bytes, at, end, seed, at, this.#ledger.nextOffsets)
    return owner === undefined ? undefined : { kind: FRAME_KIND.data, ...owner }
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
    else if (kind === FRAME_KIND.trim) {
      this.#ledger.trim(loglet, offset)
      this.#ledger.reach(loglet, offset + 1, segment, position)
    } else if (kind === FRAME_KIND.seal) this.#ledger.reach(loglet, offset, segment, position)
    else if (kind === FRAME_KIND.filler) this.last = { number: offset, checksum: loglet }
    else this.#seenName(frame, position)
    this.#visit(frame, position)
  }

  #seenName(frame: Frame, position: number): void {
    const { kind, loglet, offset } = frame
    const body = bodyOf(frame, this.#audited.bytes)
    if (kind === FRAME_KIND.delete && typeof body === 'string') this.#ledger.deleteLog(body)
    else if (kind === FRAME_KIND.lossGap) {
      const { segment } = this.#audited
      if (typeof body === 'number') this.#ledger.knownLoss(loglet, body, offset, segment, position)
    } else if (kind === FRAME_KIND.create && typeof body === 'string') {
      // A name that is given again was free: its deletion may be lost.
      this.#ledger.deleteLog(body)
      this.#ledger.name({ logId: body, links: [{ loglet, baseLsn: offset }] })
    }
  }
}
