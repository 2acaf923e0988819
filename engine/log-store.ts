/**
 * The durable store: one directory, many loglets, one writer. It knows offsets, never LSNs (but
 * for naming what damage puts at stake).
 *
 *     open ─┬─▶ closing ──▶ closed
 *           └─▶ failed ───▶ closed      what is durable can still be read while it has failed
 */
import { aborted, LogError, logError, type LogId } from '../codec/errors.ts'
import { FRAME_HEADER_BYTES } from '../codec/format.ts'
import type { LogFacts } from '../codec/log-state.ts'
import type { Place } from '../codec/metadata.ts'
import type { Offset } from '../codec/offset.ts'
import { RecordEncoder, type Keys } from '../codec/record.ts'
import { BurstClock, type Burst } from './burst-clock.ts'
import { systemClock } from './clock.ts'
import {
  AppendCommand,
  AppendManyCommand,
  CreateCommand,
  DeadSegmentsCommand,
  DeleteCommand,
  SealCommand,
  TrimCommand,
  type Command,
  type FramePlace,
  type OffsetListener,
  type OffsetsListener,
  type StateCommand,
} from './commands.ts'
import { DeadSegments, needsSegment } from './dead-segments.ts'
import { batchTooLarge, closed, emptyBatch, storeFailed } from './errors.ts'
import type { FrameBuffer } from './frame-buffer.ts'
import { HaltingFileSystem } from './halting-file-system.ts'
import { InFlight } from './in-flight.ts'
import { LogStoreWriter } from './log-store-writer.ts'
import type { Metrics, RecoveryReport } from './metrics.ts'
import { NodeFileSystem } from './node-file-system.ts'
import type { ResolvedStoreOptions } from './options.ts'
import { Reserve, snapshotRoom } from './reserve.ts'
import type { SegmentWriter } from './segment-writer.ts'
import type { AppendTerms, PartInput, RecordInput, Store } from './store.ts'
import { openStore, type OpenedStore, type StoreEnvironment } from './store-opening.ts'
import { readLoglet, type ReadOutcome, type ReadRequest } from './store-reads.ts'
import type { LogletCell } from './store-state.ts'

const REAL: StoreEnvironment = { fileSystem: new NodeFileSystem(), clock: systemClock }

export class LogStore implements Store {
  readonly recovery: RecoveryReport
  readonly #options: ResolvedStoreOptions
  readonly #environment: StoreEnvironment & { readonly fileSystem: HaltingFileSystem }
  readonly #parts: OpenedStore
  readonly #encoder: RecordEncoder
  readonly #reserve: Reserve
  readonly #writer: LogStoreWriter
  readonly #dead: DeadSegments
  readonly #reads = new InFlight()
  readonly #bursts: BurstClock
  #isEncoding = false
  /** Why nothing new is taken on: closed, or failed. */
  #refusal: LogError | undefined
  #closing: Promise<void> | undefined

  /**
   * Opens or makes the store in `options.dir`. Rejects with LOCKED, LOCK_UNAVAILABLE, CORRUPT,
   * UNSUPPORTED_VERSION or OPEN_FAILED; nothing is changed on disk by the first four.
   */
  static async open(
    options: ResolvedStoreOptions,
    environment: StoreEnvironment = REAL,
  ): Promise<LogStore> {
    const fileSystem = new HaltingFileSystem(environment.fileSystem)
    const halting = { ...environment, fileSystem }
    return new LogStore(options, halting, await openStore(options, halting))
  }

  private constructor(
    options: ResolvedStoreOptions,
    environment: StoreEnvironment & { readonly fileSystem: HaltingFileSystem },
    parts: OpenedStore,
  ) {
    this.#options = options
    this.#environment = environment
    this.#parts = parts
    this.recovery = parts.recovery
    this.#bursts = new BurstClock(environment.clock)
    this.#encoder = new RecordEncoder(options.maxRecordBytes)
    this.#reserve = this.#makeReserve()
    this.#writer = this.#makeWriter()
    this.#dead = this.#makeDeadSegments()
    // Without a group there is nothing to trim, and a store that was never written stays one file.
    if (parts.current !== undefined) this.#reserve.prepareSoon()
    this.#dead.look()
  }

  #makeReserve(): Reserve {
    const { judgement, background, metadata, state } = this.#parts
    const { fileSystem, clock } = this.#environment
    const { dir, reserveBytes } = this.#options
    const [next] = judgement.trailing
    return new Reserve(
      {
        fileSystem,
        dir,
        clock,
        background,
        metadata,
        bytes: () => snapshotRoom(state.snapshotBytes) + reserveBytes,
      },
      (judgement.tail?.head.segment ?? 0) + 1,
      next?.size ?? 0,
    )
  }

  #makeWriter(): LogStoreWriter {
    const { storeId, queue, state, metadata, metrics, place, current, judgement } = this.#parts
    const { segmentSizeBytes, reserveBytes, batchCommitDelayMs, commitMode } = this.#options
    return new LogStoreWriter(
      {
        clock: this.#environment.clock,
        storeId,
        queue,
        state,
        metadata,
        metrics,
        reserve: this.#reserve,
        segmentSizeBytes,
        reserveBytes,
        batchCommitDelayMs,
        isInline: commitMode === 'inline',
        hooks: {
          onRoll: (segment, end, old) => this.#onRoll(segment, end, old),
          onDurable: (commands, at, fileEnd) => this.#onDurable(commands, at, fileEnd),
          onAcknowledged: (changed) => this.#onAcknowledged(changed),
          isTailDead: () => this.#isTailDead(),
          onFailed: (error) => this.#onFailed(error),
        },
      },
      place.now,
      current,
      judgement.tail?.head.start ?? 0,
    )
  }

  #makeDeadSegments(): DeadSegments {
    const { background, state, segments } = this.#parts
    return new DeadSegments({
      fileSystem: this.#environment.fileSystem,
      dir: this.#options.dir,
      background,
      state,
      segments,
      declare: (last) => this.#change(new DeadSegmentsCommand(last)),
      onFreed: () => this.#reserve.retry(),
    })
  }

  get failure(): LogError | undefined {
    return this.#writer.failure
  }

  logs(): Iterable<LogFacts> {
    return this.#parts.state.facts.logs.values()
  }

  log(logId: LogId): LogFacts | undefined {
    return this.#parts.state.log(logId)
  }

  cell(loglet: number): LogletCell | undefined {
    return this.#parts.state.cell(loglet)
  }

  append(
    cell: LogletCell,
    payload: unknown,
    keys: Keys | undefined,
    terms: AppendTerms | undefined,
    listener: OffsetListener,
  ): void {
    const command = new AppendCommand(cell, 1, terms?.expectedTail, listener)
    const buffer = this.#begin(command, terms)
    if (buffer === undefined) return
    // As `#enqueue`, without a closure: this is the hot path.
    const start = buffer.end
    try {
      buffer.putRecord(this.#encoder, cell.facts.id, payload, keys, stamp(cell, command.called))
    } catch (error) {
      this.#refuse(command, buffer, start, error)
      return
    }
    this.#push(command, start, terms)
  }

  appendBatch(
    cell: LogletCell,
    records: readonly RecordInput[],
    terms: AppendTerms | undefined,
    listener: OffsetListener,
  ): void {
    const command = new AppendCommand(cell, records.length, terms?.expectedTail, listener)
    this.#enqueue(command, terms, (buffer) => {
      this.#putAll(command, buffer, records, () => cell)
    })
  }

  appendMany(
    parts: readonly PartInput[],
    terms: AppendTerms | undefined,
    listener: OffsetsListener,
  ): void {
    const command = new AppendManyCommand(parts, listener)
    this.#enqueue(command, terms, (buffer) => {
      this.#putAll(command, buffer, parts, (i) => (parts[i] as PartInput).cell)
    })
  }

  #putAll(
    { called }: Command,
    buffer: FrameBuffer,
    records: readonly RecordInput[],
    cellOf: (i: number) => LogletCell,
  ): void {
    if (records.length === 0) throw emptyBatch()
    const start = buffer.end
    records.forEach(({ payload, keys }, i) => {
      const cell = cellOf(i)
      buffer.putRecord(this.#encoder, cell.facts.id, payload, keys, stamp(cell, called))
      if (buffer.end - start > this.#options.maxBatchBytes + FRAME_HEADER_BYTES) {
        throw batchTooLarge(this.#options.maxBatchBytes)
      }
    })
  }

  /** Lays a command's frames down and queues it; whatever is wrong is told to the command. */
  #enqueue(
    command: Command,
    terms: AppendTerms | undefined,
    lay: (buffer: FrameBuffer) => void,
  ): void {
    const buffer = this.#begin(command, terms)
    if (buffer === undefined) return
    const start = buffer.end
    try {
      lay(buffer)
    } catch (error) {
      this.#refuse(command, buffer, start, error)
      return
    }
    this.#push(command, start, terms)
  }

  /** Where the command's frames go; undefined if it is refused. Then nothing else may begin. */
  #begin(command: Command, terms: AppendTerms | undefined): FrameBuffer | undefined {
    const refusal = this.#refusal ?? (this.#isEncoding ? reentrant() : abortOf(terms))
    if (refusal !== undefined) {
      command.fail(refusal)
      return undefined
    }
    this.#isEncoding = true
    command.called = this.#bursts.now()
    return this.#parts.queue.buffer()
  }

  #refuse(command: Command, buffer: FrameBuffer, start: number, error: unknown): void {
    this.#isEncoding = false
    buffer.end = start
    if (!(error instanceof LogError)) throw error
    command.fail(error)
  }

  #push(command: Command, start: number, terms: AppendTerms | undefined): void {
    this.#isEncoding = false
    this.#parts.queue.push(command, start, terms?.whenFull, terms?.signal)
    this.#writer.wake()
  }

  #change<T>(command: StateCommand<T>): Promise<T> {
    this.#enqueue(command, undefined, (buffer) => {
      command.lay(buffer)
    })
    return command.promise
  }

  trim(cell: LogletCell, upTo: Offset): Promise<Offset> {
    return this.#change(new TrimCommand(cell, upTo))
  }

  seal(cell: LogletCell, reason: string | undefined): Promise<void> {
    return this.#change(new SealCommand(cell, reason))
  }

  async createLogs(logIds: readonly LogId[]): Promise<void> {
    const missing = logIds.filter((logId) => this.log(logId) === undefined)
    await Promise.all(missing.map((logId) => this.#change(new CreateCommand(logId))))
  }

  deleteLog(logId: LogId): Promise<void> {
    return this.#change(new DeleteCommand(logId))
  }

  read(cell: LogletCell, request: ReadRequest): Promise<ReadOutcome> {
    const { state, reader } = this.#parts
    return this.#reads.run(() => readLoglet(cell, state.facts, reader, request))
  }

  #onRoll(segment: number, end: Place | undefined, old: SegmentWriter | undefined): void {
    const { segments, state, background, metadata } = this.#parts
    const packed = segments.begin(segment, state.facts.loglets.values())
    if (end !== undefined && packed !== undefined) {
      const segmentEnd = { ...end, end: end.position }
      background.run('Writing an index', () => segments.save(end.segment, packed, segmentEnd))
    }
    if (old !== undefined) background.run('Ending a segment', () => old.finish())
    metadata.onRoll()
    this.#dead.look()
  }

  #onDurable(commands: readonly Command[], at: FramePlace, fileEnd: number): void {
    const { segments, metadata, place } = this.#parts
    for (const command of commands) if (command.isKept) command.addTo(segments.tailIndex, at)
    place.now = this.#writer.place
    segments.grow(place.now.position, fileEnd)
    metadata.onCommit()
  }

  #onAcknowledged(changed: readonly LogletCell[]): void {
    let frees = false
    for (const cell of changed) {
      frees ||= cell.trimPoint > 0 || cell.ended !== undefined
      cell.notify()
    }
    if (frees) this.#dead.look()
    this.#reserve.growSoon()
    this.#reserve.prepareSoon()
  }

  #isTailDead(): boolean {
    const { segments, state } = this.#parts
    for (const cell of state.cells()) if (needsSegment(cell, segments.tailIndex)) return false
    return true
  }

  #onFailed(error: LogError): void {
    this.#refusal ??= error
    this.#environment.fileSystem.halt(error)
    this.#options.logger.error({ err: error }, 'The store has failed')
    this.#parts.metadata.stop()
    this.#dead.stop()
    for (const cell of this.#parts.state.cells()) cell.end(error)
  }

  metrics(): Metrics {
    const { metrics, queue, segments } = this.#parts
    const { live } = segments
    return metrics.snapshot({
      queueBytes: queue.queuedBytes,
      waitingBytes: queue.waitingBytes,
      segments: live.length,
      diskBytes: live.reduce((sum, { size }) => sum + size, this.#reserve.size),
    })
  }

  shutdown(graceMs: number): Promise<void> {
    this.#closing ??= this.#shutdown(graceMs)
    return this.#closing
  }

  async #shutdown(graceMs: number): Promise<void> {
    this.#refusal ??= closed()
    this.#writer.hurry()
    const { clock } = this.#environment
    let timer: unknown
    const isLate = new Promise<'late'>((resolve) => {
      timer = clock.setTimer(() => resolve('late'), graceMs, true)
    })
    const landed = this.#land()
    const outcome = await Promise.race([landed, isLate])
    clock.clearTimer(timer)
    if (outcome === 'late') throw this.#giveUp(landed)
  }

  /** Commits what was accepted, says that it was, and lets go of everything. */
  async #land(): Promise<void> {
    const { background, metadata, state, files, lock } = this.#parts
    await this.#writer.whenIdle()
    this.#dead.stop()
    metadata.stop()
    await background.idle()
    if (this.failure === undefined) await this.#recordCleanClose()
    for (const cell of state.cells()) cell.end(closed())
    await this.#reads.idle()
    await this.#letGo([this.#writer, this.#reserve, files])
    await this.#letGo([{ close: () => lock.release() }])
  }

  /** What is durable stays so even if a descriptor's close fails; it is closed all the same. */
  async #letGo(parts: readonly { close(): Promise<void> }[]): Promise<void> {
    for (const part of parts) {
      await part.close().catch((error: unknown) => {
        this.#options.logger.warn({ err: error }, 'A file of the store did not close properly')
      })
    }
  }

  /** Without room for it, or with a disk that refuses it, the next open recovers instead. */
  async #recordCleanClose(): Promise<void> {
    try {
      await this.#parts.metadata.write(true)
    } catch (error) {
      this.#options.logger.warn({ err: error }, 'The clean close could not be recorded')
    }
  }

  /** Something is stuck: everybody is told, and `landed` goes on when it returns. */
  #giveUp(landed: Promise<void>): LogError {
    const { queue, metadata, state } = this.#parts
    for (const command of queue.drain()) command.fail(closed())
    const error = storeFailed(new Error('an operation on the store has not returned'))
    this.#environment.fileSystem.halt(error)
    this.#writer.abandon(error)
    metadata.stop()
    this.#dead.stop()
    for (const cell of state.cells()) cell.end(error)
    landed.catch((cause: unknown) => {
      this.#options.logger.error({ err: cause }, 'Closing the store failed')
    })
    return error
  }
}

/** The time of a record: never before that of the one before it in its loglet. */
function stamp(cell: LogletCell, { wallMs }: Burst): number {
  if (wallMs > cell.createdAtMs) cell.createdAtMs = wallMs
  return cell.createdAtMs
}

function abortOf(terms: AppendTerms | undefined): LogError | undefined {
  const signal = terms?.signal
  return signal?.aborted === true ? aborted(signal) : undefined
}

function reentrant(): LogError {
  return logError('ENCODE_FAILED', 'A payload must not append while it is being encoded')
}
