/** When the store refuses, waits or fails: what clients are told is true, and nothing is doubled. */
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { logError, type LogError } from '../../codec/errors.ts'
import { Bifrost, repair, verify } from '../../index.ts'
import { Gate, openMemoryStore } from '../loglets/memory-store.ts'
import { temporaryDirectory } from '../support/temp-dir.ts'
import { codeOf, nextOffset, post, producer, put, startWeb, TEXT, type Web } from './web.ts'

type Append = 'append' | 'appendBatch' | 'appendMany'

/** A store whose appends fail when `failure` says how. */
interface Fragile {
  readonly bifrost: Bifrost
  failure: (() => LogError | undefined) | undefined
}

async function openFragile(): Promise<Fragile> {
  const bifrost = await Bifrost.open({ provider: 'memory' })
  const fragile: Fragile = { bifrost, failure: undefined }
  for (const name of ['append', 'appendBatch', 'appendMany'] satisfies Append[]) {
    const real = bifrost[name].bind(bifrost) as (...args: unknown[]) => Promise<unknown>
    const broken = (...args: unknown[]): Promise<unknown> => {
      const failure = fragile.failure?.()
      return failure === undefined ? real(...args) : Promise.reject(failure)
    }
    Object.defineProperty(bifrost, name, { value: broken })
  }
  return fragile
}

async function content(web: Web, path: string): Promise<string> {
  return (await web.fetch(path)).text()
}

describe('an append that fails', () => {
  test('takes those behind it along, and the stream goes on where it was', async (t) => {
    const fragile = await openFragile()
    const web = await startWeb(t, { bifrost: fragile.bifrost })
    await put(web, '/s', TEXT, 'a')
    await post(web, '/s', 'b', producer('p', 0, 0))
    fragile.failure = () => logError('WRITE_FAILED', 'no room')
    const failed = await post(web, '/s', 'c', producer('p', 0, 1))
    assert.equal(failed.status, 507)
    assert.equal(failed.headers.get('retry-after'), '1')
    assert.equal(await codeOf(failed), 'WRITE_FAILED')
    const closing = await post(web, '/s', 'd', { ...TEXT, 'stream-closed': 'true' })
    assert.equal(closing.status, 507)
    fragile.failure = undefined
    const gap = await post(web, '/s', 'd', producer('p', 0, 2))
    assert.deepEqual([gap.status, gap.headers.get('producer-expected-seq')], [409, '1'])
    assert.equal((await post(web, '/s', 'c', producer('p', 0, 1))).status, 200)
    assert.equal(await content(web, '/s'), 'abc')
    const head = await web.fetch('/s', { method: 'HEAD' })
    assert.equal(head.headers.get('stream-closed'), null)
  })

  test('in a queue of them fails alone or with all behind it, and retries make it whole', async (t) => {
    const fragile = await openFragile()
    const web = await startWeb(t, { bifrost: fragile.bifrost })
    await put(web, '/s')
    let calls = 0
    fragile.failure = () => (++calls % 7 === 3 ? logError('QUEUE_FULL', 'full') : undefined)
    // Each producer sends again until it is told that it was done, as a client of the protocol does.
    const write = async (id: string): Promise<void> => {
      for (let seq = 0; seq < 20; seq++) {
        for (;;) {
          const { status } = await post(web, '/s', `${id}${seq},`, producer(id, 0, seq))
          if (status === 200 || status === 204) break
          assert.equal(status, 503)
        }
      }
    }
    const ids = ['a', 'b', 'c', 'd']
    await Promise.all(ids.map(write))
    const parts = (await content(web, '/s')).split(',').slice(0, -1)
    for (const id of ids) {
      const own = parts.filter((part) => part.startsWith(id))
      assert.deepEqual(
        own,
        Array.from({ length: 20 }, (_, seq) => `${id}${seq}`),
      )
    }
    assert.ok(calls > 80)
  })

  test('for want of room in the queue is 503, to be tried again', async (t) => {
    const fragile = await openFragile()
    const web = await startWeb(t, { bifrost: fragile.bifrost })
    await put(web, '/s')
    fragile.failure = () => logError('QUEUE_FULL', 'full')
    const reply = await post(web, '/s', 'x')
    assert.deepEqual([reply.status, reply.headers.get('retry-after')], [503, '1'])
  })
})

describe('a creation that fails', () => {
  test('leaves nothing behind', async (t) => {
    const fragile = await openFragile()
    const web = await startWeb(t, { bifrost: fragile.bifrost })
    fragile.failure = () => logError('WRITE_FAILED', 'no room')
    assert.equal((await put(web, '/s', TEXT, 'a')).status, 507)
    assert.equal((await web.fetch('/s')).status, 404)
    assert.deepEqual(fragile.bifrost.logIds(), ['http:registry'])
    fragile.failure = undefined
    assert.equal((await put(web, '/s', TEXT, 'b')).status, 201)
    assert.equal(await content(web, '/s'), 'b')
  })

  test('of a fork lets go of the source', async (t) => {
    const fragile = await openFragile()
    const web = await startWeb(t, { bifrost: fragile.bifrost })
    await put(web, '/s', TEXT, 'a')
    fragile.failure = () => logError('WRITE_FAILED', 'no room')
    assert.equal((await put(web, '/fork', { 'stream-forked-from': '/s' })).status, 507)
    fragile.failure = undefined
    await web.fetch('/s', { method: 'DELETE' })
    assert.equal((await web.fetch('/s')).status, 404)
  })
})

describe('a verdict', () => {
  test('is told only when what it rests on is durable', async (t) => {
    const gate = new Gate()
    gate.open()
    const schedule = { current: gate.schedule }
    const bifrost = await openMemoryStore(
      { logs: [] },
      { internals: { schedule: (run) => schedule.current(run) } },
    )
    const web = await startWeb(t, { bifrost })
    const start = nextOffset(await put(web, '/s'))
    const closed = new Gate()
    schedule.current = closed.schedule
    const told: string[] = []
    const tell = (name: string, reply: Promise<Response>): Promise<void> =>
      reply.then(({ status }) => void told.push(`${name} ${status}`))
    const first = tell('first', post(web, '/s', 'a', producer('p', 0, 0)))
    while (!closed.isHolding) await new Promise((resolve) => setImmediate(resolve))
    const others = [
      tell('again', post(web, '/s', 'a', producer('p', 0, 0))),
      tell('gap', post(web, '/s', 'c', producer('p', 0, 5))),
      tell('stale', post(web, '/s', 'c', { ...TEXT, 'stream-expected-offset': start })),
    ]
    await new Promise((resolve) => setTimeout(resolve, 100))
    assert.deepEqual(told, [])
    closed.open()
    await Promise.all([first, ...others])
    assert.deepEqual(told.sort(), ['again 204', 'first 200', 'gap 409', 'stale 412'])
  })
})

describe('a store that has failed', () => {
  test('is not healthy, refuses appends, and can be read', async (t) => {
    const fragile = await openFragile()
    const web = await startWeb(t, { bifrost: fragile.bifrost })
    await put(web, '/s', TEXT, 'a')
    assert.equal((await web.fetch('/healthz')).status, 200)
    const failure = logError('STORE_FAILED', 'broken')
    fragile.failure = () => failure
    Object.defineProperty(fragile.bifrost, 'failure', { value: failure })
    Object.defineProperty(fragile.bifrost, 'status', { value: 'failed' })
    const health = await web.fetch('/healthz')
    assert.equal(health.status, 503)
    assert.deepEqual(await health.json(), { status: 'failed', failure: 'STORE_FAILED' })
    assert.equal((await post(web, '/s', 'b')).status, 503)
    assert.equal(await content(web, '/s'), 'a')
  })
})

describe('damage', () => {
  test('is an error until it is repaired, then a gap that names where to go on', async (t) => {
    const dir = await temporaryDirectory(t)
    const offsets: string[] = []
    await t.test('five messages, then a flipped bit in the third', async (t2) => {
      const bifrost = await Bifrost.open({ dir })
      const web = await startWeb(t2, { bifrost })
      await put(web, '/s')
      for (const word of ['one', 'two', 'three', 'four', 'five']) {
        offsets.push(nextOffset(await post(web, '/s', `${word}-${'x'.repeat(100)};`)))
      }
    })
    const segment = join(dir, '0000000001.segment')
    const bytes = await readFile(segment)
    const at = bytes.indexOf('three-')
    bytes[at] = (bytes[at] ?? 0) ^ 1
    await writeFile(segment, bytes)
    assert.equal((await verify(dir)).ok, false)
    await assert.rejects(Bifrost.open({ dir }))
    await repair(dir, { acceptDataLoss: true })

    const web = await startWeb(t, { dir })
    const start = await web.fetch('/s')
    assert.equal(start.status, 200)
    assert.match(await start.text(), /^one-x+;two-x+;$/)
    assert.equal(nextOffset(start), offsets[1])
    const lost = await web.fetch(`/s?offset=${offsets[1] ?? ''}`)
    assert.equal(lost.status, 410)
    assert.equal(lost.headers.get('stream-earliest-offset'), offsets[2])
    assert.equal(await codeOf(lost), 'DATA_LOSS')
    const rest = await web.fetch(`/s?offset=${offsets[2] ?? ''}`)
    assert.match(await rest.text(), /^four-x+;five-x+;$/)
    assert.equal((await post(web, '/s', 'six')).status, 204)
  })
})
