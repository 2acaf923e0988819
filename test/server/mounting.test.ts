/** The handler in other people's servers, and as a function from Request to Response. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, test, type TestContext } from 'node:test'
import { fastify } from 'fastify'
import { Bifrost } from '../../index.ts'
import { createHandler, type BifrostHandler, type HandlerOptions } from '../../server/index.ts'
import { until } from './until.ts'
import { JSON_TYPE, TEXT } from './web.ts'

/** Express comes without types; this is what is used of it. */
interface Express {
  (): RequestListener & { use: (...args: unknown[]) => void }
  raw(options: { type: string }): unknown
  json(): unknown
}

async function express(): Promise<Express> {
  const name = 'express'
  return ((await import(name)) as { default: Express }).default
}

async function handlerFor(t: TestContext, options?: HandlerOptions): Promise<BifrostHandler> {
  const bifrost = await Bifrost.open({ provider: 'memory' })
  const handler = await createHandler(bifrost, options)
  t.after(async () => {
    await handler.close()
    await bifrost.close()
  })
  return handler
}

async function listen(t: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Creates a stream, appends, forks, and reads all, at a place in a server. */
async function useStreams(place: string): Promise<void> {
  const created = await fetch(`${place}/a`, { method: 'PUT', headers: TEXT, body: 'one,' })
  assert.equal(created.status, 201)
  assert.equal(created.headers.get('location'), `${place}/a`)
  const appended = await fetch(`${place}/a`, { method: 'POST', headers: TEXT, body: 'two' })
  assert.equal(appended.status, 204)
  const headers = { 'stream-forked-from': `${new URL(place).pathname}/a`.replace('//', '/') }
  assert.equal((await fetch(`${place}/fork`, { method: 'PUT', headers })).status, 201)
  assert.equal(await (await fetch(`${place}/fork?offset=-1`)).text(), 'one,two')
  assert.equal((await fetch(`${place}/none`)).status, 404)
}

describe('createHandler().handle', () => {
  test('works in node:http', async (t) => {
    const { handle } = await handlerFor(t)
    await useStreams(await listen(t, handle))
  })

  test('works in Express, below a path', async (t) => {
    const { handle } = await handlerFor(t)
    const app = (await express())()
    app.use('/streams', handle)
    await useStreams(`${await listen(t, app)}/streams`)
  })

  test('takes a body that a parser has read as bytes, and no other', async (t) => {
    const said: unknown[] = []
    const error = (fields: object): void => void said.push(fields)
    const quiet = (): void => undefined
    const { handle } = await handlerFor(t, { logger: { info: quiet, warn: quiet, error } })
    const make = await express()
    const app = make()
    app.use('/raw', make.raw({ type: '*/*' }), handle)
    app.use('/json', make.json(), handle)
    const url = await listen(t, app)
    await useStreams(`${url}/raw`)
    const body = { method: 'PUT', headers: JSON_TYPE, body: '[1]' }
    assert.equal((await fetch(`${url}/json/b`, body)).status, 500)
    assert.equal(said.length, 1)
  })

  test('works in Fastify, when that leaves the bodies alone', async (t) => {
    const { handle } = await handlerFor(t)
    const app = fastify()
    app.removeAllContentTypeParsers()
    app.addContentTypeParser('*', (_request, _payload, done) => done(null))
    app.all('/*', (request, reply) => {
      reply.hijack()
      handle(request.raw, reply.raw)
    })
    t.after(() => app.close())
    await useStreams(await app.listen({ port: 0, host: '127.0.0.1' }))
  })
})

type Ask = (method: string, path: string, init?: RequestInit) => Promise<Response>

async function asker(t: TestContext, options?: HandlerOptions): Promise<Ask> {
  const { fetch: answer } = await handlerFor(t, options)
  return (method, path, init) => answer(new Request(`http://host${path}`, { ...init, method }))
}

describe('createHandler().fetch', () => {
  test('answers as a server does', async (t) => {
    const ask = await asker(t)
    const created = await ask('PUT', '/s', { headers: TEXT, body: 'one,' })
    assert.deepEqual([created.status, created.headers.get('location')], [201, 'http://host/s'])
    assert.equal((await ask('POST', '/s', { headers: TEXT, body: 'two' })).status, 204)
    const read = await ask('GET', '/s?offset=-1')
    assert.equal(read.headers.get('access-control-allow-origin'), '*')
    assert.equal(await read.text(), 'one,two')
    const headers = { 'if-none-match': read.headers.get('etag') ?? '' }
    assert.equal((await ask('GET', '/s?offset=-1', { headers })).status, 304)
    const head = await ask('HEAD', '/s')
    assert.deepEqual([head.status, await head.text()], [200, ''])
    assert.equal((await ask('OPTIONS', '/s')).status, 204)
    assert.equal((await ask('DELETE', '/s')).status, 204)
    assert.equal((await ask('GET', '/s')).status, 404)
  })

  test('takes no body that is too large', async (t) => {
    const ask = await asker(t, { maxBodyBytes: 10 })
    await ask('PUT', '/s', { headers: TEXT })
    assert.equal((await ask('POST', '/s', { headers: TEXT, body: 'x'.repeat(11) })).status, 413)
    assert.equal(await (await ask('GET', '/s')).text(), '')
  })

  test('streams events until the client has enough', async (t) => {
    const ask = await asker(t)
    await ask('PUT', '/s', { headers: TEXT, body: 'one' })
    const { body } = await ask('GET', '/s?offset=-1&live=sse')
    assert.ok(body !== null)
    const reader = body.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    const readUntil = async (wanted: string): Promise<void> => {
      while (!text.includes(wanted)) {
        const { done, value } = await reader.read()
        assert.ok(!done, `ended after ${text}`)
        text += value
      }
    }
    await readUntil('upToDate')
    await ask('POST', '/s', { headers: TEXT, body: 'two' })
    await readUntil('data:two')
    assert.match(await (await ask('GET', '/metrics')).text(), /^bifrost_http_live_readers 1$/m)
    await reader.cancel()
    await ask('POST', '/s', { headers: TEXT, body: 'three' })
    assert.match(await (await ask('GET', '/metrics')).text(), /^bifrost_http_live_readers 0$/m)
  })

  test('ends events when the stream is closed, and gives all of a long one', async (t) => {
    const ask = await asker(t, { maxReadBytes: 100_000 })
    await ask('PUT', '/s', { headers: TEXT })
    for (let i = 0; i < 10; i++) {
      await ask('POST', '/s', { headers: TEXT, body: 'z'.repeat(100_000) })
    }
    await ask('POST', '/s', { headers: { 'stream-closed': 'true' } })
    const text = await (await ask('GET', '/s?offset=-1&live=sse')).text()
    assert.equal((text.match(/z/g) ?? []).length, 1_000_000)
    assert.match(text, /"streamClosed":true/)
  })

  test('cuts a reader off that takes nothing', async (t) => {
    const ask = await asker(t, { stallMs: 100 })
    await ask('PUT', '/s', { headers: TEXT, body: 'x'.repeat(1_000_000) })
    const { body } = await ask('GET', '/s?offset=-1&live=sse')
    assert.ok(body !== null)
    await until(async () => / readers? 0$|live_readers 0$/m.test(await metrics(ask)))
    await assert.rejects(async () => {
      for await (const chunk of body) assert.ok(chunk instanceof Uint8Array)
    }, /took nothing/)
  })

  test('ends a long-poll whose client is gone', async (t) => {
    const ask = await asker(t)
    await ask('PUT', '/s', { headers: TEXT })
    const gone = new AbortController()
    const poll = ask('GET', '/s?offset=-1&live=long-poll', { signal: gone.signal })
    await until(async () => /live_readers 1$/m.test(await metrics(ask)))
    gone.abort()
    assert.equal((await poll).status, 204)
    assert.match(await metrics(ask), /live_readers 0$/m)
  })
})

async function metrics(ask: Ask): Promise<string> {
  return (await ask('GET', '/metrics')).text()
}
