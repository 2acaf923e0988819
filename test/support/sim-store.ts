/** A durable store on a simulated disk: every call runs the simulation until its promise settles. */
import assert from 'node:assert/strict'
import type { LogId } from '../../codec/errors.ts'
import type { Offset } from '../../codec/offset.ts'
import { LogStore } from '../../engine/log-store.ts'
import type { RecoveryReport } from '../../engine/metrics.ts'
import { resolveStoreOptions, type StoreOptions } from '../../engine/options.ts'
import type { LogletCell } from '../../engine/store-state.ts'
import { SimDisk, type SimDiskOptions } from './sim-disk.ts'
import { viewOf, type LogView } from './store-view.ts'

const SMALL = { segmentSizeBytes: 64 * 1024, reserveBytes: 4096 }

export class SimStore {
  readonly disk: SimDisk
  #store: LogStore | undefined

  constructor(seed: number, options: Omit<SimDiskOptions, 'seed'> = {}) {
    this.disk = new SimDisk({ seed, ...options })
  }

  get store(): LogStore {
    assert.ok(this.#store, 'opened before it is used')
    return this.#store
  }

  /** Opens the store, again after a crash. */
  async open(options: Partial<StoreOptions> = {}): Promise<RecoveryReport> {
    const resolved = resolveStoreOptions({ dir: '/store', ...SMALL, ...options })
    const { fileSystem, clock } = this.disk
    this.#store = await this.disk.run(LogStore.open(resolved, { fileSystem, clock }))
    return this.#store.recovery
  }

  cell(logId: LogId): LogletCell {
    const cell = this.store.cell(this.store.log(logId)?.links[0]?.loglet ?? 0)
    assert.ok(cell, `there is a log ${logId}`)
    return cell
  }

  create(...logIds: LogId[]): Promise<void> {
    return this.disk.run(this.store.createLogs(logIds))
  }

  append(logId: LogId, payload: unknown): Promise<Offset> {
    return this.disk.run(this.appendUnrun(logId, payload))
  }

  /** As `append`, for several that are to be under way at once: run them together. */
  appendUnrun(logId: LogId, payload: unknown): Promise<Offset> {
    return new Promise((committed, failed) => {
      const listener = { committed, failed }
      this.store.append(this.cell(logId), payload, undefined, undefined, listener)
    })
  }

  trim(logId: LogId, upTo: Offset): Promise<Offset> {
    return this.disk.run(this.store.trim(this.cell(logId), upTo))
  }

  view(): Promise<LogView[]> {
    return this.disk.run(viewOf(this.store))
  }

  /** The payloads of all records of a log that are not trimmed. */
  async payloads(logId: LogId): Promise<unknown[]> {
    const view = (await this.view()).find((candidate) => candidate.logId === logId)
    assert.ok(view, `there is a log ${logId}`)
    return view.records.map(([, payload]) => payload)
  }

  close(): Promise<void> {
    return this.disk.run(this.store.shutdown(5000))
  }
}
