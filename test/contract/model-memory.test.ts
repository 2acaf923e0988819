/** The in-memory store against the model. */
import { openMemoryStore } from '../loglets/memory-store.ts'
import { runModelTest } from './model.ts'

runModelTest(
  'memory',
  async () => {
    const bifrost = await openMemoryStore({ logs: [] })
    return { bifrost, dispose: () => bifrost.close() }
  },
  { numRuns: 300 },
)
