/**
 * Finds logs for those who read and change them: through a provider that is ready, or once it is.
 * After `close` everything is CLOSED.
 */
import type { LogId } from '../codec/errors.ts'
import { closed } from './errors.ts'
import { requireChain } from './log-chain.ts'
import type { ChainLink, LogletProvider } from './loglet-provider.ts'
import type { ManagedProvider } from './watchdog.ts'

export class LogDirectory {
  readonly #provider: ManagedProvider
  #isClosed = false

  constructor(provider: ManagedProvider) {
    this.#provider = provider
  }

  /** From now on everything is refused. */
  close(): void {
    this.#isClosed = true
  }

  requireOpen(): void {
    if (this.#isClosed) throw closed()
  }

  /** The links of a log; undefined while the provider isn't ready. Throws UNKNOWN_LOG, CLOSED. */
  find(logId: LogId): readonly ChainLink[] | undefined {
    this.requireOpen()
    const provider = this.#provider.ready
    return provider === undefined ? undefined : requireChain(provider.chains, logId)
  }

  /** Runs an operation on a log's links once the provider is ready, in call order. */
  async onLog<T>(
    logId: LogId,
    operation: (links: readonly ChainLink[]) => T | Promise<T>,
  ): Promise<T> {
    return this.onProvider(async ({ chains }) => operation(requireChain(chains, logId)))
  }

  /** Runs an operation once the provider is ready, in call order. */
  async onProvider<T>(operation: (provider: LogletProvider) => Promise<T>): Promise<T> {
    this.requireOpen()
    return this.#provider.perform(operation)
  }
}
