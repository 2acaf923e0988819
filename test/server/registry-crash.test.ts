/**
 * Streams are created, appended to, closed and deleted while the server is killed, over and over on
 * one store. Each path has one client that keeps a ledger: what was answered has to be there, what
 * was not may have happened or not, and nothing else may be seen.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random } from '../support/random.ts'
import { temporaryDirectory } from '../support/temp-dir.ts'
import { ServeProcess } from './serve-process.ts'

const LONG = process.env['BIFROST_LONG'] !== undefined
const KILLS = LONG ? 40 : 8
const SEED = Number(process.env['BIFROST_SEED'] ?? Date.now() % 2 ** 31)
const CLIENTS = 24
/** Streams that nobody touches again: a compaction has to carry them along. */
const QUIET = 20
/** Deleted streams that the registry starts with, so that it is compacted while it is killed. */
const DELETED_BEFORE = 450
const MAX_ANSWERS = 500

/** What a client sees at its path: nothing, or a stream. */
type State = { readonly content: string; readonly isClosed: boolean } | undefined

interface Op {
  readonly method: 'PUT' | 'POST' | 'DELETE'
  readonly body: string
  readonly closes: boolean
  readonly after: State
}

class Client {
  readonly #path: string
  readonly #random: Random
  #state: State
  /** What was sent and not answered. */
  #open: Op | undefined
  #count = 0

  constructor(path: string, random: Random) {
    this.#path = path
    this.#random = random
  }

  /** Writes once, and is never run. */
  async writeOnce(url: string): Promise<void> {
    const content = `${this.#path} is quiet`
    const init = { method: 'PUT', headers: { 'content-type': 'text/plain' }, body: content }
    assert.equal((await fetch(url + this.#path, init)).status, 201)
    this.#state = { content, isClosed: false }
  }

  get exists(): boolean {
    return this.#state !== undefined
  }

  /** Goes on until the server is gone. */
  async run(url: string, answered: () => void): Promise<void> {
    for (;;) {
      this.#open = this.#choose()
      const { method, body, closes, after } = this.#open
      const headers = { 'content-type': 'text/plain', ...(closes && { 'stream-closed': 'true' }) }
      const init = { method, headers, ...(body === '' ? {} : { body }) }
      const response = await fetch(url + this.#path, init).catch(() => undefined)
      if (response === undefined) return
      assert.ok(response.ok, `${method} ${this.#path}: ${response.status}`)
      this.#state = after
      this.#open = undefined
      answered()
    }
  }

  /** Each word is written once in the whole test, so old bytes can't be taken for new ones. */
  #choose(): Op {
    const random = this.#random
    const body = random.chance(0.8) ? `${this.#path}:${this.#count++};` : ''
    const closes = random.chance(0.2)
    const state = this.#state
    if (state === undefined) {
      return { method: 'PUT', body, closes, after: { content: body, isClosed: closes } }
    }
    if (state.isClosed || random.chance(0.2)) {
      return { method: 'DELETE', body: '', closes: false, after: undefined }
    }
    const more = body === '' && !closes ? '!' : body
    const after = { content: state.content + more, isClosed: closes }
    return { method: 'POST', body: more, closes, after }
  }

  /** Looks at the path in a server that was started again. */
  async check(url: string): Promise<void> {
    const found = await this.#look(url)
    const isAfter = this.#open !== undefined && isSame(found, this.#open.after)
    if (!isAfter) assert.deepEqual(found, this.#state, `${this.#path}, ${this.#open?.method}`)
    this.#state = found
    this.#open = undefined
  }

  async #look(url: string): Promise<State> {
    let [offset, content] = ['-1', '']
    for (;;) {
      const response = await fetch(`${url}${this.#path}?offset=${offset}`)
      if (response.status === 404) return undefined
      assert.equal(response.status, 200)
      content += await response.text()
      offset = response.headers.get('stream-next-offset') ?? ''
      const isClosed = response.headers.get('stream-closed') === 'true'
      if (response.headers.get('stream-up-to-date') === 'true') return { content, isClosed }
    }
  }
}

function isSame(a: State, b: State): boolean {
  return a?.content === b?.content && a?.isClosed === b?.isClosed
}

/** No log outlives its stream, and no stream is there that no client knows. */
async function checkLogs(url: string, clients: readonly Client[]): Promise<void> {
  const response = await fetch(`${url}/__bifrost/stats`)
  const { streams, logCount } = (await response.json()) as { streams: number; logCount: number }
  const expected = clients.filter(({ exists }) => exists).length
  assert.deepEqual({ streams, logCount }, { streams: expected, logCount: expected + 1 })
}

/** Runs all clients, and kills the server after some answers. */
async function loadUntilKilled(
  server: ServeProcess,
  clients: readonly Client[],
  answersBefore: number,
): Promise<void> {
  let answers = 0
  await new Promise<void>((resolve, reject) => {
    const answered = (): void => {
      if (++answers === answersBefore) server.kill().catch(reject)
    }
    Promise.all(clients.map((client) => client.run(server.url, answered))).then(
      () => resolve(),
      reject,
    )
  })
}

async function fillRegistry(url: string): Promise<void> {
  const paths = Array.from({ length: DELETED_BEFORE }, (_, i) => `${url}/deleted/${i}`)
  await Promise.all(paths.map((path) => fetch(path, { method: 'PUT' })))
  await Promise.all(paths.map((path) => fetch(path, { method: 'DELETE' })))
}

test('the registry of streams survives kills at any moment', async (t) => {
  t.diagnostic(`BIFROST_SEED=${SEED}`)
  const random = new Random(SEED)
  const dir = await temporaryDirectory(t)
  const clients = Array.from({ length: CLIENTS }, (_, i) => new Client(`/c${i}`, random))
  let server = await ServeProcess.start({ dir })
  t.after(() => server.stop())
  const quiet = Array.from({ length: QUIET }, (_, i) => new Client(`/quiet${i}`, random))
  await Promise.all(quiet.map((client) => client.writeOnce(server.url)))
  await fillRegistry(server.url)
  const all = [...clients, ...quiet]
  for (let kills = 0; kills < KILLS; kills++) {
    await loadUntilKilled(server, clients, random.between(1, MAX_ANSWERS))
    // Some are killed while they start: what they had begun to tidy up is found by the next.
    if (random.chance(0.5)) await ServeProcess.startAndKill({ dir }, random.between(50, 250))
    server = await ServeProcess.start({ dir })
    for (const client of all) await client.check(server.url)
    await checkLogs(server.url, all)
  }
})
