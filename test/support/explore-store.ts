/** A whole store on one process of a simulated machine, through the public members. */
import assert from 'node:assert/strict'
import type { LogId } from '../../codec/errors.ts'
import { LogError } from '../../codec/errors.ts'
import type { Lsn } from '../../codec/offset.ts'
import type { FileSystem } from '../../engine/file-system.ts'
import type { Bifrost } from '../../loglets/bifrost.ts'
import { BifrostStore, openParts } from '../../loglets/bifrost-store.ts'
import { LocalLoglet } from '../../loglets/local-loglet.ts'
import { LocalProvider } from '../../loglets/local-provider.ts'
import { MemoryProvider } from '../../loglets/memory-provider.ts'
import type { BifrostOptions } from '../../loglets/options.ts'
import { Violation, type SeenLog, type SeenRecord } from './explore-oracle.ts'
import type { Settings } from './explore-plan.ts'
import type { SimProcess } from './sim-disk.ts'

/** Where the stores of explorations lie. */
export const STORE_DIR = '/data/store'

/** Something that the store's logger was told. */
export type Told = (level: 'warn' | 'error', message: string, error: unknown) => void

export class SimStore {
  readonly process: SimProcess
  readonly store: Bifrost
  readonly #provider: LocalProvider

  private constructor(process: SimProcess, store: Bifrost, provider: LocalProvider) {
    this.process = process
    this.store = store
    this.#provider = provider
  }

  /** Opens the store in a process whose files are seen through `fileSystem`. */
  static async open(
    process: SimProcess,
    fileSystem: FileSystem,
    options: BifrostOptions,
  ): Promise<SimStore> {
    const environment = { fileSystem, clock: process.clock, makeStoreId }
    let provider: LocalProvider | undefined
    const parts = await openParts(options, {
      local: {
        startsInOpen: true,
        make: (resolved) => (provider = new LocalProvider(resolved, environment)),
      },
      memory: { startsInOpen: false, make: (resolved) => new MemoryProvider(resolved) },
    })
    assert.ok(provider)
    return new SimStore(process, new BifrostStore(parts), provider)
  }

  /** The id of the loglet in which a log's records are. */
  loglet(logId: LogId): number | undefined {
    const loglet = this.#provider.chain(logId)?.at(-1)?.loglet
    return loglet instanceof LocalLoglet ? loglet.cell.facts.id : undefined
  }

  /** Calls back with a log's tail whenever more of it is shown, at that very moment. */
  watch(logId: LogId, shown: (tail: Lsn) => void): void {
    const loglet = this.#provider.chain(logId)?.at(-1)?.loglet
    loglet?.watch(() => shown(loglet.state.tail))
  }

  /** Reads everything there is. What is deleted meanwhile is left out. */
  async look(): Promise<SeenLog[]> {
    const seen: SeenLog[] = []
    for (const logId of this.store.logIds()) {
      const log = await this.#lookAt(logId)
      if (log !== undefined) seen.push(log)
    }
    return seen
  }

  async #lookAt(logId: LogId): Promise<SeenLog | undefined> {
    const loglet = this.loglet(logId)
    try {
      const { lsn: tail, sealed, reason } = await this.store.findTail(logId)
      const trimPoint = await this.store.getTrimPoint(logId)
      const { gapUntil, records } = await this.#read(logId, tail)
      const seal = sealed ? { reason } : undefined
      if (loglet === undefined || loglet !== this.loglet(logId)) return undefined
      if (tail > 1 && gapUntil < trimPoint) {
        throw new Violation(`${logId}: no gap is shown up to its trim point ${trimPoint}`)
      }
      return { logId, loglet, tail, trimPoint: Math.max(trimPoint, gapUntil), seal, records }
    } catch (error) {
      if (LogError.is(error, 'UNKNOWN_LOG')) return undefined
      throw error
    }
  }

  async #read(logId: LogId, tail: number): Promise<{ gapUntil: number; records: SeenRecord[] }> {
    const records: SeenRecord[] = []
    let gapUntil = 0
    if (tail === 1) return { gapUntil, records }
    const reader = this.store.createReader(logId, { to: tail - 1, follow: false })
    for await (const chunk of reader.chunks()) {
      for (const record of chunk) {
        if (record.kind === 'data') records.push(record)
        else if (record.kind === 'trim-gap') {
          // A trim came while this was read: what was read before it is gone too.
          records.length = 0
          gapUntil = record.until
        } else throw new Violation(`${logId}: a loss up to ${record.until} at ${record.lsn}`)
      }
    }
    return { gapUntil, records }
  }
}

/** The same for every run, so that a seed replays to the byte. */
function makeStoreId(): Uint8Array {
  return Uint8Array.from({ length: 16 }, (_, i) => 0x10 + i)
}

/** The options of a store with these settings. */
export function optionsOf(settings: Settings, told: Told): BifrostOptions {
  const { commitMode, segmentSizeBytes, reserveBytes, indexCacheBytes } = settings
  const { batchCommitCount, batchCommitBytes, batchCommitDelayMs, queueBytes } = settings
  const say =
    (level: 'warn' | 'error') =>
    (fields: object, message: string): void => {
      told(level, message, (fields as { err?: unknown }).err)
    }
  return {
    dir: STORE_DIR,
    commitMode,
    segmentSizeBytes,
    reserveBytes,
    indexCacheBytes,
    batchCommitCount,
    batchCommitBytes,
    batchCommitDelayMs,
    queueBytes,
    logger: { info: () => undefined, warn: say('warn'), error: say('error') },
  }
}
