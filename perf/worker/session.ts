/** The store that this process has open, and what the tasks need of it. */
import assert from 'node:assert/strict'
import { BifrostStore } from '../stores/bifrost.ts'
import { openStore } from '../stores/kinds.ts'
import type { Store, StoreSpec } from '../stores/store.ts'
import { removeFiles } from '../support/scratch.ts'
import { Payloads } from './payloads.ts'

/** A store that has grown beyond this is replaced by a new one between two rounds. */
const MOST_BYTES = 256 * 1024 * 1024

export class Session {
  readonly spec: StoreSpec
  readonly #payloads = new Map<number, Payloads>()
  #store: Store | undefined
  #nextLog = 0
  #bytes = 0

  constructor(spec: StoreSpec) {
    this.spec = spec
  }

  get store(): Store {
    assert(this.#store !== undefined, 'The store is open')
    return this.#store
  }

  get bifrost(): BifrostStore {
    assert(this.store instanceof BifrostStore, 'The task is for Bifrost only')
    return this.store
  }

  /** Opens the store; resolves with how long that took, in ms. */
  async open(): Promise<number> {
    const startedAt = performance.now()
    this.#store = await openStore(this.spec)
    return performance.now() - startedAt
  }

  async close(): Promise<void> {
    await this.#store?.close()
    this.#store = undefined
  }

  /** The log that the next append goes to: each in turn. */
  nextLog(): number {
    const log = this.#nextLog
    this.#nextLog = (log + 1) % (this.spec.logs ?? 1)
    return log
  }

  payloadsOf(size: number): Payloads {
    const payloads = this.#payloads.get(size) ?? new Payloads(size)
    this.#payloads.set(size, payloads)
    return payloads
  }

  /** Notes what was appended. */
  appended(bytes: number): void {
    this.#bytes += bytes
  }

  /** Begins a new store if a lot was appended; until then the old one can be asked what it did. */
  async renew(): Promise<void> {
    if (this.#bytes < MOST_BYTES) return
    await this.close()
    removeFiles(this.spec.dir)
    this.#bytes = 0
    await this.open()
  }
}
