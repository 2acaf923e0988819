/** The durable loglet, on real files, against the loglet contract. */
import { resolveStoreOptions } from '../../engine/options.ts'
import { LocalProvider } from '../../loglets/local-provider.ts'
import { temporaryDirectory } from '../support/temp-dir.ts'
import { runLogletContract } from './loglet-contract.ts'

runLogletContract('local', async (t, options) => {
  const dir = await temporaryDirectory(t)
  const provider = new LocalProvider(resolveStoreOptions({ ...options, dir }))
  await provider.start()
  t.after(() => provider.shutdown(5000))
  return provider
})
