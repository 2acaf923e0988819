/**
 * What damage puts at stake, in the users' terms: which LSNs of which logs. It looks for every
 * frame that still checks, in groups that don't, and at what later segments and the metadata say
 * about how far each loglet had come. Only errors and repairs pay for it.
 */
import type { LogRange } from '../codec/errors.ts'
import { readU32 } from '../codec/bytes.ts'
import {
  FRAME_HEADER_BYTES,
  FRAME_KIND,
  FRAME_KIND_AT,
  FRAME_LOGLET_AT,
  FRAME_OFFSET_AT,
  GROUP_HEADER_BYTES,
} from '../codec/format.ts'
import { decodeFrame, frameEnd } from '../codec/frame.ts'
import { decodeGroupHeader } from '../codec/group.ts'
import type { LogFacts, StoreFacts } from '../codec/log-state.ts'
import type { Metadata } from '../codec/metadata.ts'
import { lsnOfOffset, OLDEST_POSITION, type Offset } from '../codec/offset.ts'

/** What is known about one loglet around a damaged stretch. */
class LogletStake {
  /** The first offset that may be lost. */
  from: Offset
  /** The first offset that is not: nothing vouches for more. */
  to: Offset
  readonly intact = new Set<Offset>()

  constructor(from: Offset) {
    this.from = from
    this.to = from
  }
}

/** Collects evidence about a damaged stretch, then says what is at stake. */
export class Stakes {
  readonly #loglets = new Map<number, LogletStake>()
  readonly #logs = new Map<string, LogFacts>()
  readonly #trimPoints = new Map<number, Offset>()

  /** `before` is the state just before the damage; undefined if that is not known either. */
  constructor(before: StoreFacts | undefined) {
    if (before === undefined) return
    this.#learnLogs(before)
    for (const { id, tail } of before.loglets.values()) {
      this.#loglets.set(id, new LogletStake(tail))
    }
  }

  #learnLogs(facts: StoreFacts): void {
    for (const log of facts.logs.values()) this.#logs.set(log.logId, log)
    for (const { id, trimPoint } of facts.loglets.values()) this.#trimPoints.set(id, trimPoint)
  }

  #stake(loglet: number): LogletStake {
    let stake = this.#loglets.get(loglet)
    if (stake === undefined) {
      stake = new LogletStake(OLDEST_POSITION)
      this.#loglets.set(loglet, stake)
    }
    return stake
  }

  /** The state at a later place: everything below its tails existed. */
  addLater(facts: StoreFacts): void {
    this.#learnLogs(facts)
    for (const { id, tail } of facts.loglets.values()) this.#reach(id, tail)
  }

  addWitness(metadata: Metadata): void {
    for (const { loglet, released } of metadata.loglets) this.#reach(loglet, released + 1)
  }

  #reach(loglet: number, tail: Offset): void {
    const stake = this.#stake(loglet)
    stake.to = Math.max(stake.to, tail)
  }

  /** Looks through the bytes of a segment, which start at `base`, for frames that still check. */
  addBytes(bytes: Uint8Array, base: number, segmentSeed: number): void {
    for (let at = (8 - (base % 8)) % 8; at + GROUP_HEADER_BYTES <= bytes.length;) {
      const header = decodeGroupHeader(bytes, at, segmentSeed, base + at)
      const limit = Math.min(
        bytes.length,
        at + GROUP_HEADER_BYTES + (header?.length ?? bytes.length),
      )
      const found = this.#addFrames(bytes, at + GROUP_HEADER_BYTES, limit, base, segmentSeed)
      const end = header === undefined ? found : limit
      at = Math.max(at + 8, end + ((8 - ((base + end) % 8)) % 8))
    }
  }

  /** Follows frames from `at` on as long as their lengths lead to frames that check. */
  #addFrames(
    bytes: Uint8Array,
    at: number,
    limit: number,
    base: number,
    segmentSeed: number,
  ): number {
    let end = at - GROUP_HEADER_BYTES
    for (let next: number | undefined = at; next !== undefined && next < limit;) {
      const frame = decodeFrame(bytes, next, limit, segmentSeed, base + next)
      if (frame === undefined) {
        this.#suspect(bytes, next, limit)
        next = this.#skipDamaged(bytes, next, limit, base, segmentSeed)
        continue
      }
      if (frame.kind === FRAME_KIND.data) {
        this.#reach(frame.loglet, frame.offset + 1)
        this.#stake(frame.loglet).intact.add(frame.offset)
      }
      next = frame.bodyEnd
      end = next
    }
    return end
  }

  /** What looks like a loglet's next record, though it doesn't check, is surely one that is lost. */
  #suspect(bytes: Uint8Array, at: number, limit: number): void {
    if (at + FRAME_HEADER_BYTES > limit) return
    if (readU32(bytes, at + FRAME_KIND_AT) !== FRAME_KIND.data) return
    const stake = this.#loglets.get(readU32(bytes, at + FRAME_LOGLET_AT))
    const offset = readU32(bytes, at + FRAME_OFFSET_AT)
    const high = readU32(bytes, at + FRAME_OFFSET_AT + 4)
    if (stake?.to === high * 2 ** 32 + offset) stake.to++
  }

  /** A damaged frame may still have the right length: then the next one checks. */
  #skipDamaged(
    bytes: Uint8Array,
    at: number,
    limit: number,
    base: number,
    segmentSeed: number,
  ): number | undefined {
    const end = frameEnd(bytes, at, limit)
    if (end === undefined || end + FRAME_HEADER_BYTES > limit) return undefined
    const next = decodeFrame(bytes, end, limit, segmentSeed, base + end)
    return next === undefined ? undefined : end
  }

  /** The offsets at stake per loglet, as ranges. */
  offsets(): Map<number, { readonly from: Offset; readonly to: Offset }[]> {
    const lost = new Map<number, { from: Offset; to: Offset }[]>()
    for (const [loglet, stake] of this.#loglets) {
      const trimmed = (this.#trimPoints.get(loglet) ?? 0) + 1
      const ranges = rangesWithout(Math.max(stake.from, trimmed), stake.to, stake.intact)
      if (ranges.length > 0) lost.set(loglet, ranges)
    }
    return lost
  }

  /** The LSNs at stake per log. */
  logs(): LogRange[] {
    const lost = this.offsets()
    const ranges: LogRange[] = []
    for (const { logId, links } of this.#logs.values()) {
      for (const { loglet, baseLsn } of links) {
        for (const { from, to } of lost.get(loglet) ?? []) {
          const lsn = (offset: Offset): number => lsnOfOffset(baseLsn, offset)
          ranges.push({ logId, from: lsn(from), to: lsn(to) })
        }
      }
    }
    return ranges
  }
}

function rangesWithout(
  from: Offset,
  end: Offset,
  intact: ReadonlySet<Offset>,
): { from: Offset; to: Offset }[] {
  const known = [...intact].filter((offset) => offset >= from && offset < end).sort((a, b) => a - b)
  const ranges: { from: Offset; to: Offset }[] = []
  let next = from
  for (const offset of [...known, end]) {
    if (offset > next) ranges.push({ from: next, to: offset - 1 })
    next = offset + 1
  }
  return ranges
}
