/** The members of a store: what they promise of appends, tails, trims, seals and logs. */
import assert from 'node:assert/strict'
import { createHook } from 'node:async_hooks'
import { describe, test } from 'node:test'
import { LogError, logError } from '../../codec/errors.ts'
import { BifrostStore } from '../../loglets/bifrost-store.ts'
import type { Bifrost } from '../../loglets/bifrost.ts'
import type { Entry } from '../../loglets/append-options.ts'
import { rejection, thrown } from '../support/expect-error.ts'
import { Gate, openMemoryStore } from './memory-store.ts'
import { FailingProvider } from './wrapped-provider.ts'

async function payloads(bifrost: Bifrost, logId = 'log'): Promise<unknown[]> {
  const all: unknown[] = []
  for await (const record of bifrost.createReader(logId, { follow: false })) {
    all.push(record.kind === 'data' ? record.payload : record)
  }
  return all
}

const GARBAGE: unknown[] = [null, 0, 'x', {}, [], Symbol('s'), () => 1, { unknown: 1 }, NaN, -1]

describe('Bifrost', () => {
  test('has no constructor for users', () => {
    const error = thrown(() => new BifrostStore(), 'INVALID_OPTION')
    assert.match(error.message, /Bifrost\.open/)
    thrown(() => new BifrostStore({} as never), 'INVALID_OPTION')
  })

  test('async members reject and never throw, whatever they are given', async () => {
    const bifrost = await openMemoryStore()
    for (const a of GARBAGE) {
      for (const b of [undefined, ...GARBAGE]) {
        const wrong = [a, b] as never[]
        const calls: [string, () => Promise<unknown>][] = [
          ['createLog', () => bifrost.createLog({ a } as never)],
          ['deleteLog', () => bifrost.deleteLog(...(wrong as [never]))],
          ['append', () => bifrost.append(a as never, b)],
          ['append options', () => bifrost.append('nobody', 1, a as never)],
          ['appendBatch', () => bifrost.appendBatch(a as never, b as never)],
          ['appendMany', () => bifrost.appendMany([a, b] as never)],
          ['appendStream', () => bifrost.appendStream(a as never, b as never)],
          ['readNextSingle', () => bifrost.readNextSingle('nobody', a as never, b as never)],
          ['readNextSingleOpt', () => bifrost.readNextSingleOpt('nobody', a as never)],
          ['findTail', () => bifrost.findTail(a as never)],
          ['getTrimPoint', () => bifrost.getTrimPoint(a as never)],
          ['trim', () => bifrost.trim('nobody', a as never)],
          ['seal', () => bifrost.seal('nobody', a as never)],
        ]
        for (const [name, call] of calls) {
          const promise = call()
          const error = await promise.then(
            () => assert.fail(`${name} resolved`),
            (reason: unknown) => reason,
          )
          assert.ok(error instanceof LogError, `${name}: ${String(error)}`)
        }
      }
    }
    assert.deepEqual(await payloads(bifrost), [])
    await bifrost.close()
  })

  test('sync members throw INVALID_OPTION only, also for unknown logs and after close', async () => {
    const bifrost = await openMemoryStore()
    for (const garbage of GARBAGE) {
      if (garbage !== 'x') {
        thrown(() => bifrost.log(garbage as never), 'INVALID_OPTION')
        thrown(() => bifrost.createReader(garbage as never), 'INVALID_OPTION')
        thrown(() => bifrost.createAppender(garbage as never), 'INVALID_OPTION')
      }
    }
    thrown(() => bifrost.createReader('log', { form: 1 } as never), 'INVALID_OPTION')
    thrown(() => bifrost.createAppender('log', { maxBatchCount: 0 }), 'INVALID_OPTION')
    await bifrost.close()
    assert.equal(bifrost.log('nobody').logId, 'nobody')
    bifrost.createReader('nobody')
    bifrost.createAppender('nobody')
    assert.ok(Array.isArray(bifrost.logIds()))
    assert.equal(bifrost.metrics().bifrost_localloglet_appends_total, 0)
  })

  test('logs of any name work, and names that are none are INVALID_OPTION', async () => {
    const logs = ['../x', ':', '/', '🦉', '__proto__', 'x'.repeat(255), ' ']
    const bifrost = await openMemoryStore({ logs })
    for (const id of logs) assert.equal(await bifrost.append(id, id), 1)
    for (const id of logs) assert.deepEqual(await payloads(bifrost, id), [id])
    for (const id of ['', 'x'.repeat(256), '\ud800'] as const) {
      await rejection(bifrost.append(id, 1), 'INVALID_OPTION')
      await rejection(bifrost.createLog(id), 'INVALID_OPTION')
      await rejection(bifrost.findTail(id), 'INVALID_OPTION')
      thrown(() => bifrost.log(id), 'INVALID_OPTION')
    }
    await bifrost.close()
  })

  test('members reject with UNKNOWN_LOG for a log that is not there', async () => {
    const bifrost = await openMemoryStore()
    const log = bifrost.log('nobody')
    const calls = [
      log.append(1),
      log.appendBatch([1]),
      log.appendStream([1]),
      log.createReader().readNext(),
      log.readNextSingle(0),
      log.readNextSingleOpt(0),
      log.findTail(),
      log.getTrimPoint(),
      log.trim(1),
      log.seal(),
      bifrost.deleteLog('nobody'),
      bifrost.appendMany([
        { logId: 'log', payload: 1 },
        { logId: 'nobody', payload: 1 },
      ]),
    ]
    await Promise.all(calls.map((call) => rejection(call, 'UNKNOWN_LOG')))
    const appender = log.createAppender()
    await appender.enqueue(1)
    await rejection(appender.committed(), 'UNKNOWN_LOG')
    assert.equal((await bifrost.findTail('log')).lsn, 1)
    await bifrost.createLog('nobody')
    assert.equal(await log.append(1), 1)
    await bifrost.close()
  })
})

describe('append()', () => {
  test('gives LSNs from 1, in call order', async () => {
    const bifrost = await openMemoryStore()
    const lsns = await Promise.all([1, 2, 3].map((n) => bifrost.append('log', n)))
    assert.deepEqual(lsns, [1, 2, 3])
    assert.deepEqual(await payloads(bifrost), [1, 2, 3])
    await bifrost.close()
  })

  test('makes one promise', async () => {
    const gate = new Gate()
    const opening = openMemoryStore(
      { logs: [] },
      { startsInOpen: true, internals: { schedule: gate.schedule } },
    )
    const bifrost = await opening
    const creating = bifrost.createLog('log')
    gate.step()
    await creating
    let promises = 0
    const hook = createHook({ init: (_id, type) => (promises += type === 'PROMISE' ? 1 : 0) })
    hook.enable()
    const appends: unknown[] = []
    for (let n = 0; n < 100; n++) appends.push(bifrost.append('log', n, { expectedTail: n + 1 }))
    for (let n = 0; n < 100; n++) appends.push(bifrost.appendBatch('log', [n, n]))
    gate.step()
    hook.disable()
    assert.equal(promises, 200)
    assert.equal((await Promise.all(appends)).at(-1), 299)
    gate.open()
    await bifrost.close()
  })

  test('captures payload and options during the call', async () => {
    const bifrost = await openMemoryStore()
    const payload = { id: 1, bytes: new Uint8Array([1]) }
    const options = { keys: ['a'], expectedTail: 1 }
    const batch = [{ id: 2 }]
    const entries = [{ logId: 'log', payload: { id: 3 }, expectedTail: 3, keys: ['c'] }]
    const appends = [
      bifrost.append('log', payload, options),
      bifrost.appendBatch('log', batch),
      bifrost.appendMany(entries),
    ]
    payload.id = 9
    payload.bytes[0] = 9
    options.keys[0] = 'z'
    options.expectedTail = 9
    Object.assign(batch[0] as object, { id: 9 })
    batch.push({ id: 10 })
    Object.assign(entries[0] as object, { payload: 9, expectedTail: 9, keys: [] })
    await Promise.all(appends)
    const bytes = new Uint8Array([1])
    assert.deepStrictEqual(await payloads(bifrost), [{ id: 1, bytes }, { id: 2 }, { id: 3 }])
    const first = await bifrost.readNextSingle('log', 0)
    assert.deepEqual(first.kind === 'data' && first.keys, ['a'])
    await bifrost.close()
  })

  test('with expectedTail is judged in order, and tells the tail that can be read up to', async () => {
    const bifrost = await openMemoryStore()
    const winner = bifrost.append('log', 'a', { expectedTail: 1 })
    const loser = bifrost.append('log', 'b', { expectedTail: 1 })
    const error = await rejection(loser, 'TAIL_MISMATCH')
    assert.equal(error.tail, 2)
    assert.match(error.message, /Expected the tail to be 1, but it is 2/)
    assert.equal((await bifrost.readNextSingleOpt('log', error.tail - 2))?.lsn, 1)
    assert.equal(await winner, 1)
    await rejection(bifrost.appendBatch('log', [1, 2], { expectedTail: 1 }), 'TAIL_MISMATCH')
    assert.equal(await bifrost.appendBatch('log', [1, 2], { expectedTail: 2 }), 2)
    await bifrost.close()
  })

  test('refuses options that are unknown or wrong', async () => {
    const bifrost = await openMemoryStore()
    const wrong: object[] = [
      { expectedLsn: 1 },
      { expectedTail: 0 },
      { expectedTail: -1 },
      { expectedTail: 1.5 },
      { expectedTail: 2 ** 53 },
      { expectedTail: '1' },
      { whenFull: 'drop' },
      { signal: { aborted: false } },
      { keys: 'a' },
      { keys: ['x'.repeat(256)] },
      { keys: null },
    ]
    for (const options of wrong) {
      await rejection(bifrost.append('log', 1, options), 'INVALID_OPTION')
      await rejection(bifrost.appendBatch('log', [1], options), 'INVALID_OPTION')
    }
    assert.equal((await bifrost.findTail('log')).lsn, 1)
    await bifrost.close()
  })

  test('an aborted signal rejects with ABORTED, an AbortError with the reason as cause', async () => {
    const bifrost = await openMemoryStore()
    const reason = new Error('enough')
    const options = { signal: AbortSignal.abort(reason) }
    const calls = [
      bifrost.append('log', 1, options),
      bifrost.appendBatch('log', [1], options),
      bifrost.appendStream('log', [1], options),
      bifrost.readNextSingle('log', 0, options),
      bifrost.createReader('log', options).readNext(),
    ]
    for (const error of await Promise.all(calls.map((call) => rejection(call, 'ABORTED')))) {
      assert.equal(error.name, 'AbortError')
      assert.equal(error.cause, reason)
    }
    assert.equal((await bifrost.findTail('log')).lsn, 1)
    await bifrost.close()
  })

  test('is independent of others: after a WRITE_FAILED later ones succeed', async () => {
    let provider: FailingProvider | undefined
    const wrap = (inner: ConstructorParameters<typeof FailingProvider>[0]): FailingProvider =>
      (provider = new FailingProvider(inner))
    const bifrost = await openMemoryStore({}, { wrap, startsInOpen: true })
    provider?.appendErrors.push(logError('WRITE_FAILED', 'no space'))
    const outcomes = await Promise.allSettled([1, 2, 3].map((n) => bifrost.append('log', n)))
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ['rejected', 'fulfilled', 'fulfilled'],
    )
    assert.deepEqual(await payloads(bifrost), [2, 3])
    assert.equal(bifrost.status, 'open')
    await bifrost.close()
  })
})

describe('appendBatch()', () => {
  test('gives the LSN of the first record, one LSN each', async () => {
    const bifrost = await openMemoryStore()
    assert.equal(await bifrost.appendBatch('log', ['a', 'b', 'c']), 1)
    assert.equal(await bifrost.append('log', 'd'), 4)
    assert.equal((await bifrost.findTail('log')).lsn, 5)
    await bifrost.close()
  })

  test('gives each record its keys', async () => {
    const bifrost = await openMemoryStore()
    await bifrost.appendBatch('log', [1, 2, 3], { keys: (n, i) => [`n${n}`, `i${i}`] })
    await bifrost.appendBatch('log', [4], { keys: ['all'] })
    const keys: unknown[] = []
    for await (const record of bifrost.createReader('log', { follow: false, gaps: 'throw' })) {
      keys.push(record.keys)
    }
    assert.deepEqual(keys, [['n1', 'i0'], ['n2', 'i1'], ['n3', 'i2'], ['all']])
    const cause = new Error('no keys')
    const failing = bifrost.appendBatch('log', [1], {
      keys: () => {
        throw cause
      },
    })
    assert.equal((await rejection(failing, 'INVALID_OPTION')).cause, cause)
    await bifrost.close()
  })

  test('of nothing is EMPTY_BATCH, and of a hole is ENCODE_FAILED; both leave the tail', async () => {
    const bifrost = await openMemoryStore()
    await rejection(bifrost.appendBatch('log', []), 'EMPTY_BATCH')
    await rejection(bifrost.appendBatch('log', new Array(2)), 'ENCODE_FAILED')
    await rejection(bifrost.appendBatch('log', 'ab' as never), 'INVALID_OPTION')
    assert.equal((await bifrost.findTail('log')).lsn, 1)
    await bifrost.close()
  })
})

describe('appendMany()', () => {
  test('gives each entry an LSN of its own log, all or none', async () => {
    const bifrost = await openMemoryStore({ logs: ['a', 'b'] })
    await bifrost.append('a', 0)
    const lsns = await bifrost.appendMany([
      { logId: 'a', payload: 1, expectedTail: 2 },
      { logId: 'b', payload: 2, keys: ['k'] },
      { logId: 'a', payload: 3, expectedTail: 3 },
    ])
    assert.deepEqual(lsns, [2, 1, 3])
    const { tail } = await rejection(
      bifrost.appendMany([
        { logId: 'b', payload: 4 },
        { logId: 'a', payload: 5, expectedTail: 9 },
      ]),
      'TAIL_MISMATCH',
    )
    assert.equal(tail, 4)
    await bifrost.seal('b', 'full')
    const entries = [
      { logId: 'a', payload: 6 },
      { logId: 'b', payload: 7 },
    ]
    assert.equal((await rejection(bifrost.appendMany(entries), 'SEALED')).reason, 'full')
    assert.deepEqual(await payloads(bifrost, 'a'), [0, 1, 3])
    assert.deepEqual(await payloads(bifrost, 'b'), [2])
    await bifrost.close()
  })

  test('refuses what is no entry', async () => {
    const bifrost = await openMemoryStore()
    await rejection(bifrost.appendMany([]), 'EMPTY_BATCH')
    const wrong: unknown[] = [
      'entries',
      [null],
      [1],
      new Array(1),
      [{ logId: '', payload: 1 }],
      [{ logId: 'log', payload: 1, tail: 1 }],
      [{ logId: 'log', payload: 1, expectedTail: 0 }],
      [{ logId: 'log', payload: 1, keys: 'k' }],
    ]
    for (const entries of wrong) {
      await rejection(bifrost.appendMany(entries as Entry[]), 'INVALID_OPTION')
    }
    await rejection(bifrost.appendMany([{ logId: 'log' } as Entry]), 'ENCODE_FAILED')
    assert.equal((await bifrost.findTail('log')).lsn, 1)
    await bifrost.close()
  })
})

describe('findTail(), trim() and seal()', () => {
  test('findTail() tells the durable tail and the last readable record', async () => {
    const bifrost = await openMemoryStore()
    const open = { sealed: false, reason: undefined }
    assert.deepEqual(await bifrost.findTail('log'), { ...open, lsn: 1, last: undefined })
    await bifrost.appendBatch('log', [1, 2, 3])
    assert.deepEqual(await bifrost.findTail('log'), { ...open, lsn: 4, last: 3 })
    await bifrost.trim('log', 2)
    assert.deepEqual(await bifrost.findTail('log'), { ...open, lsn: 4, last: 3 })
    await bifrost.trim('log', 3)
    assert.deepEqual(await bifrost.findTail('log'), { ...open, lsn: 4, last: undefined })
    await bifrost.close()
  })

  test('trim() is inclusive, clamps, never moves back, and gives the trim point in force', async () => {
    const bifrost = await openMemoryStore()
    assert.equal(await bifrost.getTrimPoint('log'), 0)
    assert.equal(await bifrost.trim('log', 5), 0)
    await bifrost.appendBatch('log', [1, 2, 3, 4])
    assert.equal(await bifrost.trim('log', 2), 2)
    assert.equal(await bifrost.trim('log', 1), 2)
    assert.equal(await bifrost.trim('log', 0), 2)
    assert.equal(await bifrost.getTrimPoint('log'), 2)
    assert.equal(await bifrost.trim('log', Number.MAX_SAFE_INTEGER), 4)
    assert.equal(await bifrost.append('log', 5), 5)
    for (const upTo of [-1, 1.5, 2 ** 53, '1', undefined]) {
      await rejection(bifrost.trim('log', upTo as number), 'INVALID_LSN')
    }
    await bifrost.close()
  })

  test('seal() is idempotent, the first reason wins, and appends are SEALED', async () => {
    const bifrost = await openMemoryStore()
    const pending = bifrost.append('log', 1)
    const state = { sealed: true, reason: 'moved', lsn: 2, last: 1 }
    assert.deepEqual(await bifrost.seal('log', 'moved'), state)
    assert.deepEqual(await bifrost.seal('log', 'again'), state)
    assert.deepEqual(await bifrost.findTail('log'), state)
    assert.equal(await pending, 1)
    for (const call of [bifrost.append('log', 2), bifrost.appendBatch('log', [2])]) {
      const { tail, reason } = await rejection(call, 'SEALED')
      assert.deepEqual({ tail, reason }, { tail: 2, reason: 'moved' })
    }
    for (const reason of [1, null, {}, '\ud800', 'x'.repeat(5000)]) {
      await rejection(bifrost.seal('log', reason as string), 'INVALID_OPTION')
    }
    await bifrost.close()
  })

  test('no append is acknowledged at or past a sealed tail that was told', async () => {
    const bifrost = await openMemoryStore()
    const acked: number[] = []
    const appends = Array.from({ length: 50 }, (_, i) => {
      if (i === 20) void bifrost.seal('log')
      return bifrost.append('log', i).then(
        (lsn) => acked.push(lsn),
        () => undefined,
      )
    })
    const { lsn: tail } = await bifrost.seal('log')
    await Promise.all(appends)
    assert.equal(Math.max(...acked), tail - 1)
    assert.equal(tail, 21)
    await bifrost.close()
  })
})

describe('createLog() and deleteLog()', () => {
  test('createLog() leaves an existing log as it is', async () => {
    const bifrost = await openMemoryStore()
    await bifrost.append('log', 1)
    await bifrost.createLog('log')
    await bifrost.createLog('other')
    assert.deepEqual(bifrost.logIds(), ['log', 'other'])
    assert.deepEqual(await payloads(bifrost), [1])
    await bifrost.close()
  })

  test('a log created again after deleteLog() is a new one that starts at 1', async () => {
    const bifrost = await openMemoryStore()
    const log = bifrost.log('log')
    await log.appendBatch([1, 2])
    const reader = log.createReader({ from: 3 })
    const parked = reader.readNext()
    await bifrost.deleteLog('log')
    await rejection(parked, 'UNKNOWN_LOG')
    assert.deepEqual(bifrost.logIds(), [])
    await rejection(log.append(3), 'UNKNOWN_LOG')
    await bifrost.createLog('log')
    await rejection(reader.readNext(), 'UNKNOWN_LOG')
    assert.equal(await log.append('new'), 1)
    assert.deepEqual(await payloads(bifrost), ['new'])
    await bifrost.close()
  })
})

describe('a store that has failed', () => {
  test('is failed, refuses appends, and still reads what is durable', async () => {
    let provider: FailingProvider | undefined
    const wrap = (inner: ConstructorParameters<typeof FailingProvider>[0]): FailingProvider =>
      (provider = new FailingProvider(inner))
    const bifrost = await openMemoryStore({}, { wrap, startsInOpen: true })
    await bifrost.appendBatch('log', [1, 2])
    const reader = bifrost.createReader('log')
    assert.equal((await reader.readNext())?.lsn, 1)
    const failure = logError('STORE_FAILED', 'EIO')
    provider?.fail(failure)
    assert.equal(bifrost.status, 'failed')
    assert.equal(bifrost.failure, failure)
    await rejection(bifrost.append('log', 3), 'STORE_FAILED')
    assert.equal((await bifrost.findTail('log')).lsn, 3)
    assert.equal(await bifrost.getTrimPoint('log'), 0)
    assert.equal((await reader.readNext())?.lsn, 2)
    await rejection(reader.readNext(), 'STORE_FAILED')
    assert.equal(reader.ended, true)
    const fresh = bifrost.createReader('log')
    assert.equal((await fresh.readNext())?.lsn, 1)
    await bifrost.close()
    assert.equal(bifrost.status, 'closed')
    assert.equal(bifrost.failure, failure)
  })
})

describe('metrics() and recovery', () => {
  test('are there before and after the provider has started', async () => {
    const bifrost = await openMemoryStore()
    assert.equal(bifrost.recovery.droppedBytes, 0)
    assert.equal(bifrost.metrics().bifrost_localloglet_appends_total, 0)
    await bifrost.appendBatch('log', [1, 2])
    assert.equal(bifrost.metrics().bifrost_localloglet_appends_total, 2)
    assert.equal(bifrost.metrics().bifrost_localloglet_write_batch_count.max, 2)
    assert.deepEqual(bifrost.recovery.findings, [])
    await bifrost.close()
  })
})
