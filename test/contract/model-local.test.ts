/** The durable store, on real files and reopened at random, against the model. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Bifrost } from '../../index.ts'
import { runModelTest } from './model.ts'

runModelTest(
  'local',
  async () => {
    const dir = await mkdtemp(join(tmpdir(), 'bifrost-model-'))
    const open = (): Promise<Bifrost> => Bifrost.open({ dir, segmentSizeBytes: 64 * 1024 })
    const store = {
      bifrost: await open(),
      async reopen() {
        await store.bifrost.close()
        store.bifrost = await open()
      },
      async dispose() {
        await store.bifrost.close()
        await rm(dir, { recursive: true, force: true })
      },
    }
    return store
  },
  { numRuns: 60 },
)
