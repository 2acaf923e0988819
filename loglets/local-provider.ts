/** Makes the loglets of a durable store; the store's own registry keeps the chains. */
import assert from 'node:assert/strict'
import type { LogError, LogId } from '../codec/errors.ts'
import type { LogFacts } from '../codec/log-state.ts'
import { LogStore } from '../engine/log-store.ts'
import { ReadOnlyStore } from '../engine/read-only-store.ts'
import type { Store } from '../engine/store.ts'
import type { Metrics, RecoveryReport } from '../engine/metrics.ts'
import type { ResolvedStoreOptions } from '../engine/options.ts'
import type { StoreEnvironment } from '../engine/store-opening.ts'
import { LocalLoglet } from './local-loglet.ts'
import type { LogletAppendOptions } from './loglet.ts'
import type {
  ChainLink,
  ChainStore,
  LogletProvider,
  ManyListener,
  ManyRecord,
  ProviderStatus,
} from './loglet-provider.ts'

export class LocalProvider implements LogletProvider, ChainStore {
  readonly #options: ResolvedStoreOptions
  readonly #environment: StoreEnvironment | undefined
  /** The links of a log as they were last made, for the registration they were made of. */
  readonly #chains = new WeakMap<LogFacts, readonly ChainLink[]>()
  #store: Store | undefined

  /** `environment` stands in for the disk and the clock in tests. */
  constructor(options: ResolvedStoreOptions, environment?: StoreEnvironment) {
    this.#options = options
    this.#environment = environment
  }

  async start(): Promise<void> {
    const kind = this.#options.readOnly ? ReadOnlyStore : LogStore
    this.#store = await kind.open(this.#options, this.#environment)
  }

  get #open(): Store {
    assert.ok(this.#store, 'started before it is used')
    return this.#store
  }

  get chains(): ChainStore {
    return this
  }

  get status(): ProviderStatus {
    const failure: LogError | undefined = this.#store?.failure
    return { failure }
  }

  get recovery(): RecoveryReport {
    return this.#open.recovery
  }

  logIds(): readonly LogId[] {
    return Array.from(this.#open.logs(), ({ logId }) => logId)
  }

  chain(logId: LogId): readonly ChainLink[] | undefined {
    const log = this.#open.log(logId)
    if (log === undefined) return undefined
    const known = this.#chains.get(log)
    if (known !== undefined) return known
    const links = log.links.map(({ loglet, baseLsn }) => {
      const cell = this.#open.cell(loglet)
      assert.ok(cell, 'each link of a log has its loglet')
      return { loglet: new LocalLoglet(this.#open, cell), baseLsn }
    })
    this.#chains.set(log, links)
    return links
  }

  createLogs(logIds: readonly LogId[]): Promise<void> {
    return this.#open.createLogs(logIds)
  }

  deleteLog(logId: LogId): Promise<void> {
    return this.#open.deleteLog(logId)
  }

  appendMany(
    records: readonly ManyRecord[],
    options: LogletAppendOptions | undefined,
    listener: ManyListener,
  ): void {
    const parts = records.map(({ loglet, payload, keys, expectedTail }) => {
      assert.ok(loglet instanceof LocalLoglet, 'our own loglet')
      return { cell: loglet.cell, payload, keys, expectedTail }
    })
    this.#open.appendMany(parts, options, listener)
  }

  metrics(): Metrics {
    return this.#open.metrics()
  }

  shutdown(graceMs: number): Promise<void> {
    return this.#store?.shutdown(graceMs) ?? Promise.resolve()
  }
}
