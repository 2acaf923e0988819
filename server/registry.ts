/**
 * The streams there are, kept in a log of the same store and replayed when the server starts. An
 * entry is put before its stream is told of, in one batch with the stream's first data; a stream
 * that is gone is one whose log is gone, so what the registry says of it no longer counts.
 *
 * So that it doesn't grow for ever, entries that still count are put again at the tail from time to
 * time, and everything before is trimmed. A crash in between leaves some of them twice.
 *
 * Invariant: `lsn` of a slot is that of the last durable put of its entry, which says what memory
 * says unless another put is under way.
 */
import { LogError, type Bifrost, type Entry, type Logger } from '../index.ts'
import { REGISTRY_LOG, streamLogId, type RegistryRecord, type StreamEntry } from './stream-entry.ts'

interface Slot {
  entry: StreamEntry
  lsn: number
  putsUnderWay: number
}

/** The log is compacted when it holds this many records more than twice the entries. */
const SLACK_RECORDS = 1000
/** Entries that one batch puts again. */
const BATCH_ENTRIES = 500

export class Registry {
  readonly #bifrost: Bifrost
  readonly #logger: Logger
  readonly #slots = new Map<number, Slot>()
  #next = 1
  /** Records in the log that were not trimmed. */
  #records = 0
  #compacting: Promise<void> | undefined
  #hasGaps = false

  private constructor(bifrost: Bifrost, logger: Logger) {
    this.#bifrost = bifrost
    this.#logger = logger
  }

  /** Makes the log if need be, and replays it. */
  static async open(bifrost: Bifrost, logger: Logger): Promise<Registry> {
    const registry = new Registry(bifrost, logger)
    if (!bifrost.logIds().includes(REGISTRY_LOG)) await bifrost.createLog(REGISTRY_LOG)
    await registry.#replay()
    registry.#dropDeleted()
    return registry
  }

  entries(): StreamEntry[] {
    return Array.from(this.#slots.values(), ({ entry }) => entry)
  }

  /** Whether records of the log were lost to damage, so that streams may be missing. */
  get hasGaps(): boolean {
    return this.#hasGaps
  }

  /** A number that no stream of this store has or had. */
  takeIncarnation(): number {
    return this.#next++
  }

  /**
   * Puts an entry, in one batch with records of its stream. Resolves when all are durable; if it
   * rejects, none is there and the entry is as before.
   */
  async put(entry: StreamEntry, records: readonly Entry[]): Promise<void> {
    const slot = this.#slots.get(entry.incarnation)
    if (slot !== undefined) slot.putsUnderWay++
    try {
      const put: RegistryRecord = { put: entry }
      const lsns = await this.#bifrost.appendMany([
        ...records,
        { logId: REGISTRY_LOG, payload: put },
      ])
      this.#accept(entry, lsns.at(-1) as number)
    } finally {
      if (slot !== undefined) slot.putsUnderWay--
    }
    this.#compactIfLong()
  }

  #accept(entry: StreamEntry, lsn: number): void {
    const slot = this.#slots.get(entry.incarnation)
    this.#records++
    if (slot === undefined) {
      this.#slots.set(entry.incarnation, { entry, lsn, putsUnderWay: 0 })
      return
    }
    slot.entry = entry
    slot.lsn = lsn
  }

  /** A stream's log is gone: its entry need not be kept. Nothing depends on this being written. */
  drop(incarnation: number): void {
    if (!this.#slots.delete(incarnation)) return
    const record: RegistryRecord = { drop: incarnation }
    this.#bifrost.append(REGISTRY_LOG, record).then(
      () => {
        this.#records++
        this.#compactIfLong()
      },
      () => undefined,
    )
  }

  async #replay(): Promise<void> {
    const reader = this.#bifrost.createReader<RegistryRecord>(REGISTRY_LOG, { follow: false })
    for await (const chunk of reader.chunks()) {
      for (const record of chunk) {
        if (record.kind === 'data') this.#apply(record.payload, record.lsn)
        else if (record.kind === 'data-loss-gap') this.#hasGaps = true
      }
    }
    if (this.#hasGaps) {
      this.#logger.error(
        { log: REGISTRY_LOG },
        'the registry of streams was damaged: some may be missing',
      )
    }
  }

  #apply(record: RegistryRecord, lsn: number): void {
    this.#records++
    if ('put' in record) {
      const { put: entry } = record
      this.#next = Math.max(this.#next, entry.incarnation + 1)
      this.#slots.set(entry.incarnation, { entry, lsn, putsUnderWay: 0 })
    } else if ('drop' in record) {
      this.#slots.delete(record.drop)
    } else {
      this.#next = Math.max(this.#next, record.next)
    }
  }

  /** A stream whose log is gone was deleted, whether or not there was time to say so here. */
  #dropDeleted(): void {
    const logIds = new Set(this.#bifrost.logIds())
    for (const [incarnation, { entry }] of this.#slots) {
      if (!logIds.has(streamLogId(entry))) this.#slots.delete(incarnation)
    }
  }

  #compactIfLong(): void {
    if (this.#records <= 2 * this.#slots.size + SLACK_RECORDS) return
    this.#compacting ??= this.#compact()
      .catch((error: unknown) => {
        if (LogError.is(error, 'CLOSED')) return
        this.#logger.warn({ error }, 'the registry of streams could not be compacted')
      })
      .finally(() => (this.#compacting = undefined))
  }

  /** Resolves when no compaction is under way. */
  async settled(): Promise<void> {
    await this.#compacting
  }

  async #compact(): Promise<void> {
    const { lsn: end } = await this.#bifrost.findTail(REGISTRY_LOG)
    // Acknowledgements come in order: after this one, every put below `end` is in its slot.
    await this.#bifrost.append(REGISTRY_LOG, { next: this.#next } satisfies RegistryRecord)
    for (;;) {
      const old = [...this.#slots.values()].filter(({ lsn }) => lsn < end)
      if (old.length === 0) break
      // What has a put of its own under way is looked at again when that is over.
      const quiet = old.filter(({ putsUnderWay }) => putsUnderWay === 0)
      if (quiet.length === 0) await new Promise((resolve) => setTimeout(resolve, 10))
      else await this.#putAgain(quiet.slice(0, BATCH_ENTRIES))
    }
    await this.#bifrost.trim(REGISTRY_LOG, end - 1)
    const { lsn: tail } = await this.#bifrost.findTail(REGISTRY_LOG)
    this.#records = tail - end
  }

  async #putAgain(slots: readonly Slot[]): Promise<void> {
    const records = slots.map(({ entry }): RegistryRecord => ({ put: entry }))
    const first = await this.#bifrost.appendBatch(REGISTRY_LOG, records)
    for (const [i, slot] of slots.entries()) slot.lsn = Math.max(slot.lsn, first + i)
  }
}
