/**
 * A program that uses a store in one way and then has nothing left to do: it must end by itself,
 * and not before it has done what it awaits. Arguments: directory, way.
 */
import { Bifrost, LogError, type BifrostOptions } from '../../index.ts'

const [dir, way] = process.argv.slice(2) as [string, string]

async function open(options?: BifrostOptions): Promise<Bifrost> {
  return Bifrost.open({ dir, logs: ['log'], ...options })
}

async function readAll(bifrost: Bifrost, until: unknown): Promise<void> {
  for await (const record of bifrost.createReader('log')) {
    if (record.kind === 'data') console.log('read', record.payload)
    if (record.kind === 'data' && record.payload === until) return
  }
}

const WAYS: Readonly<Record<string, () => Promise<void>>> = {
  async close() {
    const bifrost = await open()
    await bifrost.append('log', 'a record')
    await bifrost.close()
    await new Promise((resolve) => setImmediate(resolve))
    const resources = process.getActiveResourcesInfo().filter((name) => !name.endsWith('Wrap'))
    console.log('closed', resources.join())
  },

  async leave() {
    const bifrost = await open()
    console.log('appended', await bifrost.append('log', 'a record'))
  },

  /** Nobody else can append to the log, so waiting for more is nothing to stay alive for. */
  async 'leave a reader'() {
    const bifrost = await open()
    await bifrost.append('log', 'a record')
    readAll(bifrost, 'never').catch(console.error)
  },

  async 'wait for a delayed commit'() {
    const bifrost = await open({ batchCommitDelayMs: 100 })
    console.log('appended', await bifrost.append('log', 'a record'))
  },

  async 'wait for the lock'() {
    console.log('waiting')
    const bifrost = await open({ lockTimeoutMs: 60_000 })
    console.log('appended', await bifrost.append('log', 'a record'))
  },

  async 'wait for damage to pass'() {
    try {
      await open({ readOnly: true })
    } catch (error) {
      console.log(error instanceof LogError ? error.code : error)
    }
  },

  /** Somebody else may append to the log. */
  async follow() {
    const bifrost = await open({ readOnly: true })
    console.log('following')
    await readAll(bifrost, 'the last record')
  },

  async 'leave a follower'() {
    const bifrost = await open({ readOnly: true })
    for await (const { kind } of bifrost.createReader('log', { follow: false })) console.log(kind)
  },
}

await WAYS[way]?.()
