/**
 * A store that another process may be writing, followed without a lock and without changing a
 * byte. It shows only what is below the durable mark: one group behind a live writer, at most a
 * second when that is idle. What looks like damage is believed only if it is still there after
 * looking again, because a writer may be in the middle of it.
 */
import { LogError, type LogId } from '../codec/errors.ts'
import { emptyFacts, type LogFacts, type StoreFacts } from '../codec/log-state.ts'
import { sameStore } from '../codec/segment-header.ts'
import type { Metadata } from '../codec/metadata.ts'
import { systemClock } from './clock.ts'
import { closed, corrupt, openFailed, readOnly, unknownLog, unsupportedVersion } from './errors.ts'
import { METADATA_FILE, segmentFile, segmentsAmong } from './file-names.ts'
import { InFlight } from './in-flight.ts'
import { isMissing } from './io.ts'
import { readMetadata } from './metadata-file.ts'
import type { Metrics, RecoveryReport } from './metrics.ts'
import { NodeFileSystem } from './node-file-system.ts'
import type { ResolvedStoreOptions } from './options.ts'
import { judgeOlderSegments } from './recovery-older.ts'
import { SegmentFiles } from './segment-files.ts'
import { isNewerVersion, readSegmentHead } from './segment-head.ts'
import { SegmentReader } from './segment-reader.ts'
import { SegmentSet } from './segment-set.ts'
import type { Store } from './store.ts'
import { StoreMetrics } from './store-metrics.ts'
import type { StoreEnvironment } from './store-opening.ts'
import { readLoglet, type ReadOutcome, type ReadRequest } from './store-reads.ts'
import { LogletCell } from './store-state.ts'
import { StreamCursor } from './stream-cursor.ts'

/** How often the files are looked at. */
const POLL_MS = 50
/** How long something that looks like damage may turn out to be a writer at work. */
const PATIENCE_MS = 2000

const REAL: StoreEnvironment = { fileSystem: new NodeFileSystem(), clock: systemClock }

const NOTHING_RECOVERED: RecoveryReport = Object.freeze({
  droppedBytes: 0,
  droppedFrames: 0,
  metadataRebuilt: false,
  durationMs: 0,
  findings: Object.freeze([]),
})

/** What following needs once there is a stream to follow. */
interface Following {
  readonly cursor: StreamCursor
  readonly segments: SegmentSet
  readonly reader: SegmentReader
}

export class ReadOnlyStore implements Store {
  readonly recovery: RecoveryReport = NOTHING_RECOVERED
  readonly #options: ResolvedStoreOptions
  readonly #environment: StoreEnvironment
  readonly #files: SegmentFiles
  readonly #cells = new Map<number, LogletCell>()
  readonly #seen = new Map<LogletCell, string>()
  readonly #metrics = new StoreMetrics(0)
  readonly #reads = new InFlight()
  #following: Following | undefined
  #failure: LogError | undefined
  #isClosed = false
  #timer: unknown
  #looking: Promise<void> | undefined
  #polling: Promise<void> | undefined
  #closing: Promise<void> | undefined

  /**
   * Opens an existing store. Rejects with OPEN_FAILED if there is none, with CORRUPT or
   * UNSUPPORTED_VERSION for what stays so after looking again.
   */
  static async open(
    options: ResolvedStoreOptions,
    environment: StoreEnvironment = REAL,
  ): Promise<ReadOnlyStore> {
    const store = new ReadOnlyStore(options, environment)
    try {
      // A directory that is not there will not come by waiting.
      await environment.fileSystem.list(options.dir)
      await store.#patiently(() => store.#look())
    } catch (error) {
      await store.#files.close()
      throw openFailed(error, error instanceof LogError)
    }
    store.#pollLater()
    return store
  }

  private constructor(options: ResolvedStoreOptions, environment: StoreEnvironment) {
    this.#options = options
    this.#environment = environment
    this.#files = new SegmentFiles(environment.fileSystem, options.dir)
  }

  get failure(): LogError | undefined {
    return this.#failure
  }

  get #facts(): StoreFacts {
    return this.#following?.cursor.facts ?? NO_FACTS
  }

  logs(): Iterable<LogFacts> {
    return this.#facts.logs.values()
  }

  log(logId: LogId): LogFacts | undefined {
    return this.#facts.logs.get(logId)
  }

  cell(loglet: number): LogletCell | undefined {
    this.#updateCells()
    return this.#cells.get(loglet)
  }

  /** Tries until it works, or has not for as long as a writer could be in the middle of it. */
  async #patiently<T>(task: () => Promise<T>): Promise<T> {
    const { clock } = this.#environment
    for (const startedAt = clock.now(); ;) {
      try {
        return await task()
      } catch (error) {
        const isPassing = isMissing(error) || LogError.is(error, 'CORRUPT')
        if (!isPassing || this.#isClosed) throw error
        if (clock.now() - startedAt >= PATIENCE_MS) throw asDamage(error)
        await new Promise<void>((resolve) => clock.setTimer(resolve, POLL_MS, true))
      }
    }
  }

  /** Looks at the files, and shows what came under the mark; looks under way are shared. */
  #look(): Promise<void> {
    this.#looking ??= this.#lookOnce().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  async #lookOnce(): Promise<void> {
    const { fileSystem } = this.#environment
    const found = await readMetadata(fileSystem, this.#options.dir)
    if (isNewerVersion(found.version)) throw unsupportedVersion(METADATA_FILE, found.version)
    this.#following ??= await this.#start(found.metadata, found.isThere)
    if (this.#following === undefined) return
    try {
      await this.#follow(this.#following, found.metadata)
    } catch (error) {
      if (!isMissing(error)) throw error
      await this.#startAgain(this.#following, found.metadata, error)
    }
  }

  /**
   * The segment under the cursor was trimmed away before it was read to its end: goes on at the
   * newest segment, if that says so. What readers hold stays what it was, only further.
   */
  async #startAgain(
    before: Following,
    metadata: Metadata | undefined,
    cause: unknown,
  ): Promise<void> {
    const again = await this.#start(metadata, true)
    if (again === undefined || again.cursor.facts.firstSegment <= before.cursor.segment) throw cause
    for (const [id, facts] of before.cursor.facts.loglets) {
      const now = again.cursor.facts.loglets.get(id)
      if (now !== undefined) again.cursor.facts.loglets.set(id, Object.assign(facts, now))
    }
    this.#following = again
    await this.#follow(again, metadata)
  }

  async #start(
    metadata: Metadata | undefined,
    hasMetadata: boolean,
  ): Promise<Following | undefined> {
    const { fileSystem } = this.#environment
    const { dir, indexCacheBytes } = this.#options
    const cursor = await StreamCursor.start(fileSystem, dir)
    if (cursor === undefined) {
      if (!hasMetadata) throw new Error(`There is no store in ${dir}`)
      if (metadata === undefined || metadata.place.groupNumber === 0) return undefined
      throw corrupt('R6', segmentFile(metadata.newestSegment), 0, [], 'no segment is there')
    }
    // What was trimmed since the segment began is known to be dead before anybody asks for it.
    await cursor.advance(metadata)
    const { storeId, facts, index } = cursor
    const base = await readSegmentHead(fileSystem, dir, cursor.segment, 'header')
    const names = segmentsAmong(await fileSystem.list(dir))
    const last = { segment: cursor.segment, end: cursor.position, size: base.size }
    const live = await judgeOlderSegments(fileSystem, dir, base, facts, names, last)
    const files = this.#files
    const segments = new SegmentSet(
      { fileSystem, dir, storeId, files, indexCacheBytes, mayWrite: false },
      live,
      index,
    )
    return { cursor, segments, reader: new SegmentReader(segments, files, storeId) }
  }

  async #follow({ cursor, segments }: Following, metadata: Metadata | undefined): Promise<void> {
    const isOurs = metadata === undefined || sameStore(metadata.storeId, cursor.storeId)
    if (!isOurs) throw corrupt('R6', METADATA_FILE, 0, [], 'the metadata is of another store')
    do {
      await cursor.advance(metadata)
      segments.grow(cursor.position, cursor.position)
    } while (await this.#step(cursor, segments))
    if (metadata !== undefined && metadata.place.segment > cursor.segment) {
      const what = 'what was durable in the segment is not there'
      throw corrupt('R4', segmentFile(cursor.segment + 1), 0, [], what)
    }
    await segments.drop(cursor.facts.firstSegment - 1)
    this.#updateCells()
  }

  async #step(cursor: StreamCursor, segments: SegmentSet): Promise<boolean> {
    if (!(await cursor.step())) return false
    segments.begin(cursor.segment, cursor.facts.loglets.values())
    segments.useTailIndex(cursor.index)
    return true
  }

  /** Makes the cells what the facts are, and tells those who watch them. */
  #updateCells(): void {
    const { logs, loglets } = this.#facts
    for (const { logId, links } of logs.values()) {
      for (const link of links) {
        const facts = loglets.get(link.loglet)
        if (facts === undefined || this.#cells.has(link.loglet)) continue
        const cell = new LogletCell(facts, logId, link)
        cell.onWatched = () => this.#stayAlive()
        this.#cells.set(link.loglet, cell)
      }
    }
    for (const [id, cell] of this.#cells) {
      if (!loglets.has(id)) {
        this.#cells.delete(id)
        this.#seen.delete(cell)
        cell.end(unknownLog(cell.logId))
      } else this.#notifyIfChanged(cell)
    }
  }

  #notifyIfChanged(cell: LogletCell): void {
    const { tail, trimPoint, seal } = cell.facts
    const now = `${tail} ${trimPoint} ${String(seal !== undefined)}`
    if (this.#seen.get(cell) === now) return
    this.#seen.set(cell, now)
    cell.notify()
  }

  #pollLater(): void {
    if (this.#isClosed || this.#failure !== undefined) return
    const poll = (): void => {
      this.#timer = undefined
      this.#polling = this.#poll().finally(() => {
        this.#polling = undefined
        this.#pollLater()
      })
    }
    const isAwaited = [...this.#cells.values()].some((cell) => cell.isWatched)
    this.#timer = this.#environment.clock.setTimer(poll, POLL_MS, isAwaited)
  }

  /** Somebody waits for what another process appends: the process must stay for it. */
  #stayAlive(): void {
    if (this.#timer === undefined) return
    this.#environment.clock.clearTimer(this.#timer)
    this.#pollLater()
  }

  async #poll(): Promise<void> {
    try {
      await this.#patiently(() => this.#look())
    } catch (error) {
      if (this.#isClosed) return
      if (!(error instanceof LogError)) {
        // The disk, or this process, may be out of something for a while: the next poll will see.
        this.#options.logger.warn({ err: error }, 'The store could not be looked at')
        return
      }
      this.#failure = error
      this.#options.logger.error({ err: error }, 'The store can not be followed any more')
      for (const cell of this.#cells.values()) cell.end(this.#failure)
    }
  }

  append(...args: Parameters<Store['append']>): void {
    args[4].failed(this.#refusal())
  }

  appendBatch(...args: Parameters<Store['appendBatch']>): void {
    args[3].failed(this.#refusal())
  }

  appendMany(...args: Parameters<Store['appendMany']>): void {
    args[2].failed(this.#refusal(), undefined)
  }

  trim(): Promise<never> {
    return Promise.reject(this.#refusal())
  }

  seal(): Promise<never> {
    return Promise.reject(this.#refusal())
  }

  /** Logs that exist already need not be created, so asking for them is fine. */
  createLogs(logIds: readonly LogId[]): Promise<void> {
    const isThere = logIds.every((logId) => this.log(logId) !== undefined)
    return isThere && !this.#isClosed ? Promise.resolve() : Promise.reject(this.#refusal())
  }

  deleteLog(): Promise<never> {
    return Promise.reject(this.#refusal())
  }

  #refusal(): LogError {
    return this.#isClosed ? closed() : readOnly()
  }

  /** A segment may vanish beneath a read: then the state will say that it is dead, or it is lost. */
  read(cell: LogletCell, request: ReadRequest): Promise<ReadOutcome> {
    return this.#reads.run(() => this.#read(cell, request))
  }

  async #read(cell: LogletCell, request: ReadRequest): Promise<ReadOutcome> {
    const { visit } = request
    let next = request.from
    const visitOnce: ReadRequest['visit'] = (offset, ...record) => {
      if (offset < next) return true
      const goesOn = visit(offset, ...record)
      next = offset + 1
      return goesOn
    }
    return this.#patiently(async () => {
      const following = this.#following
      if (following === undefined) return { kind: 'tail' }
      try {
        const again = { ...request, visit: visitOnce }
        return await readLoglet(cell, following.cursor.facts, following.reader, again)
      } catch (error) {
        if (this.#failure === undefined) await this.#look()
        throw isMissing((error as Error).cause) ? (error as Error).cause : error
      }
    })
  }

  metrics(): Metrics {
    const live = this.#following?.segments.live ?? []
    return this.#metrics.snapshot({
      queueBytes: 0,
      waitingBytes: 0,
      segments: live.length,
      diskBytes: live.reduce((sum, { size }) => sum + size, 0),
    })
  }

  shutdown(): Promise<void> {
    this.#closing ??= this.#shutdown()
    return this.#closing
  }

  async #shutdown(): Promise<void> {
    this.#isClosed = true
    this.#environment.clock.clearTimer(this.#timer)
    for (const cell of this.#cells.values()) cell.end(closed())
    await this.#polling
    await this.#reads.idle()
    await this.#files.close()
  }
}

const NO_FACTS: StoreFacts = emptyFacts()

/** A file that stayed away is a live segment that is missing. */
function asDamage(error: unknown): unknown {
  if (!isMissing(error)) return error
  const path = (error as { path?: string }).path ?? ''
  const file = path.slice(path.lastIndexOf('/') + 1)
  return corrupt('R6', file, 0, [], 'the segment is missing')
}
