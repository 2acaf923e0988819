/**
 * A durable store under test: promises for callers, the files that it lies on, and what a killed
 * process would leave of it. Time stands still unless the test moves it, so that metadata is
 * written at open, at rolls and at close only.
 */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { LogError, LogId } from '../../codec/errors.ts'
import type { Offset } from '../../codec/offset.ts'
import { decodeRecord } from '../../codec/record.ts'
import type { FileSystem } from '../../engine/file-system.ts'
import { segmentPath } from '../../engine/file-names.ts'
import { LogStore } from '../../engine/log-store.ts'
import { NodeFileSystem } from '../../engine/node-file-system.ts'
import { resolveStoreOptions, type StoreOptions } from '../../engine/options.ts'
import type { AppendTerms } from '../../engine/store.ts'
import type { ReadOutcome } from '../../engine/store-reads.ts'
import type { LogletCell } from '../../engine/store-state.ts'
import { FaultFileSystem } from './fault-file-system.ts'
import type { FaultPlan, Hold, Match } from './faults.ts'
import { ManualClock } from './manual-clock.ts'
import { temporaryDirectory } from './temp-dir.ts'

/** A record as a reader sees it. */
export interface SeenRecord {
  readonly offset: Offset
  readonly payload: unknown
}

export interface TestStoreOptions extends Partial<StoreOptions> {
  /** Default: a directory that goes away with the test. */
  readonly dir?: string
  /** Logs to create if they are missing. */
  readonly logs?: readonly LogId[]
  /** Default: the real one. */
  readonly files?: FileSystem
  /** Default: a random id for a new store. */
  readonly makeStoreId?: () => Uint8Array
}

/** Keeps operations from going on; `reached` resolves once there is one. */
export interface TestHold extends Hold {
  readonly reached: Promise<void>
}

const READ_BYTES = 256 * 1024
const GRACE_MS = 5000

export class TestStore {
  readonly store: LogStore
  readonly dir: string
  readonly clock: ManualClock
  readonly fileSystem: FaultFileSystem
  readonly #holds: Hold[] = []
  #closing: Promise<void> | undefined

  private constructor(
    store: LogStore,
    dir: string,
    clock: ManualClock,
    fileSystem: FaultFileSystem,
  ) {
    this.store = store
    this.dir = dir
    this.clock = clock
    this.fileSystem = fileSystem
  }

  /** Opens a store; it is closed when the test ends, if the test has not done so. */
  static async open(t: TestContext, options: TestStoreOptions = {}): Promise<TestStore> {
    const { logs = [], files = new NodeFileSystem(), dir, makeStoreId, ...rest } = options
    // It is closed before its directory goes: hooks run in the order in which they were set.
    const stores: TestStore[] = []
    t.after(() => Promise.all(stores.map((opened) => opened.endWithTest())))
    const path = dir ?? (await temporaryDirectory(t))
    const clock = new ManualClock()
    const fileSystem = files instanceof FaultFileSystem ? files : new FaultFileSystem(files)
    const resolved = resolveStoreOptions({ dir: path, ...rest })
    const store = await LogStore.open(resolved, { fileSystem, clock, makeStoreId })
    const opened = new TestStore(store, path, clock, fileSystem)
    stores.push(opened)
    await store.createLogs(logs)
    // What the first group sets off is over, so that the metadata covers it, and nothing later.
    if (logs.length > 0) await opened.whenQuiet()
    return opened
  }

  get faults(): FaultPlan {
    return this.fileSystem.faults
  }

  /** Keeps operations from going on until it is released, or the test ends. */
  hold(match: Match): TestHold {
    let reach = (): void => undefined
    const reached = new Promise<void>((resolve) => {
      reach = resolve
    })
    const hold = this.faults.hold((operation) => {
      const isHeld = match(operation)
      if (isHeld) reach()
      return isHeld
    })
    this.#holds.push(hold)
    return { ...hold, reached }
  }

  /** Whatever the test failed at, nothing is left running. */
  async endWithTest(): Promise<void> {
    for (const hold of this.#holds) hold.release()
    await this.close().catch(() => undefined)
  }

  cell(logId: LogId): LogletCell {
    const loglet = this.store.log(logId)?.links[0]?.loglet
    const cell = loglet === undefined ? undefined : this.store.cell(loglet)
    assert.ok(cell, `there is a log ${logId}`)
    return cell
  }

  /** Resolves with the record's offset once it is durable. */
  append(logId: LogId, payload: unknown, terms?: AppendTerms): Promise<Offset> {
    return new Promise((committed, failed) => {
      this.store.append(this.cell(logId), payload, undefined, terms, { committed, failed })
    })
  }

  /** Resolves with the first record's offset. */
  appendBatch(logId: LogId, payloads: readonly unknown[], terms?: AppendTerms): Promise<Offset> {
    const records = payloads.map((payload) => ({ payload, keys: undefined }))
    return new Promise((committed, failed) => {
      this.store.appendBatch(this.cell(logId), records, terms, { committed, failed })
    })
  }

  /** Resolves with one offset per entry. */
  appendMany(entries: readonly (readonly [LogId, unknown, Offset?])[]): Promise<Offset[]> {
    const parts = entries.map(([logId, payload, expectedTail]) => ({
      cell: this.cell(logId),
      payload,
      keys: undefined,
      expectedTail,
    }))
    return new Promise((committed, failed) => {
      const listener = { committed, failed: (error: LogError) => failed(error) }
      this.store.appendMany(parts, undefined, listener)
    })
  }

  /** Appends one after the other, each in a group of its own. */
  async appendEach(logId: LogId, payloads: readonly unknown[]): Promise<void> {
    for (const payload of payloads) await this.append(logId, payload)
  }

  trim(logId: LogId, upTo: Offset): Promise<Offset> {
    return this.store.trim(this.cell(logId), upTo)
  }

  seal(logId: LogId, reason?: string): Promise<void> {
    return this.store.seal(this.cell(logId), reason)
  }

  /** One read from an offset: what was seen, and how it ended. */
  async readOnce(
    logId: LogId,
    from: Offset,
    to: Offset = Number.MAX_SAFE_INTEGER,
    maxBytes = READ_BYTES,
  ): Promise<{ readonly records: SeenRecord[]; readonly outcome: ReadOutcome }> {
    const records: SeenRecord[] = []
    const visit = (offset: Offset, bytes: Uint8Array, start: number, end: number): boolean => {
      records.push({ offset, payload: decodeRecord(bytes, start, end).payload })
      return true
    }
    const request = { from, to, maxBytes, visit }
    return { outcome: await this.store.read(this.cell(logId), request), records }
  }

  /** All records from an offset on; fails on a gap. */
  async read(logId: LogId, from: Offset = 1): Promise<SeenRecord[]> {
    const all: SeenRecord[] = []
    for (let next = from; ;) {
      const { records, outcome } = await this.readOnce(logId, next)
      all.push(...records)
      if (outcome.kind === 'tail' || outcome.kind === 'end') return all
      assert.equal(outcome.kind, 'data', `no gap at ${next}`)
      next = outcome.next
    }
  }

  /** The payloads of all records from an offset on; fails if an offset is missing. */
  async payloads(logId: LogId, from: Offset = 1): Promise<unknown[]> {
    const records = await this.read(logId, from)
    records.forEach(({ offset }, i) => assert.equal(offset, from + i, 'offsets without a gap'))
    return records.map(({ payload }) => payload)
  }

  segmentPath(segment: number): string {
    return segmentPath(this.dir, segment)
  }

  /** Resolves once the file system has had nothing to do for a moment. */
  async whenQuiet(): Promise<void> {
    for (let seen = -1; seen !== this.faults.operationCount;) {
      seen = this.faults.operationCount
      while (this.faults.trace.length < this.faults.operationCount) await turn()
      for (let i = 0; i < 5; i++) await turn()
    }
  }

  /** The store's files as a process that is killed now leaves them. */
  async killed(t: TestContext): Promise<string> {
    await this.whenQuiet()
    return copyOf(t, this.dir)
  }

  close(): Promise<void> {
    this.#closing ??= this.store.shutdown(GRACE_MS)
    return this.#closing
  }
}

/** A copy of a store's directory in a directory of its own. */
export async function copyOf(t: TestContext, dir: string): Promise<string> {
  const copy = join(await temporaryDirectory(t), 'copy')
  fs.cpSync(dir, copy, { recursive: true, preserveTimestamps: true })
  return copy
}

/** Lets all that was woken run, and the event loop turn once. */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}

/** Numbered payloads: `from` is the first number. */
export function numbered(count: number, from = 1): string[] {
  return Array.from({ length: count }, (_, i) => `record ${from + i}`)
}
