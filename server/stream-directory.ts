/**
 * The streams of a server by their paths: finds, creates, deletes and expires them. A stream is
 * there once its entry is durable, and gone once its log is. One that others were forked from stays,
 * out of reach, until they are gone too.
 */
import { LogError, type Bifrost, type Entry, type Logger } from '../index.ts'
import { HttpError, notFound, wasDeleted } from './http-error.ts'
import { START } from './offset.ts'
import type { HandlerLimits } from './options.ts'
import { Registry } from './registry.ts'
import { isStreamLog, streamLogId, type StreamEntry } from './stream-entry.ts'
import { encodeRecord } from './stream-record.ts'
import { StreamWriter } from './stream-writer.ts'
import { Stream } from './stream.ts'

/** What a stream is created with. */
export interface StreamPlan {
  readonly entry: Omit<StreamEntry, 'incarnation' | 'isGone'>
  /** What it is a fork of. */
  readonly source: Stream | undefined
  readonly messages: readonly Uint8Array[]
}

const SWEEP_MS = 1000

export class StreamDirectory {
  readonly #bifrost: Bifrost
  readonly #limits: HandlerLimits
  readonly #logger: Logger
  readonly #registry: Registry
  readonly #byPath = new Map<string, Stream>()
  readonly #byIncarnation = new Map<number, Stream>()
  readonly #writers = new WeakMap<Stream, StreamWriter>()
  readonly #creating = new Map<string, Promise<unknown>>()
  /** Those that time may end. */
  readonly #mortal = new Set<Stream>()
  readonly #clock: NodeJS.Timeout

  private constructor(bifrost: Bifrost, limits: HandlerLimits, logger: Logger, registry: Registry) {
    this.#bifrost = bifrost
    this.#limits = limits
    this.#logger = logger
    this.#registry = registry
    this.#clock = setInterval(() => this.#sweep(), SWEEP_MS).unref()
  }

  /** Replays the registry, and finishes what a crash left half done. */
  static async open(
    bifrost: Bifrost,
    limits: HandlerLimits,
    logger: Logger,
  ): Promise<StreamDirectory> {
    const registry = await Registry.open(bifrost, logger)
    const directory = new StreamDirectory(bifrost, limits, logger, registry)
    // A fork's incarnation is greater than its source's, which therefore is there already.
    const entries = registry.entries().sort((a, b) => a.incarnation - b.incarnation)
    for (const entry of entries) directory.#add(entry)
    await directory.#tidyUp()
    return directory
  }

  get size(): number {
    return this.#byIncarnation.size
  }

  streams(): IterableIterator<Stream> {
    return this.#byIncarnation.values()
  }

  /** Stops looking at the time. */
  async close(): Promise<void> {
    clearInterval(this.#clock)
    await this.#registry.settled()
  }

  /** The stream at a path. Throws 404, and 410 for one that is kept only for its forks. */
  async find(path: string): Promise<Stream> {
    const stream = await this.#at(path)
    if (stream === undefined) throw notFound()
    if (stream.entry.isGone) throw wasDeleted()
    return stream
  }

  /** What stands at a path, once a delete there is over. */
  async #at(path: string): Promise<Stream | undefined> {
    for (;;) {
      const stream = this.#byPath.get(path)
      if (stream === undefined) return undefined
      const isOver = !stream.entry.isGone && stream.isExpired(Date.now())
      if (stream.deleting === undefined && !isOver) return stream
      await this.delete(stream)
    }
  }

  writer(stream: Stream): StreamWriter {
    const known = this.#writers.get(stream)
    if (known !== undefined) return known
    const writer = new StreamWriter(this.#registry, stream)
    this.#writers.set(stream, writer)
    return writer
  }

  /**
   * The stream at a path, or a new one as `plan` says; `isNew` tells which. A new one and its first
   * data are durable when this resolves.
   */
  async ensure(
    path: string,
    plan: () => StreamPlan,
  ): Promise<{ readonly stream: Stream; readonly isNew: boolean }> {
    for (;;) {
      await this.#creating.get(path)?.catch(() => undefined)
      const stream = await this.#at(path)
      if (stream !== undefined) return { stream, isNew: false }
      // Somebody may have been faster while this waited.
      if (this.#creating.has(path) || this.#byPath.has(path)) continue
      return { stream: await this.#createAt(path, plan()), isNew: true }
    }
  }

  async #createAt(path: string, plan: StreamPlan): Promise<Stream> {
    const { source } = plan
    if (this.size + this.#creating.size >= this.#limits.maxStreams) {
      throw new HttpError(507, 'TOO_MANY_STREAMS', 'There are as many streams as there may be')
    }
    if (source !== undefined) this.#holdSource(source)
    const created = this.#create(plan)
    this.#creating.set(path, created)
    try {
      return await created
    } catch (error) {
      if (source !== undefined) this.#releaseSource(source)
      throw error
    } finally {
      this.#creating.delete(path)
    }
  }

  #holdSource(source: Stream): void {
    const isThere = this.#byIncarnation.get(source.entry.incarnation) === source
    if (!isThere || source.deleting !== undefined || source.entry.isGone) throw notFound()
    source.forks++
  }

  async #create({ entry: wanted, messages }: StreamPlan): Promise<Stream> {
    const incarnation = this.#registry.takeIncarnation()
    const entry: StreamEntry = { ...wanted, incarnation, isGone: false }
    const logId = streamLogId(entry)
    await this.#bifrost.createLog(logId)
    try {
      await this.#registry.put(entry, firstRecords(logId, entry, messages))
    } catch (error) {
      await this.#bifrost.deleteLog(logId).catch(() => undefined)
      throw error
    }
    return this.#add(entry, true)
  }

  /** `isNew` tells a fork that its source knows of it already. */
  #add(entry: StreamEntry, isNew = false): Stream {
    const source = entry.fork && this.#byIncarnation.get(entry.fork.source)
    const stream = new Stream(this.#bifrost, this.#limits, entry, source)
    if (source !== undefined && !isNew) source.forks++
    this.#byIncarnation.set(entry.incarnation, stream)
    this.#byPath.set(entry.path, stream)
    if (entry.ttlSeconds !== undefined || entry.expiresAtMs !== undefined) this.#mortal.add(stream)
    return stream
  }

  /** Deletes a stream, or puts it out of reach while it has forks; durable when it resolves. */
  delete(stream: Stream): Promise<void> {
    stream.deleting ??= this.#delete(stream).finally(() => (stream.deleting = undefined))
    return stream.deleting
  }

  async #delete(stream: Stream): Promise<void> {
    if (stream.forks > 0) {
      const entry = { ...stream.entry, isGone: true }
      await this.#registry.put(entry, [])
      stream.changed(entry)
      stream.hub.fail(notFound())
      this.#mortal.delete(stream)
      return
    }
    await this.#bifrost.deleteLog(stream.logId).catch((error: unknown) => {
      // Somebody else deleted it, which is what was wanted.
      if (!LogError.is(error, 'UNKNOWN_LOG')) throw error
    })
    this.#forget(stream)
    if (stream.source !== undefined) this.#releaseSource(stream.source)
  }

  #forget(stream: Stream): void {
    const { incarnation, path } = stream.entry
    this.#byIncarnation.delete(incarnation)
    if (this.#byPath.get(path) === stream) this.#byPath.delete(path)
    this.#mortal.delete(stream)
    this.#registry.drop(incarnation)
  }

  /** A fork is gone, or was not made after all: what was kept only for it goes too. */
  #releaseSource(source: Stream): void {
    source.forks--
    if (source.forks === 0 && source.entry.isGone) this.#deleteInBackground(source)
  }

  #deleteInBackground(stream: Stream): void {
    this.delete(stream).catch((error: unknown) => {
      this.#logger.warn({ error, log: stream.logId }, 'a stream could not be deleted')
    })
  }

  #sweep(): void {
    const nowMs = Date.now()
    for (const stream of this.#mortal) {
      if (stream.deleting === undefined && stream.isExpired(nowMs)) this.#deleteInBackground(stream)
    }
  }

  /** A crash may have left a log without an entry, or a source that its last fork left. */
  async #tidyUp(): Promise<void> {
    for (const stream of this.streams()) {
      if (stream.entry.isGone && stream.forks === 0) await this.delete(stream)
    }
    const known = new Set(Array.from(this.streams(), ({ logId }) => logId))
    for (const logId of this.#bifrost.logIds()) {
      if (isStreamLog(logId) && !known.has(logId)) await this.#removeOrphan(logId)
    }
  }

  /** Only a log that never had a record is surely the start of a stream that was not created. */
  async #removeOrphan(logId: string): Promise<void> {
    const { lsn } = await this.#bifrost.findTail(logId)
    if (lsn === 1) await this.#bifrost.deleteLog(logId)
    else this.#logger.warn({ log: logId }, 'a log of a stream that the registry does not know')
  }
}

function firstRecords(
  logId: string,
  { fork }: StreamEntry,
  messages: readonly Uint8Array[],
): Entry[] {
  let { bytes } = fork?.base ?? START
  return messages.map((data, i) => {
    bytes += data.length
    const fields = { bytes, mark: 0, writer: undefined, writers: undefined }
    return { logId, payload: encodeRecord({ kind: 'data', data, ...fields }), expectedTail: i + 1 }
  })
}
