/** How providers come up and go down, and what becomes of what was asked of them meanwhile. */
import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { describe, test } from 'node:test'
import { logError } from '../../codec/errors.ts'
import { resolveStoreOptions, type ResolvedStoreOptions } from '../../engine/options.ts'
import type { Bifrost } from '../../loglets/bifrost.ts'
import type { LogletProvider } from '../../loglets/loglet-provider.ts'
import { MemoryProvider } from '../../loglets/memory-provider.ts'
import { ManagedProvider, Watchdog } from '../../loglets/watchdog.ts'
import { rejection } from '../support/expect-error.ts'
import { openStore, type TestOptions } from './memory-store.ts'
import { WrappedProvider } from './wrapped-provider.ts'

function turn(): Promise<void> {
  return new Promise(setImmediate)
}

/** A provider whose start takes until it is told to succeed or fail. */
class SlowProvider extends WrappedProvider {
  isShutDown = false
  #succeed: (() => void) | undefined
  #fail: ((error: Error) => void) | undefined

  override start(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#succeed = resolve
      this.#fail = reject
    })
  }

  succeed(): void {
    this.#succeed?.()
  }

  fail(error: Error): void {
    this.#fail?.(error)
  }

  override shutdown(graceMs: number): Promise<void> {
    this.isShutDown = true
    return super.shutdown(graceMs)
  }
}

/** A store whose provider starts slowly; `made` are the providers of all its starts. */
async function openSlow(
  options: TestOptions = { logs: ['log'] },
  graceMs?: number,
): Promise<{ bifrost: Bifrost; made: SlowProvider[] }> {
  const made: SlowProvider[] = []
  const make = (store: ResolvedStoreOptions): LogletProvider => {
    const provider = new SlowProvider(new MemoryProvider(store))
    made.push(provider)
    return provider
  }
  return { bifrost: await openStore(options, { startsInOpen: false, make }, graceMs), made }
}

async function payloads(bifrost: Bifrost, logId = 'log'): Promise<unknown[]> {
  const all: unknown[] = []
  const reader = bifrost.createReader(logId, { follow: false, gaps: 'throw' })
  for await (const { payload } of reader) all.push(payload)
  return all
}

describe('a provider that starts lazily', () => {
  test('starts at the first use, once, with the logs that were asked for', async () => {
    const { bifrost, made } = await openSlow({ logs: ['a', 'b'] })
    assert.equal(made.length, 0)
    assert.equal(bifrost.status, 'open')
    assert.deepEqual(bifrost.logIds(), ['a', 'b'])
    const uses = [bifrost.append('a', 1), bifrost.findTail('b'), bifrost.append('b', 2)]
    assert.equal(made.length, 1)
    made[0]?.succeed()
    await Promise.all(uses)
    assert.deepEqual(bifrost.logIds(), ['a', 'b'])
    assert.equal(made.length, 1)
    await bifrost.close()
  })

  test('keeps the call order of appends per log, also of those that come while it starts', async () => {
    const { bifrost, made } = await openSlow({ logs: ['a', 'b'] })
    const appends: Promise<unknown>[] = []
    const add = (from: number): void => {
      for (let n = from; n < from + 10; n++) {
        appends.push(
          n % 3 === 0
            ? bifrost.appendBatch('a', [n, n])
            : n % 3 === 1
              ? bifrost.append('a', n)
              : bifrost.appendMany([
                  { logId: 'b', payload: n },
                  { logId: 'a', payload: n },
                ]),
        )
      }
    }
    add(0)
    await turn()
    add(10)
    made[0]?.succeed()
    add(20)
    await turn()
    add(30)
    await Promise.all(appends)
    const expected = Array.from({ length: 40 }, (_, n) => (n % 3 === 0 ? [n, n] : [n])).flat()
    assert.deepEqual(await payloads(bifrost, 'a'), expected)
    const order = await payloads(bifrost, 'b')
    assert.deepEqual(
      order,
      Array.from({ length: 40 }, (_, n) => n).filter((n) => n % 3 === 2),
    )
    await bifrost.close()
  })

  test('captures what is appended at the call, and refuses it there if it can not be', async () => {
    const { bifrost, made } = await openSlow({ logs: ['log'], maxRecordBytes: 100 })
    const payload = { n: 1, bytes: new Uint8Array([1]) }
    const batch = [{ n: 2 }]
    const entries = [{ logId: 'log', payload: { n: 3 } }]
    const keys = ['k']
    const appends = [
      bifrost.append('log', payload, { keys }),
      bifrost.appendBatch('log', batch, { keys }),
      bifrost.appendMany(entries),
    ]
    payload.n = 9
    payload.bytes[0] = 9
    batch[0] = { n: 9 }
    Object.assign(entries[0] as object, { payload: 9, logId: 'other' })
    keys[0] = 'z'
    await rejection(bifrost.append('log', undefined), 'ENCODE_FAILED')
    await rejection(bifrost.append('log', 'x'.repeat(101)), 'RECORD_TOO_LARGE')
    await rejection(bifrost.appendBatch('log', [1, () => 2]), 'ENCODE_FAILED')
    await rejection(bifrost.appendMany([{ logId: 'log', payload: Symbol('s') }]), 'ENCODE_FAILED')
    made[0]?.succeed()
    assert.deepEqual(await Promise.all(appends), [1, 2, [3]])
    const bytes = new Uint8Array([1])
    assert.deepStrictEqual(await payloads(bifrost), [{ n: 1, bytes }, { n: 2 }, { n: 3 }])
    const record = await bifrost.readNextSingle('log', 1)
    assert.deepEqual(record.kind === 'data' && record.keys, ['k'])
    await bifrost.close()
  })

  test('holds trims, seals, readers, appenders and streams until it is up', async () => {
    const { bifrost, made } = await openSlow()
    const appender = bifrost.createAppender('log')
    await appender.enqueue('a')
    const stream = bifrost.appendStream('log', ['b'])
    const reading = bifrost.createReader('log').readNext()
    await turn()
    await turn()
    const uses = Promise.all([appender.committed(), stream, bifrost.trim('log', 0), reading])
    made[0]?.succeed()
    const [, , , record] = await uses
    assert.equal(record?.lsn, 1)
    assert.equal((await bifrost.seal('log')).lsn, 3)
    await bifrost.close()
  })

  test('counts what waits for it, and rejects where a full queue has to', async () => {
    const { bifrost, made } = await openSlow({ logs: ['log'], queueBytes: 1000 })
    const payload = new Uint8Array(600)
    const whenFull = 'reject'
    const first = bifrost.append('log', payload, { whenFull })
    const waiting = bifrost.append('log', payload)
    assert.ok(bifrost.metrics().bifrost_localloglet_waiting_bytes > 1200)
    await rejection(bifrost.append('log', 'small', { whenFull }), 'QUEUE_FULL')
    made[0]?.succeed()
    assert.deepEqual(await Promise.all([first, waiting]), [1, 2])
    await bifrost.close()
  })

  test('an append that waits for it can be withdrawn', async () => {
    const { bifrost, made } = await openSlow()
    const controller = new AbortController()
    const { signal } = controller
    const { signal: calm } = new AbortController()
    const kept = bifrost.append('log', 'kept', { signal: calm })
    const withdrawn = bifrost.append('log', 'withdrawn', { signal })
    const last = bifrost.append('log', 'last')
    controller.abort()
    await rejection(withdrawn, 'ABORTED')
    await rejection(bifrost.append('log', 'too late', { signal }), 'ABORTED')
    made[0]?.succeed()
    assert.deepEqual(await Promise.all([kept, last]), [1, 2])
    assert.deepEqual(await payloads(bifrost), ['kept', 'last'])
    for (const each of [signal, calm]) assert.equal(getEventListeners(each, 'abort').length, 0)
    await bifrost.close()
  })

  test('a reader that waits for it can be aborted and left', async () => {
    const { bifrost, made } = await openSlow()
    const controller = new AbortController()
    const aborted = bifrost.createReader('log', { signal: controller.signal }).readNext()
    const left = bifrost.createReader('log', { last: 3 })
    assert.equal(left.readPointer, 0)
    const call = left.readNext()
    controller.abort()
    await rejection(aborted, 'ABORTED')
    await left.return()
    assert.equal(await call, undefined)
    made[0]?.succeed()
    await bifrost.close()
  })

  test('knows no log that nobody made', async () => {
    const { bifrost, made } = await openSlow()
    const calls = [
      bifrost.append('nobody', 1),
      bifrost.appendMany([{ logId: 'nobody', payload: 1 }]),
      bifrost.findTail('nobody'),
      bifrost.createReader('nobody').readNext(),
    ]
    made[0]?.succeed()
    await Promise.all(calls.map((call) => rejection(call, 'UNKNOWN_LOG')))
    await bifrost.close()
  })
})

describe('a provider whose start fails', () => {
  test('fails what waited, and the next use tries again', async () => {
    const { bifrost, made } = await openSlow()
    const failure = logError('OPEN_FAILED', 'no network')
    const calls = [
      bifrost.append('log', 1),
      bifrost.appendBatch('log', [1]),
      bifrost.findTail('log'),
      bifrost.createLog('other'),
    ]
    const reader = bifrost.createReader('log')
    const reading = reader.readNext()
    made[0]?.fail(failure)
    for (const call of [...calls, reading])
      assert.equal(await rejection(call, 'OPEN_FAILED'), failure)
    assert.equal(bifrost.status, 'open')
    const retried = bifrost.append('log', 2)
    assert.equal(made.length, 2)
    made[1]?.succeed()
    assert.equal(await retried, 1)
    assert.equal((await reader.readNext())?.lsn, 1)
    await reader.return()
    await bifrost.close()
  })

  test('is tried again by what is called when the failure is told', async () => {
    const { bifrost, made } = await openSlow()
    const retried = bifrost.append('log', 1).catch(() => bifrost.append('log', 2))
    made[0]?.fail(new Error('no LogError'))
    while (made.length < 2) await turn()
    made[1]?.succeed()
    assert.equal(await retried, 1)
    await bifrost.close()
  })

  test('is OPEN_FAILED with the cause, whatever it threw', async () => {
    const cause = new TypeError('bug')
    const make = (): never => {
      throw cause
    }
    const lazy = await openStore({ logs: ['log'] }, { startsInOpen: false, make })
    assert.equal((await rejection(lazy.append('log', 1), 'OPEN_FAILED')).cause, cause)
    await lazy.close()
    const opening = openStore({ logs: ['log'] }, { startsInOpen: true, make })
    assert.equal((await rejection(opening, 'OPEN_FAILED')).cause, cause)
  })

  test('that is one which starts in open makes open reject, and is shut down', async () => {
    const failure = logError('WRITE_FAILED', 'no space for logs')
    let made: SlowProvider | undefined
    const make = (store: ResolvedStoreOptions): LogletProvider => {
      made = new SlowProvider(new MemoryProvider(store))
      made.createLogs = () => Promise.reject(failure)
      made.start = () => Promise.resolve()
      return made
    }
    const opening = openStore({ logs: ['log'] }, { startsInOpen: true, make })
    assert.equal(await rejection(opening, 'WRITE_FAILED'), failure)
    assert.equal(made?.isShutDown, true)
  })

  test('a wrong option makes open reject before anything is made', async () => {
    const make = (): never => assert.fail('made')
    const opening = openStore({ logs: [''] }, { startsInOpen: true, make })
    await rejection(opening, 'INVALID_OPTION')
  })
})

describe('close() while a provider starts', () => {
  test('waits for the start, and commits what was called before it', async () => {
    const { bifrost, made } = await openSlow()
    const appends = [1, 2, 3].map((n) => bifrost.append('log', n))
    const closing = bifrost.close()
    await rejection(bifrost.append('log', 4), 'CLOSED')
    assert.equal(bifrost.status, 'closing')
    made[0]?.succeed()
    assert.deepEqual(await Promise.all(appends), [1, 2, 3])
    await closing
    assert.equal(made[0]?.isShutDown, true)
  })

  test('ends what waits with CLOSED once the grace is over, and shuts a late one down', async () => {
    const { bifrost, made } = await openSlow({ logs: ['log'] }, 20)
    const append = bifrost.append('log', 1)
    const closing = bifrost.close()
    await rejection(append, 'CLOSED')
    await closing
    assert.equal(bifrost.status, 'closed')
    made[0]?.succeed()
    await turn()
    assert.equal(made[0]?.isShutDown, true)
    await rejection(bifrost.append('log', 2), 'CLOSED')
  })

  test('of one that nobody used makes none', async () => {
    const { bifrost, made } = await openSlow()
    await bifrost.close()
    assert.equal(made.length, 0)
    await rejection(bifrost.append('log', 1), 'CLOSED')
    await rejection(bifrost.createReader('log').readNext(), 'CLOSED')
    assert.equal(made.length, 0)
  })

  test('does not wait for a start that nobody waits for', { timeout: 5000 }, async () => {
    const { bifrost, made } = await openSlow({ logs: ['log'] }, 60_000)
    const controller = new AbortController()
    const append = bifrost.append('log', 1, { signal: controller.signal })
    controller.abort()
    await rejection(append, 'ABORTED')
    await bifrost.close()
    made[0]?.succeed()
    await turn()
    assert.equal(made[0]?.isShutDown, true)
  })
})

describe('ManagedProvider', () => {
  test('perform() keeps the call order, and one that throws fails nobody else', async () => {
    const order: number[] = []
    const managed = new ManagedProvider({
      make: () => new MemoryProvider(resolveStoreOptions({ dir: '(memory)' })),
      prepare: () => Promise.resolve(),
    })
    const failure = new Error('thrown, not rejected')
    const thrower = managed.perform(() => {
      order.push(1)
      throw failure
    })
    const next = managed.perform(async () => order.push(2))
    managed.use({ run: () => order.push(3), fail: () => assert.fail('failed') })
    const last = managed.perform(async () => order.push(4))
    await assert.rejects(thrower, (error) => error === failure)
    await Promise.all([next, last])
    assert.deepEqual(order, [1, 2, 3, 4])
  })
})

describe('Watchdog', () => {
  const options = resolveStoreOptions({ dir: '(memory)' })

  test('manages one provider of a kind, and shuts all down in parallel', async () => {
    const watchdog = new Watchdog()
    const order: string[] = []
    const manage = (kind: 'local' | 'memory'): ManagedProvider =>
      watchdog.manage(kind, {
        make: () => {
          const provider = new WrappedProvider(new MemoryProvider(options))
          provider.shutdown = async () => {
            order.push(`${kind} begins`)
            await turn()
            order.push(`${kind} ends`)
          }
          return provider
        },
        prepare: () => Promise.resolve(),
      })
    const local = manage('local')
    assert.equal(manage('local'), local)
    await Promise.all([local.start(), manage('memory').start()])
    await watchdog.shutdown(1000)
    assert.deepEqual(order, ['local begins', 'memory begins', 'local ends', 'memory ends'])
  })

  test('tells the first failure once all are down', async () => {
    const watchdog = new Watchdog()
    const failure = logError('STORE_FAILED', 'stuck')
    let isDown = false
    const manage = (kind: 'local' | 'memory', shutdown: () => Promise<void>): ManagedProvider =>
      watchdog.manage(kind, {
        make: () => Object.assign(new WrappedProvider(new MemoryProvider(options)), { shutdown }),
        prepare: () => Promise.resolve(),
      })
    const stuck = manage('local', () => Promise.reject(failure))
    const slow = manage('memory', async () => {
      await turn()
      isDown = true
    })
    await Promise.all([stuck.start(), slow.start()])
    assert.equal(await rejection(watchdog.shutdown(1000), 'STORE_FAILED'), failure)
    assert.equal(isDown, true)
  })
})
