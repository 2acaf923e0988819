/**
 * The one writer of a store: takes groups of commands from the queue, makes each durable with one
 * write and one sync, then moves the release pointers, tells the outcomes and wakes the readers.
 *
 *     queue ─▶ judge on the draft ─▶ seal ─▶ write and sync ─▶ adopt the draft ─▶ settle ─▶ notify
 *                    │                             │
 *                    └ nothing to write: settle    ├ no room: put back, reject what needs room,
 *                                                  │          write what gives room back alone
 *                                                  └ otherwise: the store has failed
 *
 * Invariants: one group is in flight at most. Nothing of a group is told, and no reader sees it,
 * before its sync succeeded; the one line that acknowledges is in `#acknowledge`. After a failure
 * nothing is written any more.
 */
import assert from 'node:assert/strict'
import { performance } from 'node:perf_hooks'
import type { LogError } from '../codec/errors.ts'
import { GROUP_HEADER_BYTES } from '../codec/format.ts'
import { groupEnd, writeGroupHeader } from '../codec/group.ts'
import { encodeSnapshot } from '../codec/log-state.ts'
import type { Place } from '../codec/metadata.ts'
import { encodeSegmentStart, segmentSeed } from '../codec/segment-header.ts'
import { afterMicrotasks } from './after-microtasks.ts'
import type { Clock } from './clock.ts'
import type { CommandGroup, CommandQueue } from './command-queue.ts'
import { TrimCommand, type Command, type FramePlace } from './commands.ts'
import { storeFailed, writeFailed } from './errors.ts'
import { MAX_SEGMENT } from './file-names.ts'
import { CommitPacing } from './commit-pacing.ts'
import type { MetadataKeeper } from './metadata-keeper.ts'
import type { PreparedSegment, Reserve } from './reserve.ts'
import { SegmentWriter } from './segment-writer.ts'
import type { StoreMetrics } from './store-metrics.ts'
import type { LogletCell, StoreState } from './store-state.ts'
import { beginCommit, finishCommit } from './tracing.ts'

/** A roll happens no earlier than after this many times the snapshot's size. */
const SNAPSHOT_FACTOR = 4

/** What the store does around commits; none of it makes one wait. */
export interface WriterHooks {
  /** A new segment was begun; the old one, if any, ended at the place. */
  readonly onRoll: (segment: number, end: Place | undefined, old: SegmentWriter | undefined) => void
  /** The group's records are durable at the place; called before anything is told. */
  readonly onDurable: (commands: readonly Command[], place: FramePlace, end: number) => void
  /** The outcomes were told; the cells' facts changed. */
  readonly onAcknowledged: (changed: readonly LogletCell[]) => void
  /** Whether nothing in the current segment is needed any more. */
  readonly isTailDead: () => boolean
  readonly onFailed: (error: LogError) => void
}

export interface WriterOptions {
  readonly clock: Clock
  readonly storeId: Uint8Array
  readonly queue: CommandQueue
  readonly state: StoreState
  readonly metadata: MetadataKeeper
  readonly metrics: StoreMetrics
  readonly reserve: Reserve
  readonly segmentSizeBytes: number
  readonly reserveBytes: number
  readonly batchCommitDelayMs: number
  readonly isInline: boolean
  readonly hooks: WriterHooks
}

/** Where a group is about to be written. */
interface Target {
  readonly writer: SegmentWriter
  /** Header and snapshot, if the group begins the segment. */
  readonly start: Uint8Array | undefined
}

/** Where commands that give space back are tried when there is no room. */
type RescuePlace = 'current' | 'reserve'

/** A sealed group on its way to the disk. */
interface Flight {
  readonly target: Target
  readonly commands: readonly Command[]
  readonly place: FramePlace
  readonly bytes: Uint8Array
  readonly end: Place
  readonly records: number
}

export class LogStoreWriter {
  readonly #options: WriterOptions
  #current: SegmentWriter | undefined
  /** Where the current segment's groups start, and the position after which it rolls. */
  #rollAt: number
  #place: Place
  /** Whether a group found no room since the current segment was begun. */
  #lacksRoom = false
  #inFlight: CommandGroup | undefined
  readonly #pacing = new CommitPacing()
  #isScheduled = false
  #isHurried = false
  #delayTimer: unknown
  #failure: LogError | undefined
  readonly #idleWaiters: (() => void)[] = []

  /** `current` is undefined while no segment has a group. */
  constructor(
    options: WriterOptions,
    place: Place,
    current: SegmentWriter | undefined,
    groupsStart: number,
  ) {
    this.#options = options
    this.#place = place
    this.#current = current
    this.#rollAt = this.#rollPosition(groupsStart)
  }

  #rollPosition(groupsStart: number): number {
    return groupsStart + Math.max(this.#options.segmentSizeBytes, SNAPSHOT_FACTOR * groupsStart)
  }

  /** Where the stream is durable now. */
  get place(): Place {
    return this.#place
  }

  get failure(): LogError | undefined {
    return this.#failure
  }

  get isIdle(): boolean {
    return this.#inFlight === undefined && this.#options.queue.isEmpty
  }

  /** Resolves when everything queued was told its outcome. */
  whenIdle(): Promise<void> {
    if (this.isIdle) return Promise.resolve()
    return new Promise((resolve) => this.#idleWaiters.push(resolve))
  }

  /** Resolves when no group is in flight. */
  async whenLanded(): Promise<void> {
    while (this.#inFlight !== undefined) {
      await new Promise<void>((resolve) => this.#idleWaiters.push(resolve))
    }
  }

  /**
   * A command was queued. The group is formed after all microtasks that are due now, so that
   * everybody who appends in the same tick, or because of the same acknowledgements, is in it.
   */
  wake(): void {
    if (this.#inFlight !== undefined) return
    if (this.#options.queue.firstGroupCommands >= this.#pacing.enough) {
      this.#flush()
    } else this.#flushLater()
  }

  #flushLater(): void {
    if (this.#isScheduled) return
    if (this.#mayDelay()) {
      const flush = (): void => {
        this.#delayTimer = undefined
        this.#flush()
      }
      const { clock, batchCommitDelayMs } = this.#options
      this.#delayTimer ??= clock.setTimer(flush, batchCommitDelayMs, true)
      return
    }
    this.#isScheduled = true
    afterMicrotasks(() => {
      this.#isScheduled = false
      this.#flush()
    })
  }

  #mayDelay(): boolean {
    if (this.#options.batchCommitDelayMs === 0 || this.#isHurried) return false
    return !this.#options.queue.isFirstGroupFull
  }

  /** Waits for no delay any more: the store is being closed. */
  hurry(): void {
    this.#isHurried = true
    if (this.#delayTimer === undefined) return
    this.#options.clock.clearTimer(this.#delayTimer)
    this.#delayTimer = undefined
    this.#flush()
  }

  #flush(): void {
    if (this.#inFlight !== undefined) return
    const group = this.#failure === undefined ? this.#options.queue.take() : undefined
    if (group === undefined) {
      this.#tellIdle()
      return
    }
    this.#inFlight = group
    this.#judge(group.commands)
  }

  #tellIdle(): void {
    for (const resolve of this.#idleWaiters.splice(0)) resolve()
  }

  /** Judges commands on a fresh draft, and writes those that need it. */
  #judge(commands: readonly Command[]): void {
    for (const command of commands) command.judge(this.#options.state)
    const kept = commands.filter((command) => command.isKept)
    if (kept.length > 0) this.#write(commands, kept)
    else this.#settleUnwritten(commands)
  }

  /** Nothing had to be written: the verdicts stand on what is durable. */
  #settleUnwritten(commands: readonly Command[]): void {
    this.#options.state.discard()
    // Not at once, or a long queue of such groups would be one deep call.
    this.#land(commands, [], () => this.#flushLater())
  }

  #write(commands: readonly Command[], kept: readonly Command[]): void {
    const current = this.#current
    if (current !== undefined && current.end < this.#rollAt && !this.#rollsForRoom()) {
      this.#commit({ writer: current, start: undefined }, commands, kept)
      return
    }
    const ready = this.#options.reserve.ready
    if (ready !== undefined) {
      this.#commit(this.#begin(ready), commands, kept)
      return
    }
    this.#options.reserve.prepare().then(
      (prepared) => {
        this.#commit(this.#begin(prepared), commands, kept)
      },
      (cause: unknown) => {
        this.#withoutRoom(commands, cause)
      },
    )
  }

  /** A segment that takes no more, and holds nothing that is needed, gives its room back. */
  #rollsForRoom(): boolean {
    if (!this.#lacksRoom || this.#options.reserve.ready === undefined) return false
    return this.#options.hooks.isTailDead()
  }

  /** The prepared file becomes a segment once its first group is durable. */
  #begin(prepared: PreparedSegment): Target {
    assert.ok(prepared.segment <= MAX_SEGMENT, 'there are segment numbers left')
    const { storeId, state, clock, isInline } = this.#options
    const place = this.#place
    const isFirst = place.groupNumber === 0
    const start = encodeSegmentStart(
      {
        storeId,
        segment: prepared.segment,
        createdAtMs: Math.max(0, clock.now()),
        previous: {
          end: isFirst ? 0 : place.position,
          groupPosition: isFirst ? 0 : place.groupPosition,
          groupNumber: place.groupNumber,
          groupChecksum: place.groupChecksum,
        },
      },
      encodeSnapshot(state.snapshot()),
    )
    const seed = segmentSeed(storeId, prepared.segment)
    const { segment, file, size } = prepared
    return { writer: new SegmentWriter(segment, seed, file, 0, size, isInline), start }
  }

  #commit(
    target: Target,
    commands: readonly Command[],
    kept: readonly Command[],
    withoutRoom = (cause: unknown): void => this.#withoutRoom(commands, cause),
  ): void {
    const flight = this.#seal(target, commands, kept)
    const { writer, start } = target
    const limit = start === undefined ? this.#rollAt : this.#rollPosition(start.length)
    const buffers = start === undefined ? [flight.bytes] : [start, flight.bytes]
    const keepZeros = this.#zerosToKeep(kept)
    const trace = beginCommit({
      group: flight.end.groupNumber,
      segment: writer.segment,
      records: flight.records,
      bytes: flight.bytes.length,
    })
    // What is decided by time goes by the store's clock, what is reported by the process's own.
    const { clock } = this.#options
    const pacedAt = clock.monotonicNow()
    const startedAt = performance.now()
    writer.commit({ buffers, keepZeros, zerosLimit: limit }, (outcome) => {
      if (trace !== undefined)
        finishCommit(trace, outcome.kind === 'durable' ? undefined : outcome.cause)
      if (outcome.kind === 'unknown') this.#fail(outcome.cause)
      else if (outcome.kind === 'no-space') withoutRoom(outcome.cause)
      else {
        const paceMs = clock.monotonicNow() - pacedAt
        this.#durable(flight, outcome.bytes, performance.now() - startedAt, paceMs)
      }
    })
  }

  /** Until the next segment exists, zeros are left for what gives space back. */
  #zerosToKeep(kept: readonly Command[]): number {
    if (this.#options.reserve.isPrepared) return 0
    return kept.every((command) => command.givesSpaceBack) ? 0 : this.#options.reserveBytes
  }

  /** Moves the kept frames together, gives them their place, and puts the group's header on. */
  #seal(target: Target, commands: readonly Command[], kept: readonly Command[]): Flight {
    const { bytes } = (this.#inFlight as CommandGroup).buffer
    const { writer, start } = target
    const position = start?.length ?? writer.end
    const place = { bytes, segmentSeed: writer.seed, base: position }
    const { framesEnd, frames, records } = sealFrames(kept, place)
    const fields = {
      number: this.#place.groupNumber + 1,
      frames,
      durable: { segment: this.#place.segment, position: this.#place.position },
      generation: this.#options.metadata.durableGeneration,
      previous: this.#place.groupChecksum,
    }
    const groupChecksum = writeGroupHeader(bytes, 0, framesEnd, fields, writer.seed, position)
    const length = groupEnd(framesEnd)
    const end = {
      segment: writer.segment,
      position: position + length,
      groupPosition: position,
      groupNumber: fields.number,
      groupChecksum,
    }
    return { target, commands, place, bytes: bytes.subarray(0, length), end, records }
  }

  #durable(flight: Flight, bytes: number, syncMs: number, paceMs: number): void {
    const { target, commands, place, end, records } = flight
    const { hooks, state, metrics } = this.#options
    if (target.start !== undefined) this.#rolled(target, target.start)
    this.#place = end
    hooks.onDurable(commands, place, target.writer.fileEnd)
    metrics.committed(records, bytes, syncMs)
    this.#land(commands, state.adopt())
    this.#pace(commands.length, bytes, paceMs)
  }

  /** Takes the time that the callers' work takes after their acknowledgements. */
  #pace(commands: number, bytes: number, commitMs: number): void {
    const { clock, isInline } = this.#options
    if (isInline) return
    this.#pacing.landed(commands, bytes, commitMs)
    const startedAt = clock.monotonicNow()
    afterMicrotasks(() => {
      this.#pacing.resumed(clock.monotonicNow() - startedAt)
    })
  }

  #rolled({ writer }: Target, start: Uint8Array): void {
    const old = this.#current
    this.#current = writer
    this.#lacksRoom = false
    this.#rollAt = this.#rollPosition(start.length)
    this.#options.reserve.advance()
    this.#options.hooks.onRoll(writer.segment, old === undefined ? undefined : this.#place, old)
  }

  /** The group is done: its outcomes are told, and the next one may be formed. */
  #land(
    commands: readonly Command[],
    changed: readonly LogletCell[],
    goOn = (): void => (this.#pacing.isSplit ? this.#flush() : this.wake()),
  ): void {
    this.#acknowledge(commands)
    this.#options.hooks.onAcknowledged(changed)
    // Only now, so that an append out of an acknowledgement starts nothing in the midst of them.
    this.#recycle()
    if (this.#options.queue.isEmpty) this.#tellIdle()
    else goOn()
  }

  #recycle(): void {
    if (this.#inFlight !== undefined) this.#options.queue.recycle(this.#inFlight)
    this.#inFlight = undefined
  }

  /**
   * Every acknowledgement is sent here, in queue order. It is safe because all ways to this line
   * come after the sync of the group that carries the command (`#durable`, called with the outcome
   * of the commit), or concern commands for which nothing had to be written.
   */
  #acknowledge(commands: readonly Command[]): void {
    const now = performance.now()
    for (const command of commands) {
      const isDone = command.isKept && !command.isSettled
      command.settle()
      if (!isDone) continue
      const { records, called } = command
      if (records > 0) this.#options.metrics.appended(records, now - called.monotonicMs)
      else if (command instanceof TrimCommand) this.#options.metrics.trimmed()
    }
  }

  /**
   * There is no room, and the file is as it was. What takes room is rejected. What gives room back
   * is judged again and written alone: in the current segment, or else in the reserve.
   */
  #withoutRoom(commands: readonly Command[], cause: unknown): void {
    const { state, reserve } = this.#options
    state.discard()
    this.#lacksRoom = true
    const error = writeFailed(cause)
    for (const command of commands) if (!command.givesSpaceBack) command.fail(error)
    reserve.prepareSoon()
    const rest = commands.filter((command) => !command.isSettled)
    this.#rescue(rest, ['current', 'reserve'], error)
  }

  /** Tries the places in turn; when none is left, the commands fail with the error. */
  #rescue(commands: readonly Command[], places: readonly RescuePlace[], error: LogError): void {
    const { state, reserve } = this.#options
    state.discard()
    const [place, ...others] = places
    const target = place === undefined ? undefined : this.#rescueTarget(place)
    if (place === undefined) {
      for (const command of commands) command.fail(error)
      this.#land([], [])
    } else if (place === 'reserve' && target === undefined && reserve.isBusy) {
      void reserve.settled().then(() => this.#rescue(commands, places, error))
    } else if (target === undefined) this.#rescue(commands, others, error)
    else {
      for (const command of commands) command.judge(state)
      const kept = commands.filter((command) => command.isKept)
      const retry = (cause: unknown): void => this.#rescue(commands, others, writeFailed(cause))
      if (kept.length > 0) this.#commit(target, commands, kept, retry)
      else this.#settleUnwritten(commands)
    }
  }

  /** A full disk may keep the metadata from naming the reserve: it is used all the same. */
  #rescueTarget(place: RescuePlace): Target | undefined {
    const current = this.#current
    if (place === 'current') return current && { writer: current, start: undefined }
    const prepared = this.#options.reserve.unnamed
    return prepared && this.#begin(prepared)
  }

  /** Nobody knows what is on the disk: nothing is written any more, everybody is told. */
  #fail(cause: unknown): void {
    const error = storeFailed(cause)
    this.#failure = error
    this.#options.state.discard()
    const commands = this.#inFlight?.commands ?? []
    this.#inFlight = undefined
    for (const command of [...commands, ...this.#options.queue.drain()]) command.fail(error)
    this.#options.hooks.onFailed(error)
    this.#tellIdle()
  }

  /** The operation in flight doesn't return: those who wait for it are told so. */
  abandon(error: LogError): void {
    this.#failure ??= error
    for (const command of this.#inFlight?.commands ?? []) command.fail(error)
  }

  async close(): Promise<void> {
    this.#options.clock.clearTimer(this.#delayTimer)
    await this.#current?.close()
    this.#current = undefined
  }
}

/** Lays the frames of kept commands one behind the other and seals them. */
function sealFrames(
  kept: readonly Command[],
  place: FramePlace,
): { readonly framesEnd: number; readonly frames: number; readonly records: number } {
  let framesEnd = GROUP_HEADER_BYTES
  let frames = 0
  let records = 0
  for (const command of kept) {
    const length = command.end - command.start
    if (command.start !== framesEnd) {
      place.bytes.copyWithin(framesEnd, command.start, command.end)
      command.start = framesEnd
      command.end = framesEnd + length
    }
    command.seal(place)
    framesEnd = command.end
    frames += command.frames
    records += command.records
  }
  return { framesEnd, frames, records }
}
