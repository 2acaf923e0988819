/** The provider contract: the registry, appends over several loglets, and the shutdown. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LogError } from '../../codec/errors.ts'
import type { LogletProvider } from '../../loglets/loglet-provider.ts'
import { rejection } from '../support/expect-error.ts'
import {
  append,
  appendBatch,
  appendMany,
  logletOf,
  newLoglet,
  payloadsFrom,
  readOnce,
  type ManyOutcome,
  type OpenProvider,
} from './loglet-probe.ts'

const GRACE_MS = 5000

function refusal(outcome: ManyOutcome): { code: string; at: number | undefined; tail?: number } {
  assert.ok('error' in outcome, 'refused')
  const { error, at } = outcome
  const tail = LogError.is(error, 'TAIL_MISMATCH') ? { tail: error.tail } : {}
  return { code: error.code, at, ...tail }
}

async function twoLoglets(provider: LogletProvider) {
  return [await newLoglet(provider, 'a'), await newLoglet(provider, 'b')] as const
}

export function providerContract(open: OpenProvider): void {
  test('createLogs() makes what is missing, in order, and leaves what is there', async (t) => {
    const { chains } = await open(t)
    await chains.createLogs(['b', 'a'])
    const before = chains.chain('a')?.[0]?.loglet
    await Promise.all([chains.createLogs(['a', 'c', 'c']), chains.createLogs(['c', 'd'])])
    await chains.createLogs([])
    assert.deepEqual(chains.logIds(), ['b', 'a', 'c', 'd'])
    assert.equal(chains.chain('a')?.[0]?.loglet, before)
    assert.equal(chains.chain('nobody'), undefined)
  })

  test('a log has one link whose first LSN is 1', async (t) => {
    const { chains } = await open(t)
    await chains.createLogs(['a'])
    const links = chains.chain('a')
    assert.equal(links?.length, 1)
    assert.equal(links[0]?.baseLsn, 1)
  })

  test('any string is a log id, and none is a path', async (t) => {
    const provider = await open(t)
    const ids = ['../x', ':', '/', '..', '.', 'a/b', '🦉', 'x'.repeat(255), '__proto__', ' ', '\n']
    await provider.chains.createLogs(ids)
    assert.deepEqual(provider.chains.logIds(), ids)
    for (const id of ids) {
      await append(logletOf(provider, id), id)
      assert.deepEqual(await payloadsFrom(logletOf(provider, id), 1), [id])
    }
  })

  test('many loglets keep their records apart', async (t) => {
    const provider = await open(t)
    const ids = Array.from({ length: 64 }, (_, i) => `log ${i}`)
    await provider.chains.createLogs(ids)
    const appends = Array.from({ length: 1280 }, (_, i) =>
      append(logletOf(provider, ids[i % 64] as string), i),
    )
    const offsets = await Promise.all(appends)
    for (const [i, offset] of offsets.entries()) assert.equal(offset, Math.floor(i / 64) + 1)
    for (const [n, id] of ids.entries()) {
      const expected = Array.from({ length: 20 }, (_, i) => i * 64 + n)
      assert.deepEqual(await payloadsFrom(logletOf(provider, id), 1), expected)
    }
  })

  test('deleteLog() ends the loglet, and the same name is a new log', async (t) => {
    const provider = await open(t)
    const { chains } = provider
    const old = await newLoglet(provider, 'orders')
    await append(old, 'old')
    let isTold = false
    old.watch(() => (isTold = old.state.ended !== undefined))
    await chains.deleteLog('orders')
    assert.equal(isTold, true)
    assert.equal(old.state.ended?.code, 'UNKNOWN_LOG')
    assert.equal(chains.chain('orders'), undefined)
    assert.deepEqual(chains.logIds(), [])
    await rejection(append(old, 'late'), 'UNKNOWN_LOG')
    await rejection(old.trim(1), 'UNKNOWN_LOG')
    await rejection(old.seal(undefined), 'UNKNOWN_LOG')
    const fresh = await newLoglet(provider, 'orders')
    assert.notEqual(fresh, old)
    assert.equal(await append(fresh, 'new'), 1)
    assert.deepEqual(await payloadsFrom(fresh, 1), ['new'])
    await rejection(readOnce(old, 1), 'UNKNOWN_LOG')
  })

  test('deleteLog() comes after the appends before it, and before those after it', async (t) => {
    const provider = await open(t)
    const loglet = await newLoglet(provider, 'a')
    const before = append(loglet, 1)
    const deleting = provider.chains.deleteLog('a')
    const after = append(loglet, 2)
    assert.equal(await before, 1)
    await deleting
    await rejection(after, 'UNKNOWN_LOG')
  })

  test('deleteLog() of what is not there is UNKNOWN_LOG', async (t) => {
    const { chains } = await open(t)
    await rejection(chains.deleteLog('nobody'), 'UNKNOWN_LOG')
    await chains.createLogs(['a'])
    const [first, second] = [chains.deleteLog('a'), chains.deleteLog('a')]
    await first
    await rejection(second, 'UNKNOWN_LOG')
  })

  test('appendMany() gives one offset per record, over any loglets', async (t) => {
    const provider = await open(t)
    const [a, b] = await twoLoglets(provider)
    await append(a, 'a1')
    const many = appendMany(provider, [
      { loglet: a, payload: 'a2', keys: ['k'] },
      { loglet: b, payload: 'b1' },
      { loglet: a, payload: 'a3' },
    ])
    const next = append(b, 'b2')
    assert.deepEqual(await many, { offsets: [2, 1, 3] })
    assert.equal(await next, 2)
    assert.deepEqual(await payloadsFrom(a, 1), ['a1', 'a2', 'a3'])
    assert.deepEqual(await payloadsFrom(b, 1), ['b1', 'b2'])
    assert.deepEqual((await readOnce(a, 2)).records[0]?.keys, ['k'])
  })

  test('appendMany() judges each record where it would go', async (t) => {
    const provider = await open(t)
    const [a, b] = await twoLoglets(provider)
    const outcome = await appendMany(provider, [
      { loglet: a, payload: 1, expectedTail: 1 },
      { loglet: b, payload: 1, expectedTail: 1 },
      { loglet: a, payload: 2, expectedTail: 2 },
    ])
    assert.deepEqual(outcome, { offsets: [1, 1, 2] })
  })

  test('appendMany() stores none when one is refused, and tells which', async (t) => {
    const provider = await open(t)
    const [a, b] = await twoLoglets(provider)
    await append(a, 'a1')
    const mismatch = await appendMany(provider, [
      { loglet: b, payload: 1 },
      { loglet: a, payload: 2 },
      { loglet: a, payload: 3, expectedTail: 2 },
    ])
    assert.deepEqual(refusal(mismatch), { code: 'TAIL_MISMATCH', at: 2, tail: 2 })
    const encode = await appendMany(provider, [
      { loglet: a, payload: 2 },
      { loglet: b, payload: undefined },
    ])
    assert.equal(refusal(encode).code, 'ENCODE_FAILED')
    await b.seal('full')
    const sealed = await appendMany(provider, [
      { loglet: a, payload: 2 },
      { loglet: b, payload: 1 },
    ])
    assert.deepEqual(refusal(sealed), { code: 'SEALED', at: 1 })
    assert.equal(refusal(await appendMany(provider, [])).code, 'EMPTY_BATCH')
    assert.equal(await append(a, 'a2'), 2)
    assert.deepEqual(await payloadsFrom(a, 1), ['a1', 'a2'])
    assert.deepEqual(await payloadsFrom(b, 1), [])
  })

  test('appendMany() with a deleted loglet stores none', async (t) => {
    const provider = await open(t)
    const [a, b] = await twoLoglets(provider)
    await provider.chains.deleteLog('b')
    const outcome = await appendMany(provider, [
      { loglet: a, payload: 1 },
      { loglet: b, payload: 1 },
    ])
    assert.deepEqual(refusal(outcome), { code: 'UNKNOWN_LOG', at: 1 })
    assert.equal(a.state.tail, 1)
  })

  test('appendMany() is refused at once over the limit of a batch', async (t) => {
    const provider = await open(t, { maxRecordBytes: 500, maxBatchBytes: 1000 })
    const [a, b] = await twoLoglets(provider)
    const payload = new Uint8Array(400)
    const three = [a, b, a].map((loglet) => ({ loglet, payload }))
    assert.equal(refusal(await appendMany(provider, three)).code, 'BATCH_TOO_LARGE')
    assert.deepEqual(await appendMany(provider, three.slice(1)), { offsets: [1, 1] })
  })

  test('metrics() counts records and groups, and leaves out what was refused', async (t) => {
    const provider = await open(t)
    const loglet = await newLoglet(provider)
    await Promise.all([append(loglet, 1), appendBatch(loglet, [2, 3]), append(loglet, 4)])
    await rejection(append(loglet, 5, { expectedTail: 1 }), 'TAIL_MISMATCH')
    const metrics = provider.metrics()
    assert.equal(metrics.bifrost_localloglet_appends_total, 4)
    assert.equal(metrics.bifrost_localloglet_write_batch_count.sum, 4)
    assert.equal(metrics.bifrost_localloglet_queue_bytes, 0)
    const { count, sum, max } = metrics.bifrost_localloglet_append_duration_seconds
    assert.ok(count >= 3 && sum > 0 && max < 60, `${count} took ${sum} s`)
    assert.ok(metrics.bifrost_localloglet_write_batch_size_bytes.sum > 0)
  })

  test('shutdown() commits a thousand appends that were called before it', async (t) => {
    const provider = await open(t, { queueBytes: 5000 })
    const loglet = await newLoglet(provider)
    const appends = Array.from({ length: 1000 }, (_, i) => append(loglet, i))
    const closing = [provider.shutdown(GRACE_MS), provider.shutdown(GRACE_MS)]
    await rejection(append(loglet, 'late'), 'CLOSED')
    const offsets = await Promise.all(appends)
    assert.equal(offsets.at(-1), 1000)
    await Promise.all(closing)
  })

  test('shutdown() refuses everything that comes after it', async (t) => {
    const provider = await open(t)
    const loglet = await newLoglet(provider)
    await append(loglet, 1)
    let isTold = false
    loglet.watch(() => (isTold ||= loglet.state.ended !== undefined))
    const closing = provider.shutdown(GRACE_MS)
    const refused = [
      append(loglet, 2),
      appendBatch(loglet, [2]),
      loglet.trim(1),
      loglet.seal(undefined),
      provider.chains.createLogs(['b']),
      provider.chains.deleteLog('log'),
    ]
    await Promise.all(refused.map((promise) => rejection(promise, 'CLOSED')))
    const many = await appendMany(provider, [{ loglet, payload: 2 }])
    assert.equal(refusal(many).code, 'CLOSED')
    await closing
    assert.equal(isTold, true)
    assert.equal(loglet.state.ended?.code, 'CLOSED')
    await rejection(readOnce(loglet, 1), 'CLOSED')
    await provider.shutdown(GRACE_MS)
  })
}
