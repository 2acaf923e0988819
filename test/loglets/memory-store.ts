/** In-memory stores for tests, with seams that the public door has not. */
import type { ResolvedStoreOptions } from '../../engine/options.ts'
import type { Bifrost } from '../../loglets/bifrost.ts'
import {
  BifrostStore,
  openParts,
  type ProviderFactories,
  type ProviderFactory,
} from '../../loglets/bifrost-store.ts'
import type { LogletProvider } from '../../loglets/loglet-provider.ts'
import { MemoryProvider, type MemoryInternals } from '../../loglets/memory-provider.ts'
import type { BifrostOptions } from '../../loglets/options.ts'
import type { Schedule } from '../../loglets/memory-writer.ts'

export type TestOptions = Omit<BifrostOptions, 'provider' | 'dir'>

export interface TestSeams {
  readonly internals?: MemoryInternals
  /** Stands in front of the in-memory provider. */
  readonly wrap?: (provider: LogletProvider) => LogletProvider
  readonly startsInOpen?: boolean
  readonly graceMs?: number
}

/** A store whose provider is in memory, with `logs` ['log'] unless told otherwise. */
export async function openMemoryStore(
  options: TestOptions = { logs: ['log'] },
  seams: TestSeams = {},
): Promise<Bifrost> {
  const { internals, wrap = asItIs, startsInOpen = false, graceMs } = seams
  const make = (store: ResolvedStoreOptions): LogletProvider =>
    wrap(new MemoryProvider(store, internals))
  return openStore({ logs: ['log'], ...options }, { startsInOpen, make }, graceMs)
}

/** A store over providers that `factory` makes. */
export async function openStore(
  options: TestOptions,
  factory: ProviderFactory,
  graceMs?: number,
): Promise<Bifrost> {
  const providers: ProviderFactories = { local: factory, memory: factory }
  return new BifrostStore(await openParts({ ...options, provider: 'memory' }, providers, graceMs))
}

/** Holds group commits back until it is told to let them go. */
export class Gate {
  #held: (() => void)[] = []
  #isOpen = false

  readonly schedule: Schedule = (run) => {
    if (this.#isOpen) setImmediate(run)
    else this.#held.push(run)
  }

  /** Commits the next group, if one is due. */
  step(): void {
    this.#held.shift()?.()
  }

  /** Lets everything go from now on. */
  open(): void {
    this.#isOpen = true
    for (const run of this.#held.splice(0)) run()
  }

  get isHolding(): boolean {
    return this.#held.length > 0
  }
}

function asItIs(provider: LogletProvider): LogletProvider {
  return provider
}
