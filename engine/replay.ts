/**
 * Applies the frames of whole groups to a store's facts, and to a segment's index. Recovery and
 * followers come to their state this way and no other.
 */
import { FRAME_HEADER_BYTES, FRAME_KIND, type FrameKind } from '../codec/format.ts'
import type { Frame } from '../codec/frame.ts'
import {
  applyCreate,
  applyDeadSegments,
  applyDelete,
  applyLossGap,
  applyRecord,
  applySeal,
  applyTrim,
  type StoreFacts,
} from '../codec/log-state.ts'
import { unpack } from '../codec/msgpack.ts'
import type { Offset } from '../codec/offset.ts'
import { createdAtMsOf } from '../codec/record.ts'
import { eachFrame, type ScannedGroup } from './group-scanner.ts'
import type { GrowingIndex } from './segment-index.ts'

/** Where replayed frames lie, and what they are added to. */
export interface ReplayTarget {
  readonly facts: StoreFacts
  readonly segment: number
  readonly index: GrowingIndex
  /**
   * Whether the segment was repaired before here: then frames are missing, what came after them
   * need not fit the state, and loss gaps at the tail of the store make up for it.
   */
  isPatched: boolean
}

/** A target at the start of a segment. */
export function replayTarget(
  facts: StoreFacts,
  segment: number,
  index: GrowingIndex,
): ReplayTarget {
  return { facts, segment, index, isPatched: facts.isPartial === true }
}

/**
 * Applies a whole group. Returns false if its frames contradict the state: they check, but can't
 * belong here. The facts may then be half changed, so the caller must not go on with them.
 */
export function replayGroup(target: ReplayTarget, group: ScannedGroup): boolean {
  return eachFrame(group, (frame, position) => {
    if (frame.kind === FRAME_KIND.filler) target.isPatched = true
    return replayFrame(target, frame, group.bytes, position) || target.isPatched
  })
}

function replayFrame(
  target: ReplayTarget,
  frame: Frame,
  bytes: Uint8Array,
  position: number,
): boolean {
  if (frame.kind !== FRAME_KIND.data) return replayState(target, frame, bytes)
  const { facts, index } = target
  const { loglet, offset } = frame
  if (target.isPatched && !skipLost(target, loglet, offset)) return false
  // A loglet whose creation was lost has no log, but its id must not be used again.
  if (target.isPatched) facts.nextLogletId = Math.max(facts.nextLogletId, loglet + 1)
  const createdAtMs = createdAtMsOf(bytes, frame.bodyStart)
  const isApplied = applyRecord(facts.loglets.get(loglet), offset, createdAtMs)
  if (!isApplied && !target.isPatched) return false
  const end = position + FRAME_HEADER_BYTES + frame.bodyEnd - frame.bodyStart
  index.add(loglet, offset, 1, position, end)
  return true
}

/** Steps over records that a repair found lost; false for a record that comes again. */
function skipLost(target: ReplayTarget, loglet: number, offset: Offset): boolean {
  const { facts, index } = target
  const next = index.find(loglet)?.endTail ?? facts.loglets.get(loglet)?.tail ?? offset
  if (offset < next) return false
  index.skip(loglet, next, offset)
  reachTail(target, loglet, offset)
  return true
}

/** Records up to a tail were there, though some of them are lost. */
function reachTail({ facts, index }: ReplayTarget, loglet: number, tail: Offset): void {
  const known = facts.loglets.get(loglet)
  if (known === undefined || tail <= known.tail) return
  index.skip(loglet, known.tail, tail)
  known.tail = tail
}

type Replay = (target: ReplayTarget, frame: Frame, body: unknown) => boolean

const REPLAYS: Readonly<Partial<Record<FrameKind, Replay>>> = {
  [FRAME_KIND.trim]: (target, { loglet, offset }) => {
    if (target.isPatched) reachTail(target, loglet, offset + 1)
    return applyTrim(target.facts.loglets.get(loglet), offset)
  },
  [FRAME_KIND.seal]: (target, { loglet, offset }, reason) => {
    if (target.isPatched) reachTail(target, loglet, offset)
    const seal = { reason: typeof reason === 'string' ? reason : undefined }
    return applySeal(target.facts.loglets.get(loglet), offset, seal)
  },
  [FRAME_KIND.create]: ({ facts, isPatched }, { loglet, offset }, logId) => {
    if (typeof logId !== 'string') return false
    // A name that is given again was free: the deletion is lost.
    if (isPatched) applyDelete(facts, logId)
    return applyCreate(facts, logId, { loglet, baseLsn: offset })
  },
  [FRAME_KIND.delete]: ({ facts }, _frame, logId) =>
    typeof logId === 'string' && applyDelete(facts, logId),
  [FRAME_KIND.deadSegments]: ({ facts, segment }, { offset }) =>
    applyDeadSegments(facts, offset, segment),
  [FRAME_KIND.lossGap]: replayLoss,
  [FRAME_KIND.filler]: () => true,
}

function replayState(target: ReplayTarget, frame: Frame, bytes: Uint8Array): boolean {
  const replay = REPLAYS[frame.kind]
  return replay?.(target, frame, bodyOf(frame, bytes)) ?? false
}

/** What the body of a frame of state holds; undefined if it is no msgpack, which nobody accepts. */
export function bodyOf(frame: Frame, bytes: Uint8Array): unknown {
  try {
    return unpack(bytes, frame.bodyStart, frame.bodyEnd)
  } catch {
    return undefined
  }
}

function replayLoss({ facts, index }: ReplayTarget, frame: Frame, from: unknown): boolean {
  const loglet = facts.loglets.get(frame.loglet)
  if (loglet === undefined || typeof from !== 'number') return false
  const before = loglet.tail
  if (!applyLossGap(loglet, { from, to: frame.offset })) return false
  if (loglet.tail > before) index.skip(frame.loglet, before, loglet.tail)
  return true
}
