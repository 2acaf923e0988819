/** A second process that follows the store, and what it may show. */
import type { Lsn } from '../../codec/offset.ts'
import type { LogId } from '../../codec/errors.ts'
import type { FileSystem } from '../../engine/file-system.ts'
import type { BifrostOptions } from '../../loglets/options.ts'
import { Violation, type Oracle, type SeenLog } from './explore-oracle.ts'
import { SimStore } from './explore-store.ts'
import type { CommitWatch } from './explore-watch.ts'
import type { SimProcess } from './sim-disk.ts'

/** Told of a log's tail when the follower shows it. */
export type Shown = (logId: LogId, loglet: number, tail: Lsn) => void

export class Follower {
  readonly #store: SimStore
  /** What it showed last, by log: its loglet and how far it had come. */
  readonly #shown = new Map<LogId, SeenLog>()
  readonly #paths = new Set<string>()
  readonly #watched = new Set<number>()
  readonly #shows: Shown
  /** Something was made to fail while it followed. */
  mayFail = false

  private constructor(store: SimStore, shows: Shown) {
    this.#store = store
    this.#shows = shows
    this.#watchAll()
  }

  static async open(
    process: SimProcess,
    fileSystem: FileSystem,
    options: BifrostOptions,
    shows: Shown,
  ): Promise<Follower> {
    const store = await SimStore.open(process, fileSystem, { ...options, readOnly: true })
    return new Follower(store, shows)
  }

  get process(): SimProcess {
    return this.#store.process
  }

  get isAlive(): boolean {
    return this.#store.process.isAlive
  }

  /** Everything that it shows now. */
  async look(): Promise<SeenLog[]> {
    const { failure } = this.#store.store
    if (failure !== undefined) throw failure
    this.#watchAll()
    return this.#store.look()
  }

  #watchAll(): void {
    for (const logId of this.#store.store.logIds()) {
      const loglet = this.#store.loglet(logId)
      if (loglet === undefined || this.#watched.has(loglet)) continue
      this.#watched.add(loglet)
      this.#store.watch(logId, (tail) => this.#shows(logId, loglet, tail))
    }
  }

  /** It may be behind, but what it shows must be durable, and it never goes back. */
  compare(seen: readonly SeenLog[], oracle: Oracle): void {
    for (const log of seen) {
      const before = this.#shown.get(log.logId)
      const goesBack =
        before?.loglet === log.loglet &&
        (log.tail < before.tail || log.trimPoint < before.trimPoint)
      if (goesBack) throw new Violation(`a follower of ${log.logId} went back to ${log.tail}`)
      oracle.followerSaw(log)
    }
    for (const { logId, loglet } of this.#shown.values()) {
      if (!seen.some((log) => log.loglet === loglet)) oracle.followerMisses(logId, loglet)
    }
    this.#shown.clear()
    for (const log of seen) this.#shown.set(log.logId, log)
  }

  /** Whether it has shown records of more than one segment. */
  hasStepped(seen: readonly SeenLog[], watch: CommitWatch): boolean {
    for (const { loglet, records } of seen) {
      const last = records.at(-1)
      const path = last && watch.placeOf(loglet, last.lsn)?.path
      if (path !== undefined) this.#paths.add(path)
    }
    return this.#paths.size > 1
  }
}
