/**
 * What waits in the queue. Each command lays its frames down when it is called, is judged once its
 * group is formed, and is told the outcome with its group.
 *
 *     waiting ──▶ queued ──▶ in a group ──▶ settled
 *        └───────────┴──── withdrawn ──────────▲
 */
import { logError, sealed, tailMismatch, type LogError, type LogId } from '../codec/errors.ts'
import { FRAME_KIND, type FrameKind } from '../codec/format.ts'
import { bodyChecksum, frameEndAt, sealFrame, writeFrameHeader } from '../codec/frame.ts'
import { effectiveTrimPoint } from '../codec/log-state.ts'
import { pack } from '../codec/msgpack.ts'
import { OLDEST_POSITION, type Offset } from '../codec/offset.ts'
import type { Burst } from './burst-clock.ts'
import type { FrameBuffer } from './frame-buffer.ts'
import { MAX_RUN_BYTES, type GrowingIndex } from './segment-index.ts'
import { beginAppend, finishAppend, type AppendTrace } from './tracing.ts'
import type { LogletCell, StoreState } from './store-state.ts'
import { unknownLog } from './errors.ts'

/** Where frames go, in the order they were laid down. */
export interface FramePlace {
  readonly bytes: Uint8Array
  readonly segmentSeed: number
  /** The position in the segment of the first byte of `bytes`. */
  readonly base: number
}

const NEVER: Burst = { wallMs: 0, monotonicMs: 0 }

export abstract class Command {
  /** When it was called. */
  called: Burst = NEVER
  /** Its frames in the buffer of its group. */
  start = 0
  end = 0
  /** Whether its outcome was told; also how a withdrawn command is known in its group. */
  isSettled = false
  /** Whether the writer has it: from then on nothing but its outcome settles it. */
  isTaken = false
  /** Why it was refused when it was judged. */
  refusal: LogError | undefined
  /** Whether its frames go into the group. */
  isKept = false
  /** Told when the command is settled, whatever the outcome. */
  onSettled: (() => void) | undefined

  /** How many frames it has. */
  abstract readonly frames: number
  /** How many records it appends. */
  readonly records: number = 0
  /** Whether a full disk rejects it; what gives space back is written from the reserve. */
  readonly givesSpaceBack: boolean = false

  /** Judges it on the draft. Sets `isKept`, and `refusal` if it can't be done. */
  abstract judge(state: StoreState): void
  /** Seals its frames, now that their place is known. */
  abstract seal(place: FramePlace): void
  /** Adds its records to the index of their segment, once they are durable. */
  addTo(_index: GrowingIndex, _place: FramePlace): void {
    // Only records are indexed.
  }
  protected abstract succeed(): void
  protected abstract reject(error: LogError): void

  /** Tells the outcome: the refusal, or success. */
  settle(): void {
    if (this.isSettled) return
    if (this.refusal !== undefined) return this.fail(this.refusal)
    this.isSettled = true
    this.onSettled?.()
    this.succeed()
  }

  /** Tells the failure, unless the outcome was told already. */
  fail(error: LogError): void {
    if (this.isSettled) return
    this.isSettled = true
    this.onSettled?.()
    this.reject(error)
  }
}

/** Told the outcome of an append: see the loglet contract. */
export interface OffsetListener {
  committed(first: Offset): void
  failed(error: LogError): void
}

/**
 * Why an append can't be done, if it can't. `tail` is where its records would go; the tail that a
 * refusal names is `durableTail`, so that all below it can be read once the refusal is told.
 */
function refuseAppend(
  state: StoreState,
  cell: LogletCell,
  count: number,
  expectedTail: Offset | undefined,
  durableTail: Offset = cell.tail,
): LogError | undefined {
  if (!state.hasDraftCell(cell)) return unknownLog(cell.logId)
  if (cell.seal !== undefined) return sealed(cell.tail, cell.seal.reason)
  if (expectedTail !== undefined && expectedTail !== cell.tail) {
    return tailMismatch(expectedTail, durableTail)
  }
  if (cell.tail + count - 1 <= cell.maxOffset) return undefined
  return logError('INVALID_LSN', `The log ${JSON.stringify(cell.logId)} has no LSNs left`)
}

/** One or more records of one loglet. */
export class AppendCommand extends Command {
  readonly cell: LogletCell
  readonly frames: number
  override readonly records: number
  first: Offset = 0
  readonly #expectedTail: Offset | undefined
  readonly #listener: OffsetListener
  readonly #trace: AppendTrace | undefined

  constructor(
    cell: LogletCell,
    count: number,
    expectedTail: Offset | undefined,
    listener: OffsetListener,
  ) {
    super()
    this.cell = cell
    this.frames = count
    this.records = count
    this.#expectedTail = expectedTail
    this.#listener = listener
    this.#trace = beginAppend(cell.logId, count)
  }

  judge(state: StoreState): void {
    const { cell, records } = this
    this.refusal = refuseAppend(state, cell, records, this.#expectedTail)
    this.isKept = this.refusal === undefined
    if (!this.isKept) return
    this.first = cell.tail
    cell.tail += records
    state.touch(cell)
  }

  seal({ bytes, segmentSeed, base }: FramePlace): void {
    let at = this.start
    for (let offset = this.first; at < this.end; offset++) {
      at = sealFrame(bytes, at, offset, segmentSeed, base + at)
    }
  }

  override addTo(index: GrowingIndex, place: FramePlace): void {
    const { start, end, first, records } = this
    const loglet = this.cell.facts.id
    if (end - start <= MAX_RUN_BYTES) {
      index.add(loglet, first, records, place.base + start, place.base + end)
    } else this.#addEach(index, place)
  }

  /** Record by record, so that the index can begin new runs. */
  #addEach(index: GrowingIndex, { bytes, base }: FramePlace): void {
    const loglet = this.cell.facts.id
    let at = this.start
    for (let offset = this.first; at < this.end; offset++) {
      const next = frameEndAt(bytes, at)
      index.add(loglet, offset, 1, base + at, base + next)
      at = next
    }
  }

  protected succeed(): void {
    if (this.#trace !== undefined) finishAppend(this.#trace, this.first, undefined)
    this.#listener.committed(this.first)
  }

  protected reject(error: LogError): void {
    if (this.#trace !== undefined) finishAppend(this.#trace, undefined, error)
    this.#listener.failed(error)
  }
}

/** One record of an append over several loglets. */
export interface AppendPart {
  readonly cell: LogletCell
  readonly expectedTail: Offset | undefined
}

/** Told the outcome of an append over several loglets: one offset per record. */
export interface OffsetsListener {
  committed(offsets: Offset[]): void
  /** `at` is the index of the record that was refused, if one was. */
  failed(error: LogError, at: number | undefined): void
}

/** Records of several loglets, all or none. */
export class AppendManyCommand extends Command {
  readonly parts: readonly AppendPart[]
  readonly offsets: Offset[] = []
  readonly frames: number
  #refusedAt: number | undefined
  readonly #traces: readonly (AppendTrace | undefined)[]
  override readonly records: number
  readonly #listener: OffsetsListener

  constructor(parts: readonly AppendPart[], listener: OffsetsListener) {
    super()
    this.parts = parts
    this.frames = parts.length
    this.records = parts.length
    this.#listener = listener
    this.#traces = parts.map(({ cell }) => beginAppend(cell.logId, 1))
  }

  judge(state: StoreState): void {
    const before = this.parts.map(({ cell }) => cell.tail)
    this.refusal = this.#placeAll(state, before)
    this.isKept = this.refusal === undefined
    this.parts.forEach(({ cell }, i) => {
      if (this.isKept) state.touch(cell)
      else cell.tail = before[i] as Offset
    })
  }

  /** Gives each record its offset on the draft, until one is refused. */
  #placeAll(state: StoreState, before: readonly Offset[]): LogError | undefined {
    for (const [i, { cell, expectedTail }] of this.parts.entries()) {
      const refusal = refuseAppend(state, cell, 1, expectedTail, before[i])
      if (refusal !== undefined) {
        this.#refusedAt = i
        return refusal
      }
      this.offsets.push(cell.tail)
      cell.tail++
    }
    return undefined
  }

  seal({ bytes, segmentSeed, base }: FramePlace): void {
    let at = this.start
    for (const offset of this.offsets) at = sealFrame(bytes, at, offset, segmentSeed, base + at)
  }

  override addTo(index: GrowingIndex, { bytes, base }: FramePlace): void {
    let at = this.start
    this.parts.forEach(({ cell }, i) => {
      const next = frameEndAt(bytes, at)
      index.add(cell.facts.id, this.offsets[i] as Offset, 1, base + at, base + next)
      at = next
    })
  }

  protected succeed(): void {
    this.#finishTraces(undefined)
    this.#listener.committed(this.offsets)
  }

  #finishTraces(error: LogError | undefined): void {
    this.#traces.forEach((trace, i) => {
      const first = error === undefined ? this.offsets[i] : undefined
      if (trace !== undefined) finishAppend(trace, first, error)
    })
  }

  protected reject(error: LogError): void {
    this.#finishTraces(error)
    this.#listener.failed(error, error === this.refusal ? this.#refusedAt : undefined)
  }
}

/** A change of state: one frame, whose promise resolves once the group is durable. */
export abstract class StateCommand<T> extends Command {
  readonly frames: number = 1
  readonly promise: Promise<T>
  readonly #kind: FrameKind
  readonly #body: Uint8Array
  protected loglet: number
  protected offset: Offset = 0
  #resolve: ((value: T) => void) | undefined
  #reject: ((error: LogError) => void) | undefined

  constructor(kind: FrameKind, loglet: number, body: Uint8Array) {
    super()
    this.#kind = kind
    this.loglet = loglet
    this.#body = body
    this.promise = new Promise<T>((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  /** What the promise resolves with. */
  protected abstract result(): T

  /** Lays its frame down in the buffer of its group. */
  lay(buffer: FrameBuffer): void {
    buffer.putFrame(this.#kind, this.loglet, this.#body)
  }

  /** May happen again at another place, so the header is written afresh. */
  seal({ bytes, segmentSeed, base }: FramePlace): void {
    const sum = bodyChecksum(this.#body, 0, this.#body.length)
    writeFrameHeader(bytes, this.start, this.#kind, this.loglet, this.#body.length, sum)
    sealFrame(bytes, this.start, this.offset, segmentSeed, base + this.start)
  }

  protected succeed(): void {
    this.#resolve?.(this.result())
  }

  protected reject(error: LogError): void {
    this.#reject?.(error)
  }
}

const NIL = pack(null)

export class TrimCommand extends StateCommand<Offset> {
  override readonly givesSpaceBack: boolean = true
  readonly #cell: LogletCell
  readonly #upTo: Offset

  constructor(cell: LogletCell, upTo: Offset) {
    super(FRAME_KIND.trim, cell.facts.id, NIL)
    this.#cell = cell
    this.#upTo = upTo
  }

  judge(state: StoreState): void {
    const cell = this.#cell
    this.refusal = state.hasDraftCell(cell) ? undefined : unknownLog(cell.logId)
    this.offset = effectiveTrimPoint(cell, this.#upTo)
    this.isKept = this.refusal === undefined && this.offset > cell.trimPoint
    if (!this.isKept) return
    cell.trimPoint = this.offset
    state.touch(cell)
  }

  protected result(): Offset {
    return this.offset
  }
}

export class SealCommand extends StateCommand<void> {
  override readonly givesSpaceBack: boolean = true
  readonly #cell: LogletCell
  readonly #reason: string | undefined

  constructor(cell: LogletCell, reason: string | undefined) {
    super(FRAME_KIND.seal, cell.facts.id, pack(reason ?? null))
    this.#cell = cell
    this.#reason = reason
  }

  judge(state: StoreState): void {
    const cell = this.#cell
    this.refusal = state.hasDraftCell(cell) ? undefined : unknownLog(cell.logId)
    this.isKept = this.refusal === undefined && cell.seal === undefined
    if (!this.isKept) return
    this.offset = cell.tail
    cell.seal = { reason: this.#reason }
    state.touch(cell)
  }

  protected result(): void {
    // What the caller asked for is the loglet's state now.
  }
}

export class CreateCommand extends StateCommand<void> {
  readonly #logId: LogId

  constructor(logId: LogId) {
    super(FRAME_KIND.create, 0, pack(logId))
    this.#logId = logId
    this.offset = OLDEST_POSITION
  }

  judge(state: StoreState): void {
    this.isKept = !state.hasDraftLog(this.#logId)
    if (this.isKept) this.loglet = state.draftCreate(this.#logId, this.offset)
  }

  protected result(): void {
    // Nothing to tell but that it is done.
  }
}

export class DeleteCommand extends StateCommand<void> {
  override readonly givesSpaceBack: boolean = true
  readonly #logId: LogId

  constructor(logId: LogId) {
    super(FRAME_KIND.delete, 0, pack(logId))
    this.#logId = logId
  }

  judge(state: StoreState): void {
    this.isKept = state.hasDraftLog(this.#logId)
    this.refusal = this.isKept ? undefined : unknownLog(this.#logId)
    if (this.isKept) state.draftDelete(this.#logId)
  }

  protected result(): void {
    // Nothing to tell but that it is done.
  }
}

/** Says that segments up to `last` hold nothing that anybody needs, before they are unlinked. */
export class DeadSegmentsCommand extends StateCommand<void> {
  override readonly givesSpaceBack: boolean = true

  constructor(last: number) {
    super(FRAME_KIND.deadSegments, 0, NIL)
    this.offset = last
  }

  judge(state: StoreState): void {
    this.isKept = state.firstSegmentDraft <= this.offset
    if (this.isKept) state.draftDeadSegments(this.offset)
  }

  protected result(): void {
    // Nothing to tell but that it is done.
  }
}
