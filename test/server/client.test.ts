/**
 * The protocol's own client, end to end: `@durable-streams/client` writes to and reads from a real
 * `bifrost serve`, which is killed and started again in the middle.
 */
import assert from 'node:assert/strict'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { describe, test, type TestContext } from 'node:test'
import { DurableStream, IdempotentProducer, stream } from '@durable-streams/client'
import { temporaryDirectory } from '../support/temp-dir.ts'
import { ServeProcess } from './serve-process.ts'

/** A server that comes back on the same port, with the same store. */
class Phoenix {
  readonly #dir: string
  #process: ServeProcess
  kills = 0

  private constructor(dir: string, process: ServeProcess) {
    this.#dir = dir
    this.#process = process
  }

  static async start(t: TestContext): Promise<Phoenix> {
    const dir = await temporaryDirectory(t)
    const phoenix = new Phoenix(dir, await ServeProcess.start({ dir }))
    t.after(() => phoenix.#process.stop())
    return phoenix
  }

  get url(): string {
    return this.#process.url
  }

  async rise(): Promise<void> {
    const { port } = this.#process
    await this.#process.kill()
    this.kills++
    this.#process = await ServeProcess.start({ dir: this.#dir, port })
  }
}

/** What the client's documentation asks for: send again until the server has said yes or no. */
const untilAnswered: typeof fetch = async (...args) => {
  for (;;) {
    const response = await fetch(...args).catch(() => undefined)
    if (response !== undefined && response.status !== 503) return response
    await sleep(10)
  }
}

interface Item {
  readonly producer: string
  readonly n: number
}

/**
 * Reads until the stream is closed. After an error it goes on behind what it was given last; what
 * the session before may still give then is read again.
 */
async function follow(url: string, live: 'sse' | 'long-poll'): Promise<Item[]> {
  const items: Item[] = []
  let [offset, isClosed] = ['-1', false]
  while (!isClosed) {
    const response = await stream<Item>({ url, offset, live, json: true, warnOnHttp: false })
    const session = { hasFailed: false }
    response.subscribeJson((batch) => {
      if (session.hasFailed) return
      items.push(...batch.items)
      offset = batch.offset
    })
    await response.closed.catch(() => (session.hasFailed = true))
    // A session that ends well gives everything that it has read, a little later.
    while (!session.hasFailed && offset !== response.offset) await nextTurn()
    isClosed = !session.hasFailed && response.streamClosed
  }
  return items
}

async function catchUp(url: string): Promise<Item[]> {
  return (await stream<Item>({ url, live: false, json: true, warnOnHttp: false })).json()
}

const JSON_STREAM = { contentType: 'application/json', warnOnHttp: false }
const PRODUCERS = ['a', 'b', 'c']
const ITEMS = 300
const BATCH_BYTES = 100
/** The server is killed each time that this many more batches were acknowledged. */
const BATCHES_PER_LIFE = 60

/** Kills the server whenever enough was acknowledged, while other appends are on their way. */
function killingFetch(phoenix: Phoenix): { fetch: typeof fetch; settled: () => Promise<void> } {
  let acknowledged = 0
  let rising: Promise<void> = Promise.resolve()
  return {
    fetch: async (...args) => {
      const response = await untilAnswered(...args)
      if (++acknowledged % BATCHES_PER_LIFE === 0) rising = rising.then(() => phoenix.rise())
      return response
    },
    settled: () => rising,
  }
}

async function produce(producer: IdempotentProducer, name: string): Promise<void> {
  for (let n = 0; n < ITEMS; n++) {
    producer.append(JSON.stringify({ producer: name, n } satisfies Item))
    if (n % 10 === 0) await producer.flush()
  }
  await producer.flush()
}

describe('@durable-streams/client', () => {
  test('loses and doubles nothing when the server is killed and started again', async (t) => {
    const phoenix = await Phoenix.start(t)
    const url = `${phoenix.url}/flights`
    const handle = await DurableStream.create({ url, ...JSON_STREAM })
    const followers = [follow(url, 'sse'), follow(url, 'long-poll')]
    const { fetch: send, settled } = killingFetch(phoenix)
    const errors: Error[] = []
    const onError = (error: Error): void => void errors.push(error)
    const options = { fetch: send, maxBatchBytes: BATCH_BYTES, onError }
    const producers = PRODUCERS.map((name) => {
      return { name, producer: new IdempotentProducer(handle, name, options) }
    })
    await Promise.all(producers.map(({ name, producer }) => produce(producer, name)))
    await settled()
    assert.deepEqual(errors, [])
    assert.ok(phoenix.kills >= 3, `${phoenix.kills} kills`)

    const all = await catchUp(url)
    await handle.close()
    const [bySse, byLongPoll] = await Promise.all(followers)
    assert.deepEqual(bySse, all)
    assert.deepEqual(byLongPoll, all)
    for (const name of PRODUCERS) {
      const own = all.filter(({ producer }) => producer === name).map(({ n }) => n)
      assert.deepEqual(own, [...Array(ITEMS).keys()])
    }
    assert.equal(all.length, PRODUCERS.length * ITEMS)
  })

  test('finds a producer fenced off by a newer one, also after a kill', async (t) => {
    const phoenix = await Phoenix.start(t)
    const handle = await DurableStream.create({ url: `${phoenix.url}/s`, ...JSON_STREAM })
    const old = new IdempotentProducer(handle, 'p', { fetch: untilAnswered })
    old.append('1')
    await old.flush()
    const claiming = new IdempotentProducer(handle, 'p', { epoch: 1, fetch: untilAnswered })
    claiming.append('2')
    await claiming.flush()
    await phoenix.rise()
    const errors: string[] = []
    const stale = new IdempotentProducer(handle, 'p', { onError: ({ name }) => errors.push(name) })
    stale.append('3')
    await stale.flush().catch(() => undefined)
    assert.deepEqual(errors, ['StaleEpochError'])
    claiming.append('4')
    await claiming.flush()
    assert.deepEqual(await catchUp(handle.url), [1, 2, 4])
  })

  test('creates, describes, appends to, closes and deletes a stream of bytes', async (t) => {
    const phoenix = await Phoenix.start(t)
    const url = `${phoenix.url}/deep/er/${encodeURIComponent('päth')}`
    const contentType = 'application/octet-stream'
    const handle = await DurableStream.create({ url, contentType, warnOnHttp: false })
    const bytes = Uint8Array.from({ length: 256 }, (_, i) => i)
    await handle.append(bytes, { seq: '001' })
    await assert.rejects(handle.append(bytes, { seq: '001' }), { status: 409 })
    await phoenix.rise()
    await assert.rejects(handle.append(bytes, { seq: '001' }), { status: 409 })
    await handle.append(bytes, { seq: '002' })
    await handle.close()
    const head = await handle.head()
    assert.ok(head.exists)
    assert.deepEqual([head.contentType, head.streamClosed], [contentType, true])
    for (const live of [false, 'long-poll', 'sse'] as const) {
      const response = await handle.stream({ live })
      const chunks: Uint8Array[] = []
      for await (const chunk of response.bodyStream()) chunks.push(chunk)
      assert.deepEqual(Buffer.concat(chunks), Buffer.concat([bytes, bytes]), String(live))
    }
    await handle.delete()
    assert.deepEqual(await handle.head(), { exists: false })
  })
})
