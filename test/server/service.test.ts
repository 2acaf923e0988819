/** What the server does beside the streams: who may do what, how long things live, how it ends. */
import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { Registry } from 'prom-client'
import { Bifrost } from '../../index.ts'
import { createHandler, registerMetrics, serve, type Authorize } from '../../server/index.ts'
import { temporaryDirectory } from '../support/temp-dir.ts'
import { RawConnection } from './raw.ts'
import { ServeProcess } from './serve-process.ts'
import { until } from './until.ts'
import { codeOf, nextOffset, post, put, startWeb, TEXT } from './web.ts'

describe('authorize', () => {
  const SECRET = 'Bearer secret'
  const authorize: Authorize = async ({ method, path, header }) => {
    if (path === '/broken') throw new Error('no database')
    if (path.startsWith('/private')) return 'forbidden'
    return method === 'GET' || header('authorization') === SECRET ? 'allowed' : 'unauthorized'
  }

  test('decides on every request but a preflight', async (t) => {
    const web = await startWeb(t, { authorize })
    const unauthorized = await put(web, '/s')
    assert.deepEqual([unauthorized.status, await codeOf(unauthorized)], [401, 'UNAUTHORIZED'])
    assert.equal(unauthorized.headers.get('www-authenticate'), 'Bearer')
    assert.equal((await put(web, '/s', { ...TEXT, authorization: SECRET }, 'a')).status, 201)
    assert.equal(await (await web.fetch('/s')).text(), 'a')
    const forbidden = await web.fetch('/private/s')
    assert.deepEqual([forbidden.status, await codeOf(forbidden)], [403, 'FORBIDDEN'])
    assert.equal((await web.fetch('/s', { method: 'DELETE' })).status, 401)
    const preflight = await web.fetch('/private/s', { method: 'OPTIONS' })
    assert.equal(preflight.status, 204)
    assert.match(preflight.headers.get('access-control-allow-headers') ?? '', /Authorization/)
  })

  test('is asked about the stream itself, however its path is spelled', async (t) => {
    const web = await startWeb(t, { authorize })
    for (const path of ['/%70rivate/s', '/privat%65', '/private/%73']) {
      assert.equal((await web.fetch(path)).status, 403, path)
    }
    assert.equal((await web.fetch('/__%62ifrost/s', { method: 'GET' })).status, 405)
  })

  test('is asked about the source of a fork too', async (t) => {
    const bifrost = await Bifrost.open({ provider: 'memory' })
    t.after(() => bifrost.close())
    const asked: string[] = []
    const judge: Authorize = ({ method, path }) => {
      asked.push(`${method} ${path}`)
      return path === '/private' && method === 'GET' ? 'forbidden' : 'allowed'
    }
    const web = await startWeb(t, { bifrost, authorize: judge })
    await put(web, '/private', TEXT, 'secret')
    const fork = await put(web, '/mine', { 'stream-forked-from': '/priv%61te' })
    assert.equal(fork.status, 403)
    assert.deepEqual(asked, ['PUT /private', 'PUT /mine', 'GET /private'])
    assert.equal((await web.fetch('/mine')).status, 404)
  })

  test('that fails grants nothing', async (t) => {
    const web = await startWeb(t, { authorize })
    const broken = await web.fetch('/broken')
    assert.deepEqual([broken.status, await codeOf(broken)], [500, 'INTERNAL'])
    assert.deepEqual(web.said, ['error a request failed'])
  })

  test('keeps answers out of shared caches', async (t) => {
    const web = await startWeb(t, { authorize, maxReadBytes: 1 })
    await put(web, '/s', { ...TEXT, authorization: SECRET }, 'a')
    await post(web, '/s', 'b', { ...TEXT, authorization: SECRET })
    assert.match((await web.fetch('/s')).headers.get('cache-control') ?? '', /^private, /)
  })
})

describe('a stream that lives for a time', () => {
  const START_MS = Date.UTC(2030, 0, 1)

  function freezeTime(t: TestContext): void {
    t.mock.timers.enable({ apis: ['Date'], now: START_MS })
  }

  test('lives on while it is used, and is gone when it was not', async (t) => {
    freezeTime(t)
    const web = await startWeb(t)
    const head = async (): Promise<number> => (await web.fetch('/s', { method: 'HEAD' })).status
    await put(web, '/s', { ...TEXT, 'stream-ttl': '60' }, 'a')
    t.mock.timers.tick(59_000)
    await post(web, '/s', 'b')
    t.mock.timers.tick(59_000)
    assert.equal((await web.fetch('/s')).status, 200)
    t.mock.timers.tick(59_000)
    assert.equal(await head(), 200, 'looking is not using')
    t.mock.timers.tick(1000)
    assert.equal(await head(), 404)
    assert.equal((await put(web, '/s', TEXT, 'c')).status, 201)
    assert.equal(await (await web.fetch('/s')).text(), 'c')
  })

  test('lives on while somebody follows it', async (t) => {
    freezeTime(t)
    const web = await startWeb(t)
    await put(web, '/s', { ...TEXT, 'stream-ttl': '60' })
    const reader = await RawConnection.open(web.url)
    reader.send('GET /s?offset=-1&live=sse HTTP/1.1\r\nhost: a\r\n\r\n')
    await reader.until('upToDate')
    t.mock.timers.tick(600_000)
    assert.equal((await web.fetch('/s', { method: 'HEAD' })).status, 200)
    reader.socket.destroy()
    await until(async () => {
      t.mock.timers.tick(60_000)
      return (await web.fetch('/s', { method: 'HEAD' })).status === 404
    })
  })

  test('ends at its time whoever uses it, and its log goes without being asked for', async (t) => {
    freezeTime(t)
    const web = await startWeb(t)
    const expires = { 'stream-expires-at': new Date(START_MS + 60_000).toISOString() }
    await put(web, '/s', { ...TEXT, ...expires }, 'a')
    const poll = web.fetch(`/s?offset=now&live=long-poll`)
    t.mock.timers.tick(60_000)
    await until(() => web.bifrost.logIds().length === 1)
    assert.ok([204, 404].includes((await poll).status))
    assert.equal((await web.fetch('/s')).status, 404)
  })

  test('is gone after a restart that came too late for it', async (t) => {
    freezeTime(t)
    const dir = await temporaryDirectory(t)
    await t.test('before', async (t2) => {
      const web = await startWeb(t2, { dir })
      const expires = { 'stream-expires-at': new Date(START_MS + 60_000).toISOString() }
      await put(web, '/s', { ...TEXT, ...expires }, 'a')
    })
    t.mock.timers.tick(60_000)
    const web = await startWeb(t, { dir })
    assert.equal((await web.fetch('/s')).status, 404)
    assert.deepEqual(web.bifrost.logIds(), ['http:registry'])
  })
})

/** Samples by name and labels, as Prometheus reads them; throws for a line that it could not read. */
function samplesOf(text: string): Map<string, number> {
  const samples = new Map<string, number>()
  for (const line of text.split('\n')) {
    if (
      line === '' ||
      /^# (?:HELP \w+ .+|TYPE \w+ (?:counter|gauge|summary|histogram))$/.test(line)
    ) {
      continue
    }
    const match = /^(\w+(?:\{(?:\w+="[^"]*",?)+\})?) (\S+)$/.exec(line)
    assert.ok(match !== null && !samples.has(match[1] ?? ''), line)
    samples.set(match[1] ?? '', Number(match[2]))
  }
  return samples
}

describe('/metrics', () => {
  test('counts requests, streams, and what the store did', async (t) => {
    const dir = await temporaryDirectory(t)
    const web = await startWeb(t, { dir })
    await put(web, '/s')
    for (const word of ['a', 'b', 'c']) await post(web, '/s', word)
    await web.fetch('/none')
    await web.fetch('/s', { method: 'PROPFIND' })
    const response = await web.fetch('/metrics')
    assert.match(response.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/)
    const samples = samplesOf(await response.text())
    const requests = (method: string, status: number): number | undefined =>
      samples.get(`bifrost_http_requests_total{method="${method}",status="${status}"}`)
    assert.deepEqual([requests('PUT', 201), requests('POST', 204)], [1, 3])
    assert.deepEqual([requests('GET', 404), requests('OTHER', 405)], [1, 1])
    assert.equal(samples.get('bifrost_http_request_duration_seconds_count{method="POST"}'), 3)
    assert.equal(samples.get('bifrost_http_streams'), 1)
    assert.equal(samples.get('bifrost_localloglet_appends_total'), 4)
    assert.ok((samples.get('bifrost_disk_bytes') ?? 0) > 0)
    const syncs = samples.get('bifrost_localloglet_sync_duration_seconds_count') ?? 0
    assert.ok(syncs >= 4)
    assert.equal(samples.get('bifrost_localloglet_write_batch_count_sum'), 4)
  })

  test('are what the registry of the application holds, once', async (t) => {
    const bifrost = await Bifrost.open({ provider: 'memory' })
    const registry = new Registry()
    registerMetrics(registry, bifrost)
    assert.throws(() => registerMetrics(registry, bifrost))
    const web = await startWeb(t, { bifrost, registry })
    const samples = samplesOf(await (await web.fetch('/metrics')).text())
    assert.equal(samples.get('bifrost_http_streams'), 0)
    assert.equal(samples.get('bifrost_localloglet_appends_total'), 0)
  })
})

describe('/healthz', () => {
  test('is 200 while the store takes appends, and 503 when it is closed', async (t) => {
    const bifrost = await Bifrost.open({ provider: 'memory' })
    const web = await startWeb(t, { bifrost })
    const health = await web.fetch('/healthz')
    assert.deepEqual([health.status, await health.json()], [200, { status: 'open' }])
    await bifrost.close()
    assert.equal((await web.fetch('/healthz')).status, 503)
    assert.equal((await put(web, '/s')).status, 503)
  })

  test('and other pages are streams when there are to be no pages', async (t) => {
    const web = await startWeb(t, { pages: false })
    assert.equal((await web.fetch('/healthz')).status, 404)
    assert.equal((await put(web, '/metrics')).status, 201)
    assert.equal((await web.fetch('/')).status, 405)
  })
})

describe('a server that goes down', () => {
  test('ends those who wait properly, and refuses what comes later', async (t) => {
    const bifrost = await Bifrost.open({ provider: 'memory' })
    t.after(() => bifrost.close())
    const handler = await createHandler(bifrost)
    const ask = (path: string, method = 'GET'): Promise<Response> =>
      handler.fetch(new Request(`http://host${path}`, { method, headers: TEXT }))
    const start = nextOffset(await ask('/s', 'PUT'))
    const events = await ask(`/s?offset=${start}&live=sse`)
    const poll = ask(`/s?offset=${start}&live=long-poll`)
    await until(async () => /live_readers 2$/m.test(await (await ask('/metrics')).text()))
    await handler.close()
    assert.match(await events.text(), /^event: control\ndata:.*\n\n$/)
    assert.equal((await poll).status, 204)
    const late = await ask('/s')
    assert.deepEqual([late.status, late.headers.get('retry-after')], [503, '1'])
    assert.equal(await codeOf(late), 'SHUTTING_DOWN')
  })

  test('answers what was sent before, and exits with 0', async (t) => {
    const dir = await temporaryDirectory(t)
    const server = await ServeProcess.start({ dir })
    await fetch(`${server.url}/s`, { method: 'PUT', headers: TEXT })
    const events = await RawConnection.open(server.url)
    events.send('GET /s?offset=-1&live=sse HTTP/1.1\r\nhost: a\r\n\r\n')
    await events.until('upToDate')
    const words = Array.from({ length: 50 }, (_, i) => `${i};`)
    const appends = words.map(async (body) => {
      const append = { method: 'POST', headers: TEXT, body }
      const response = await fetch(`${server.url}/s`, append).catch(() => undefined)
      return response?.status === 204 ? body : ''
    })
    const first = await Promise.race(appends)
    assert.equal(await server.stop(), 0)
    await events.closed()
    assert.ok(events.received.endsWith('\r\n0\r\n\r\n'), 'the stream was ended, not cut off')
    const acknowledged = await Promise.all(appends)
    assert.ok(acknowledged.includes(first))
    const again = await ServeProcess.start({ dir })
    t.after(() => again.stop())
    const content = await (await fetch(`${again.url}/s`)).text()
    for (const word of acknowledged) assert.ok(content.includes(word), word)
  })

  test('can not listen where another does, and lets go of the store', async (t) => {
    const web = await startWeb(t)
    const bifrost = await Bifrost.open({ provider: 'memory' })
    t.after(() => bifrost.close())
    const port = Number(new URL(web.url).port)
    await assert.rejects(serve(bifrost, { port }), { code: 'EADDRINUSE' })
    const server = await serve(bifrost, { port: 0, host: '::1' })
    assert.match(server.url, /^http:\/\/\[::1\]:\d+$/)
    await server.close()
  })
})
