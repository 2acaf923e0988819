/** The kinds of providers there are: the one place that names them all. */
import type { ProviderFactories } from './bifrost-store.ts'
import { LocalProvider } from './local-provider.ts'
import { MemoryProvider } from './memory-provider.ts'

export const PROVIDERS: ProviderFactories = {
  // A store on disk may be locked or damaged: whoever opens it wants to know at once.
  local: { startsInOpen: true, make: (options) => new LocalProvider(options) },
  memory: { startsInOpen: false, make: (options) => new MemoryProvider(options) },
}
