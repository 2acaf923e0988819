/** Providers in front of others, for what the in-memory one never does: other bases, and failures. */
import type { LogError, LogId } from '../../codec/errors.ts'
import type { Lsn } from '../../codec/offset.ts'
import type { Metrics, RecoveryReport } from '../../engine/metrics.ts'
import type { Loglet, LogletAppendOptions, LogletState } from '../../loglets/loglet.ts'
import type {
  ChainLink,
  ChainStore,
  LogletProvider,
  ManyListener,
  ManyRecord,
  ProviderStatus,
} from '../../loglets/loglet-provider.ts'

/** Hands everything on. */
export class WrappedProvider implements LogletProvider, ChainStore {
  readonly inner: LogletProvider

  constructor(inner: LogletProvider) {
    this.inner = inner
  }

  get chains(): ChainStore {
    return this
  }

  get status(): ProviderStatus {
    return this.inner.status
  }

  get recovery(): RecoveryReport {
    return this.inner.recovery
  }

  start(): Promise<void> {
    return this.inner.start()
  }

  logIds(): readonly LogId[] {
    return this.inner.chains.logIds()
  }

  chain(logId: LogId): readonly ChainLink[] | undefined {
    return this.inner.chains.chain(logId)
  }

  createLogs(logIds: readonly LogId[]): Promise<void> {
    return this.inner.chains.createLogs(logIds)
  }

  deleteLog(logId: LogId): Promise<void> {
    return this.inner.chains.deleteLog(logId)
  }

  appendMany(
    records: readonly ManyRecord[],
    options: LogletAppendOptions | undefined,
    listener: ManyListener,
  ): void {
    this.inner.appendMany(records, options, listener)
  }

  metrics(): Metrics {
    return this.inner.metrics()
  }

  shutdown(graceMs: number): Promise<void> {
    return this.inner.shutdown(graceMs)
  }
}

/** Logs whose only link begins at another LSN than 1, as if what came before it were gone. */
export class RebasedProvider extends WrappedProvider {
  readonly #baseOf: (logId: LogId) => Lsn

  constructor(inner: LogletProvider, baseOf: (logId: LogId) => Lsn) {
    super(inner)
    this.#baseOf = baseOf
  }

  override chain(logId: LogId): readonly ChainLink[] | undefined {
    const baseLsn = this.#baseOf(logId)
    return super.chain(logId)?.map(({ loglet }) => ({ loglet, baseLsn }))
  }
}

/** A loglet that hands on what the provider in front of it lets through. */
class FailingLoglet implements Loglet {
  readonly #inner: Loglet
  readonly #provider: FailingProvider

  constructor(inner: Loglet, provider: FailingProvider) {
    this.#inner = inner
    this.#provider = provider
  }

  get state(): LogletState {
    const { state } = this.#inner
    return { ...state, ended: state.ended ?? this.#provider.failure }
  }

  append(...args: Parameters<Loglet['append']>): void {
    if (!this.#provider.refuses(args[3])) this.#inner.append(...args)
  }

  appendBatch(...args: Parameters<Loglet['appendBatch']>): void {
    if (!this.#provider.refuses(args[2])) this.#inner.appendBatch(...args)
  }

  trim(...args: Parameters<Loglet['trim']>): ReturnType<Loglet['trim']> {
    return this.#inner.trim(...args)
  }

  seal(...args: Parameters<Loglet['seal']>): ReturnType<Loglet['seal']> {
    return this.#inner.seal(...args)
  }

  async read(...args: Parameters<Loglet['read']>): ReturnType<Loglet['read']> {
    this.#provider.reads++
    const error = this.#provider.readErrors.shift()
    if (error !== undefined) throw error
    await this.#provider.beforeRead?.()
    const outcome = await this.#inner.read(...args)
    await this.#provider.afterRead?.()
    return outcome
  }

  watch(listener: () => void): () => void {
    const stops = [this.#inner.watch(listener), this.#provider.watch(listener)]
    this.#provider.watchers++
    let isWatching = true
    return () => {
      for (const stop of stops) stop()
      if (isWatching) this.#provider.watchers--
      isWatching = false
    }
  }
}

/** Fails as it is told to. */
export class FailingProvider extends WrappedProvider {
  /** Errors for the next appends, whatever the log. */
  readonly appendErrors: LogError[] = []
  /** Errors for the next reads, whatever the log. */
  readonly readErrors: LogError[] = []
  failure: LogError | undefined
  beforeRead: (() => Promise<void>) | undefined
  afterRead: (() => Promise<void>) | undefined
  /** How many reads were begun. */
  reads = 0
  /** How many watches are on. */
  watchers = 0
  readonly #loglets = new Map<Loglet, Loglet>()
  readonly #listeners = new Set<() => void>()

  override get status(): ProviderStatus {
    return { failure: this.failure }
  }

  override chain(logId: LogId): readonly ChainLink[] | undefined {
    return super.chain(logId)?.map(({ loglet, baseLsn }) => {
      const wrapped = this.#loglets.get(loglet) ?? new FailingLoglet(loglet, this)
      this.#loglets.set(loglet, wrapped)
      return { loglet: wrapped, baseLsn }
    })
  }

  /** Tells a listener of an append why it is refused, if it is. */
  refuses(listener: { failed(error: LogError): void }): boolean {
    const error = this.failure ?? this.appendErrors.shift()
    if (error === undefined) return false
    setImmediate(() => listener.failed(error))
    return true
  }

  /** The store has failed for good. */
  fail(error: LogError): void {
    this.failure = error
    for (const listener of [...this.#listeners]) listener()
  }

  watch(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
}
