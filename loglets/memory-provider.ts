/**
 * Makes in-memory loglets and keeps the registry of their logs. Everything is gone with the
 * process; until then it behaves as the durable provider does, and one contract suite says so.
 */
import assert from 'node:assert/strict'
import { LogError, type LogId } from '../codec/errors.ts'
import { OLDEST_POSITION, type Offset } from '../codec/offset.ts'
import { RecordEncoder, type EncodedRecord } from '../codec/record.ts'
import { systemClock, type Clock } from '../engine/clock.ts'
import type { Metrics, RecoveryReport } from '../engine/metrics.ts'
import type { ResolvedStoreOptions } from '../engine/options.ts'
import { closed, unknownLog } from './errors.ts'
import { NOTHING_RECOVERED } from './idle-reports.ts'
import type { LogletAppendOptions } from './loglet.ts'
import type {
  ChainLink,
  ChainStore,
  LogletProvider,
  ManyListener,
  ManyRecord,
  ProviderStatus,
} from './loglet-provider.ts'
import { encodeAll, MemoryLoglet, sizeOf, type MemoryStore } from './memory-loglet.ts'
import { MemoryCommand, MemoryWriter, type Schedule } from './memory-writer.ts'

/** What tests put in place of the real thing. */
export interface MemoryInternals {
  readonly clock?: Pick<Clock, 'now'> | undefined
  /** When a group is committed; a turn of the event loop after its first command by default. */
  readonly schedule?: Schedule | undefined
  /** The greatest offset of every loglet. */
  readonly maxOffset?: Offset | undefined
}

export class MemoryProvider implements LogletProvider, ChainStore {
  readonly status: ProviderStatus = { failure: undefined }
  readonly recovery: RecoveryReport = NOTHING_RECOVERED
  readonly #chains = new Map<LogId, readonly ChainLink[]>()
  readonly #maxOffset: Offset | undefined
  readonly #store: MemoryStore
  #shutdown: Promise<void> | undefined

  constructor(options: ResolvedStoreOptions, internals: MemoryInternals = {}) {
    const { clock = systemClock, schedule = setImmediate, maxOffset } = internals
    this.#maxOffset = maxOffset
    this.#store = {
      writer: new MemoryWriter(options, schedule),
      encoder: new RecordEncoder(options.maxRecordBytes),
      maxBatchBytes: options.maxBatchBytes,
      now: () => clock.now(),
      refusal: undefined,
    }
  }

  get chains(): ChainStore {
    return this
  }

  async start(): Promise<void> {
    // There is nothing to make ready.
  }

  logIds(): readonly LogId[] {
    return [...this.#chains.keys()]
  }

  chain(logId: LogId): readonly ChainLink[] | undefined {
    return this.#chains.get(logId)
  }

  async createLogs(logIds: readonly LogId[]): Promise<void> {
    this.#requireOpen()
    const wanted = [...logIds]
    return this.#store.writer.perform(() => this.#create(wanted), done)
  }

  #create(logIds: readonly LogId[]): undefined {
    for (const logId of logIds) {
      if (this.#chains.has(logId)) continue
      const loglet = new MemoryLoglet(this.#store, this.#maxOffset)
      this.#chains.set(logId, [{ loglet, baseLsn: OLDEST_POSITION }])
    }
  }

  async deleteLog(logId: LogId): Promise<void> {
    this.#requireOpen()
    return this.#store.writer.perform(() => this.#delete(logId), done)
  }

  #delete(logId: LogId): LogError | undefined {
    const links = this.#chains.get(logId)
    if (links === undefined) return unknownLog(logId)
    this.#chains.delete(logId)
    this.#end(links, unknownLog(logId))
    return undefined
  }

  #end(links: readonly ChainLink[], error: LogError): void {
    for (const { loglet } of links) {
      assert.ok(loglet instanceof MemoryLoglet, 'our own loglet')
      loglet.applyEnd(error)
    }
  }

  #requireOpen(): void {
    if (this.#store.refusal !== undefined) throw this.#store.refusal
  }

  appendMany(
    records: readonly ManyRecord[],
    options: LogletAppendOptions | undefined,
    listener: ManyListener,
  ): void {
    let bodies: EncodedRecord[]
    try {
      bodies = encodeAll(this.#store, records)
    } catch (error) {
      if (!(error instanceof LogError)) throw error
      listener.failed(error, undefined)
      return
    }
    const command = new AppendManyCommand(records, bodies, listener)
    this.#store.writer.submit(command, options?.whenFull, options?.signal)
  }

  metrics(): Metrics {
    return this.#store.writer.metrics()
  }

  shutdown(graceMs: number): Promise<void> {
    assert.ok(graceMs >= 0, 'a grace in milliseconds')
    this.#shutdown ??= this.#close()
    return this.#shutdown
  }

  async #close(): Promise<void> {
    this.#store.refusal = closed()
    const { writer } = this.#store
    writer.flush()
    for (const links of this.#chains.values()) this.#end(links, closed())
    writer.flush()
  }
}

function done(): void {
  // Nothing to tell but that it is done.
}

/** Records over several loglets, all or none. */
class AppendManyCommand extends MemoryCommand {
  readonly #parts: readonly { loglet: MemoryLoglet; expectedTail: Offset | undefined }[]
  readonly #bodies: readonly EncodedRecord[]
  readonly #listener: ManyListener
  #offsets: Offset[] = []
  #refusedAt: number | undefined

  constructor(
    records: readonly ManyRecord[],
    bodies: readonly EncodedRecord[],
    listener: ManyListener,
  ) {
    super(sizeOf(bodies), bodies.length)
    this.#bodies = bodies
    this.#listener = listener
    this.#parts = records.map(({ loglet, expectedTail }) => {
      assert.ok(loglet instanceof MemoryLoglet, 'our own loglet')
      return { loglet, expectedTail }
    })
  }

  apply(): LogError | undefined {
    const refusal = this.#judge()
    if (refusal !== undefined) return refusal
    this.#offsets = this.#parts.map(({ loglet }, i) =>
      loglet.applyAppend(this.#bodies[i] as EncodedRecord),
    )
    return undefined
  }

  /** Judges each record where it would go, before the first one is appended. */
  #judge(): LogError | undefined {
    const tails = new Map<MemoryLoglet, Offset>()
    for (const [at, { loglet, expectedTail }] of this.#parts.entries()) {
      const tail = tails.get(loglet) ?? loglet.nextOffset
      const refusal = loglet.refusal(tail, 1, expectedTail)
      tails.set(loglet, tail + 1)
      if (refusal === undefined) continue
      this.#refusedAt = at
      return refusal
    }
    return undefined
  }

  protected succeed(): void {
    this.#listener.committed(this.#offsets)
  }

  protected reject(error: LogError): void {
    this.#listener.failed(error, this.#refusedAt)
  }
}
