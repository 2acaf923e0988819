/** Logs of more than one link: LSNs, readers and appenders go on from one to the next. */
import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import type { LogId } from '../../codec/errors.ts'
import type { Bifrost } from '../../loglets/bifrost.ts'
import type { LogReader } from '../../loglets/read-stream.ts'
import type { LogRecord } from '../../loglets/log-record.ts'
import type { ChainLink } from '../../loglets/loglet-provider.ts'
import { rejection } from '../support/expect-error.ts'
import { openMemoryStore } from './memory-store.ts'
import { WrappedProvider } from './wrapped-provider.ts'

/** Chains a log on to loglets of further logs of its provider. */
class ChainingProvider extends WrappedProvider {
  readonly #links = new Map<LogId, ChainLink[]>()

  override chain(logId: LogId): readonly ChainLink[] | undefined {
    const first = super.chain(logId)
    if (first === undefined) return undefined
    return [...first, ...(this.#links.get(logId) ?? [])]
  }

  /** Adds a link after the last one, then seals that. Nothing may be in flight. */
  async extend(logId: LogId): Promise<void> {
    const last = this.chain(logId)?.at(-1)
    assert.ok(last)
    const links = this.#links.get(logId) ?? []
    const name = `${logId}, link ${links.length + 2}`
    await this.createLogs([name])
    const [next] = super.chain(name) ?? []
    assert.ok(next)
    const baseLsn = last.baseLsn + last.loglet.state.tail - 1
    this.#links.set(logId, [...links, { loglet: next.loglet, baseLsn }])
    await last.loglet.seal('continued elsewhere')
  }
}

async function open(t: TestContext): Promise<{ bifrost: Bifrost; provider: ChainingProvider }> {
  let provider: ChainingProvider | undefined
  const bifrost = await openMemoryStore(
    { readAheadBytes: 50 },
    { startsInOpen: true, wrap: (inner) => (provider = new ChainingProvider(inner)) },
  )
  t.after(() => bifrost.close())
  assert.ok(provider)
  return { bifrost, provider }
}

function brief(record: LogRecord | undefined): unknown {
  if (record === undefined) return undefined
  return record.kind === 'data' ? [record.lsn, record.payload] : [record.lsn, record.until, 'gap']
}

async function all(reader: LogReader<LogRecord>): Promise<unknown[]> {
  const seen: unknown[] = []
  for await (const record of reader) seen.push(brief(record))
  return seen
}

describe('a log of several links', () => {
  test('numbers its records on, and is read as one', async (t) => {
    const { bifrost, provider } = await open(t)
    assert.equal(await bifrost.appendBatch('log', ['a', 'b', 'c']), 1)
    await provider.extend('log')
    assert.equal((await bifrost.findTail('log')).lsn, 4)
    assert.equal((await bifrost.findTail('log')).sealed, false)
    assert.equal(await bifrost.append('log', 'd', { expectedTail: 4 }), 4)
    await provider.extend('log')
    assert.equal(await bifrost.appendBatch('log', ['e', 'f']), 5)
    const data = 'abcdef'.split('').map((payload, i) => [i + 1, payload])
    const read = (options: object): Promise<unknown[]> =>
      all(bifrost.createReader('log', { follow: false, ...options }))
    assert.deepEqual(await read({}), data)
    for (let from = 1; from <= 6; from++) {
      assert.deepEqual(await read({ from }), data.slice(from - 1))
      assert.deepEqual(await read({ last: from }), data.slice(6 - from))
    }
    assert.deepEqual(await read({ from: 3, to: 5 }), data.slice(2, 5))
    assert.deepEqual(brief(await bifrost.readNextSingle('log', 3)), [4, 'd'])
  })

  test('a reader and an appender that wait at its end are woken by an extension', async (t) => {
    const { bifrost, provider } = await open(t)
    await bifrost.append('log', 'a')
    const reader = bifrost.createReader('log')
    assert.deepEqual(brief(await reader.readNext()), [1, 'a'])
    const parked = reader.readNext()
    const appender = bifrost.createAppender('log')
    await appender.enqueue('b')
    await appender.committed()
    assert.deepEqual(brief(await parked), [2, 'b'])
    const slept = reader.readNext()
    await provider.extend('log')
    await appender.enqueue('c')
    assert.equal(await appender.committed(), 3)
    assert.deepEqual(brief(await slept), [3, 'c'])
    await reader.return()
  })

  test('a reader past an empty link goes on in the next one', async (t) => {
    const { bifrost, provider } = await open(t)
    await provider.extend('log')
    await provider.extend('log')
    assert.equal(await bifrost.append('log', 'a'), 1)
    assert.deepEqual(await all(bifrost.createReader('log', { follow: false })), [[1, 'a']])
    const future = bifrost.createReader('log', { from: 3 }).readNext()
    await bifrost.append('log', 'b')
    await provider.extend('log')
    await bifrost.append('log', 'c')
    assert.deepEqual(brief(await future), [3, 'c'])
  })

  test('is trimmed link by link, and one gap says so', async (t) => {
    const { bifrost, provider } = await open(t)
    await bifrost.appendBatch('log', ['a', 'b', 'c'])
    const old = bifrost.createReader('log', { to: 5 })
    await provider.extend('log')
    await bifrost.appendBatch('log', ['d', 'e'])
    assert.equal(await bifrost.trim('log', 2), 2)
    assert.equal(await bifrost.getTrimPoint('log'), 2)
    assert.equal(await bifrost.trim('log', 3), 3)
    assert.equal(await bifrost.getTrimPoint('log'), 3)
    assert.equal(await bifrost.trim('log', 4), 4)
    assert.equal(await bifrost.trim('log', 1), 4)
    for (const reader of [old, bifrost.createReader('log', { follow: false })]) {
      assert.deepEqual(await all(reader), [
        [1, 4, 'gap'],
        [5, 'e'],
      ])
    }
    assert.equal(await bifrost.trim('log', 99), 5)
    assert.equal((await bifrost.findTail('log')).last, undefined)
  })

  test('is sealed where its last link is', async (t) => {
    const { bifrost, provider } = await open(t)
    await bifrost.append('log', 'a')
    await provider.extend('log')
    await bifrost.append('log', 'b')
    const parked = bifrost.createReader('log', { from: 3 }).readNext()
    const state = await bifrost.seal('log', 'done')
    assert.deepEqual(state, { sealed: true, reason: 'done', lsn: 3, last: 2 })
    assert.equal(await parked, undefined)
    assert.equal((await rejection(bifrost.append('log', 'c'), 'SEALED')).tail, 3)
  })
})
