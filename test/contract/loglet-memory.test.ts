/** The in-memory loglet against the loglet contract. */
import { resolveStoreOptions } from '../../engine/options.ts'
import { MemoryProvider } from '../../loglets/memory-provider.ts'
import { runLogletContract } from './loglet-contract.ts'

runLogletContract('memory', async (t, options) => {
  const provider = new MemoryProvider(resolveStoreOptions({ ...options, dir: '(memory)' }))
  await provider.start()
  t.after(() => provider.shutdown(0))
  return provider
})
