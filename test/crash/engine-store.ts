/** A durable store for tests that count or hold what it asks of its files, with promises for callers. */
import assert from 'node:assert/strict'
import type { LogId } from '../../codec/errors.ts'
import type { Offset } from '../../codec/offset.ts'
import type { Clock } from '../../engine/clock.ts'
import { LogStore } from '../../engine/log-store.ts'
import { NodeFileSystem } from '../../engine/node-file-system.ts'
import { resolveStoreOptions, type StoreOptions } from '../../engine/options.ts'
import type { LogletCell } from '../../engine/store-state.ts'
import { FaultFileSystem } from '../support/fault-file-system.ts'

/** A clock whose timers never call back: nothing happens but what is asked for. */
export const TIMERLESS: Clock = {
  now: () => Date.now(),
  monotonicNow: () => performance.now(),
  setTimer: () => undefined,
  clearTimer: () => undefined,
}

export class EngineStore {
  readonly fileSystem: FaultFileSystem
  readonly store: LogStore

  private constructor(store: LogStore, fileSystem: FaultFileSystem) {
    this.store = store
    this.fileSystem = fileSystem
  }

  /** Opens a store on real files. */
  static async open(
    options: StoreOptions,
    clock: Clock = TIMERLESS,
    fileSystem: FaultFileSystem = new FaultFileSystem(new NodeFileSystem()),
  ): Promise<EngineStore> {
    const store = await LogStore.open(resolveStoreOptions(options), { fileSystem, clock })
    return new EngineStore(store, fileSystem)
  }

  cell(logId: LogId): LogletCell {
    const loglet = this.store.log(logId)?.links[0]?.loglet
    const cell = loglet === undefined ? undefined : this.store.cell(loglet)
    assert.ok(cell, `there is a log ${logId}`)
    return cell
  }

  append(logId: LogId, payload: unknown): Promise<Offset> {
    return new Promise((committed, failed) => {
      const listener = { committed, failed }
      this.store.append(this.cell(logId), payload, undefined, undefined, listener)
    })
  }

  appendBatch(logId: LogId, payloads: readonly unknown[]): Promise<Offset> {
    const records = payloads.map((payload) => ({ payload, keys: undefined }))
    return new Promise((committed, failed) => {
      this.store.appendBatch(this.cell(logId), records, undefined, { committed, failed })
    })
  }

  /** Reads all records of a log that are not trimmed; resolves with how many there are. */
  async count(logId: LogId): Promise<number> {
    const cell = this.cell(logId)
    const { trimPoint, tail } = cell.facts
    let records = 0
    const visit = (): boolean => {
      records++
      return true
    }
    for (let from = trimPoint + 1; from < tail;) {
      const read = await this.store.read(cell, { from, to: tail - 1, maxBytes: 256 * 1024, visit })
      if (read.kind !== 'data') throw new Error(`${read.kind} instead of data at ${from}`)
      from = read.next
    }
    return records
  }

  /** Resolves once the file system has had nothing to do for a moment. */
  async whenQuiet(): Promise<void> {
    const { faults } = this.fileSystem
    for (let seen = -1; seen !== faults.operationCount;) {
      seen = faults.operationCount
      while (faults.trace.length < faults.operationCount) await turn()
      for (let i = 0; i < 10; i++) await turn()
    }
  }

  close(): Promise<void> {
    return this.store.shutdown(5000)
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
