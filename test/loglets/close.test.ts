/** The end of a store: nothing that was called before it is lost, and nothing comes after it. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { logError } from '../../codec/errors.ts'
import type { Bifrost } from '../../loglets/bifrost.ts'
import { rejection } from '../support/expect-error.ts'
import { Gate, openMemoryStore } from './memory-store.ts'
import { WrappedProvider } from './wrapped-provider.ts'

function turn(): Promise<void> {
  return new Promise(setImmediate)
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, i) => from + i)
}

/** Keeps what was stored in sight after the close. */
class Witness extends WrappedProvider {
  readonly stored: string[] = []

  override chain(logId: string): ReturnType<WrappedProvider['chain']> {
    const links = super.chain(logId)
    const loglet = links?.[0]?.loglet
    if (loglet !== undefined && this.stored.length === 0) {
      this.stored.push('watching')
      loglet.watch(() => this.stored.push(`tail ${loglet.state.tail}`))
    }
    return links
  }
}

describe('close()', () => {
  test('with 1,000 appends pending settles every promise; twice, and twice again', async () => {
    const bifrost = await openMemoryStore({ queueBytes: 10_000 }, { startsInOpen: true })
    const appends = range(1, 1000).map((n) => bifrost.append('log', new Uint8Array(n % 100)))
    const [first, second] = [bifrost.close(), bifrost.close()]
    assert.equal(bifrost.status, 'closing')
    assert.deepEqual(await Promise.all(appends), range(1, 1000))
    await Promise.all([first, second, bifrost.close(), bifrost[Symbol.asyncDispose]()])
    assert.equal(bifrost.status, 'closed')
    assert.equal(bifrost.failure, undefined)
  })

  test('refuses everything that is called after it, also while it still commits', async () => {
    const gate = new Gate()
    const opening = openMemoryStore(
      { logs: [] },
      { startsInOpen: true, internals: { schedule: gate.schedule } },
    )
    const bifrost = await opening
    const creating = bifrost.createLog('log')
    gate.step()
    await creating
    const appender = bifrost.createAppender('log')
    await appender.enqueue('before')
    const closing = bifrost.close()
    const refuse = async (): Promise<void> => {
      const log = bifrost.log('log')
      const calls = [
        log.append(2),
        log.appendBatch([2]),
        log.appendBatch([]),
        bifrost.appendMany([{ logId: 'log', payload: 2 }]),
        log.appendStream([2]),
        log.trim(1),
        log.seal(),
        log.findTail(),
        log.getTrimPoint(),
        log.readNextSingle(0),
        log.readNextSingleOpt(0),
        log.createReader().readNext(),
        log.createReader().readNextOpt(),
        log.createReader().next(),
        log.createReader().chunks().next(),
        log.createAppender().enqueue(2),
        appender.enqueue(2),
        appender.enqueueMany([2]),
        bifrost.createLog('other'),
        bifrost.deleteLog('log'),
        bifrost.append('nobody', 1),
      ]
      await Promise.all(calls.map((call) => rejection(call, 'CLOSED')))
    }
    await refuse()
    assert.equal(bifrost.status, 'closing')
    gate.open()
    await closing
    assert.equal(appender.lastCommitted, 1)
    await refuse()
  })

  test('commits what appenders hold, and what waits for their room', async () => {
    let witness: Witness | undefined
    const bifrost = await openMemoryStore(
      {},
      { startsInOpen: true, wrap: (inner) => (witness = new Witness(inner)) },
    )
    const appender = bifrost.createAppender('log', { maxBatchCount: 3, memoryLimitBytes: 200 })
    const calls = range(1, 50).map((n) => appender.enqueue(n))
    const committed = appender.committed()
    await bifrost.close()
    await Promise.all(calls)
    assert.equal(await committed, 50)
    assert.equal(await appender.committed(), 50)
    assert.ok(witness?.stored.includes('tail 51'))
  })

  test('commits what a stream has taken, then rejects it with CLOSED and how far it came', async () => {
    const bifrost = await openMemoryStore({}, { startsInOpen: true })
    let isReturned = false
    async function* source(): AsyncGenerator<number> {
      try {
        yield* [1, 2, 3]
        await new Promise(() => undefined)
      } finally {
        isReturned = true
      }
    }
    const stream = bifrost.appendStream('log', source())
    const reader = bifrost.createReader('log')
    const third = bifrost.readNextSingle('log', 2)
    await third
    const [outcome] = await Promise.allSettled([stream, bifrost.close()])
    assert.ok(outcome.status === 'rejected')
    const { code, count, last } = outcome.reason as Record<string, unknown>
    assert.deepEqual({ code, count, last }, { code: 'CLOSED', count: 3, last: 3 })
    assert.equal(isReturned, false, 'a parked generator can not be ended')
    await rejection(reader.readNext(), 'CLOSED')
  })

  test('gives up on a writer that does not finish within the grace', async () => {
    const gate = new Gate()
    const opening = openMemoryStore(
      { logs: [] },
      { startsInOpen: true, graceMs: 30, internals: { schedule: gate.schedule } },
    )
    const bifrost = await opening
    const creating = bifrost.createLog('log')
    gate.step()
    await creating
    const appender = bifrost.createAppender('log', { maxBatchCount: 1 })
    await appender.enqueueMany([1, 2])
    const committed = appender.committed()
    await turn()
    await bifrost.close()
    assert.equal(bifrost.status, 'closed')
    await rejection(committed, 'CLOSED')
    assert.equal(appender.lastCommitted, 1)
  })

  test('that the provider rejects is rejected each time, and the store has failed', async () => {
    const failure = logError('STORE_FAILED', 'a write is stuck')
    const bifrost = await openMemoryStore(
      {},
      {
        startsInOpen: true,
        wrap: (inner) =>
          Object.assign(new WrappedProvider(inner), { shutdown: () => Promise.reject(failure) }),
      },
    )
    for (let i = 0; i < 3; i++) {
      assert.equal(await rejection(bifrost.close(), 'STORE_FAILED'), failure)
    }
    assert.equal(bifrost.status, 'failed')
    assert.equal(bifrost.failure, failure)
    await rejection(bifrost.append('log', 1), 'CLOSED')
  })

  test('gives the provider what is left of the grace', async () => {
    const graces: number[] = []
    const bifrost = await openMemoryStore(
      {},
      {
        startsInOpen: true,
        wrap: (inner) =>
          Object.assign(new WrappedProvider(inner), {
            shutdown: async (graceMs: number) => {
              graces.push(graceMs)
              await inner.shutdown(graceMs)
            },
          }),
      },
    )
    await bifrost.append('log', 1)
    await Promise.all([bifrost.close(), bifrost.close()])
    await bifrost.close()
    assert.equal(graces.length, 1)
    assert.ok(graces[0] !== undefined && graces[0] > 0 && graces[0] <= 5000)
  })

  test('leaves no rejection that nobody handles', async (t) => {
    const unhandled: unknown[] = []
    const listener = (reason: unknown): number => unhandled.push(reason)
    process.on('unhandledRejection', listener)
    t.after(() => process.off('unhandledRejection', listener))
    const bifrost = await openMemoryStore({}, { startsInOpen: true })
    const stream = bifrost.appendStream(
      'log',
      (async function* () {
        yield 1
        await new Promise(() => undefined)
      })(),
    )
    const appender = bifrost.createAppender('log')
    void appender.enqueue(1)
    const parked = bifrost.createReader('log', { from: 99 }).readNext()
    await turn()
    await bifrost.close()
    await Promise.allSettled([stream, parked])
    for (let i = 0; i < 5; i++) await turn()
    assert.deepEqual(unhandled, [])
  })

  test('lets a process end', async () => {
    const bifrost: Bifrost = await openMemoryStore({}, { startsInOpen: true })
    await bifrost.append('log', 1)
    await bifrost.close()
    const timers = process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout')
    assert.deepEqual(timers, [])
  })
})
