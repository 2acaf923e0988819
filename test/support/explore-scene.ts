/**
 * What the parts of an exploration share: the machine, the oracle, and the evidence that is
 * gathered while the machine runs. Whatever is wrong is noted at once and thrown by the next `run`.
 */
import { posix } from 'node:path'
import { LogError, type LogId } from '../../codec/errors.ts'
import type { Lsn } from '../../codec/offset.ts'
import { segmentFile, segmentOfName, segmentsAmong } from '../../engine/file-names.ts'
import type { FileSystem } from '../../engine/file-system.ts'
import type { BifrostOptions } from '../../loglets/options.ts'
import { CallMaker } from './explore-calls.ts'
import type { Coverage } from './explore-coverage.ts'
import { Oracle, Violation } from './explore-oracle.ts'
import type { Plan, Settings } from './explore-plan.ts'
import { optionsOf, STORE_DIR } from './explore-store.ts'
import { Troubles } from './explore-troubles.ts'
import { CommitWatch, WatchedFileSystem } from './explore-watch.ts'
import { SimDisk, type SimProcess } from './sim-disk.ts'
import { SimCrash } from './sim-scheduler.ts'

/** A store that was closed, to begin from. */
export interface Base {
  readonly disk: SimDisk
  readonly oracle: Oracle
  readonly watch: CommitWatch
  /** How many records were made for it. */
  readonly records: number
}

type Layer = (fileSystem: FileSystem) => FileSystem

export class Scene {
  readonly seed: number
  readonly settings: Settings
  readonly disk: SimDisk
  readonly oracle: Oracle
  readonly watch: CommitWatch
  readonly coverage: Coverage
  readonly troubles: Troubles
  readonly calls: CallMaker
  readonly #layer: Layer
  /** What was told or seen in this turn. */
  #unjudged: { readonly number: number; readonly judge: () => void }[] = []
  #violation: Error | undefined

  constructor({ seed, settings }: Plan, coverage: Coverage, layer: Layer, base: Base | undefined) {
    const { capacityBytes, logIds } = settings
    this.seed = seed
    this.settings = settings
    this.coverage = coverage
    this.#layer = layer
    this.disk =
      base?.disk.fork(seed) ?? new SimDisk({ seed, capacityBytes: capacityBytes ?? Infinity })
    this.oracle = base?.oracle.fork() ?? new Oracle()
    this.watch = base?.watch.fork() ?? new CommitWatch()
    this.troubles = new Troubles(this.disk.faults, capacityBytes !== undefined)
    const view = {
      sample: (bytes: number) => this.#newestBytes(bytes),
      end: () => this.watch.lastEnd,
    }
    this.calls = new CallMaker(logIds, view, base?.records)
  }

  get options(): BifrostOptions {
    return optionsOf(this.settings, () => undefined)
  }

  /** The files as the store that writes them sees them. */
  writersFiles(process: SimProcess): FileSystem {
    return new WatchedFileSystem(this.#layer(process.fileSystem), this.watch, process)
  }

  /** The files as anybody else sees them, also on a copy of the machine. */
  files(process: SimProcess): FileSystem {
    return this.#layer(process.fileSystem)
  }

  /** Lets the machine go on until the promise settles. */
  async run<T>(promise: Promise<T>): Promise<T> {
    const settled = promise.then(
      (value) => ({ value }),
      (error: unknown) => ({ error }),
    )
    const outcome = await this.disk.run(settled).finally(() => this.judgeAll())
    if (this.#violation !== undefined) throw this.#violation
    if ('error' in outcome) throw outcome.error
    return outcome.value
  }

  /** Something is wrong. */
  note(error: unknown): void {
    this.#violation ??= error instanceof Error ? error : new Error(String(error))
  }

  /**
   * What is told in one turn reaches its callers in an order that depends on how many promises lie
   * between: it is judged in the order of the calls, and before what readers saw (Infinity).
   */
  judgeSoon(number: number, judge: () => void): void {
    if (this.#unjudged.length === 0) setImmediate(() => this.judgeAll())
    this.#unjudged.push({ number, judge })
  }

  judgeAll(): void {
    const due = this.#unjudged.sort((a, b) => a.number - b.number)
    this.#unjudged = []
    try {
      for (const { judge } of due) judge()
    } catch (error) {
      this.note(error)
    }
  }

  /** What somebody was told of must be there after any power loss, right now. */
  requireDurable(logId: LogId, loglet: number, lsn: Lsn): void {
    const place = this.watch.placeOf(loglet, lsn)
    if (place === undefined) throw new Violation(`${logId} ${lsn} was never given to the disk`)
    if (this.disk.isDurable(place.path, 0, place.end)) return
    throw new Violation(`${logId} ${lsn} was told of before ${place.path} was durable`)
  }

  /** A segment that is gone by now was read before it was trimmed. */
  requireReadDurable(logId: LogId, loglet: number, lsn: Lsn): void {
    const place = this.watch.placeOf(loglet, lsn)
    if (place === undefined || !this.#hasFile(place.path)) return
    this.requireDurable(logId, loglet, lsn)
  }

  /** Readers are woken: what they are woken for must be durable already. */
  shown({ isAlive }: SimProcess, logId: LogId, loglet: number, tail: Lsn): void {
    if (!isAlive || tail === 1) return
    try {
      this.requireReadDurable(logId, loglet, tail - 1)
    } catch (error) {
      this.note(error)
    }
  }

  segments(): number[] {
    return segmentsAmong([...this.disk.contents().keys()].map((path) => posix.basename(path)))
  }

  #hasFile(path: string): boolean {
    return this.segments().includes(segmentOfName(posix.basename(path)) ?? 0)
  }

  #newestBytes(bytes: number): Uint8Array {
    const newest = this.segments().at(-1)
    const name = newest === undefined ? 'lock' : segmentFile(newest)
    return this.disk.readFile(posix.join(STORE_DIR, name)).slice(0, bytes)
  }
}

/** Lets all that was woken run. */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}

/** An error that should not have come, as what it is: a broken promise. A crash stays a crash. */
export function asViolation(what: string, error: unknown): Error {
  if (error instanceof SimCrash || error instanceof Violation) return error
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return new Violation(`${what}: ${text}`)
}

/** Throws what is no READ_FAILED with an excuse. */
export function requireReadFailed(what: string, error: unknown, troubles: Troubles): void {
  if (!LogError.is(error, 'READ_FAILED')) throw asViolation(what, error)
  if (!troubles.isFaulty) throw asViolation(`${what} without a reason`, error)
}
