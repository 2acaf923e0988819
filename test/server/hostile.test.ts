/** Clients that mean harm, or behave as if they did: limits hold, and others are served meanwhile. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { describe, test } from 'node:test'
import { Bifrost } from '../../index.ts'
import { createHandler } from '../../server/index.ts'
import { temporaryDirectory } from '../support/temp-dir.ts'
import { RawConnection, rawStatus } from './raw.ts'
import { ServeProcess } from './serve-process.ts'
import { until } from './until.ts'
import { codeOf, post, put, startWeb, TEXT, type Web } from './web.ts'

const MIB = 1024 * 1024
const IDLE_READERS = 2000
/** The memory that one reader may cost: sockets, parsers and what the server keeps of it. */
const KIB_PER_READER = 60

async function metric(web: Web, name: string): Promise<number> {
  const text = await (await web.fetch('/metrics')).text()
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1])
}

/** The start of an append of so many bytes. */
function postOf(bytes: number, start = ''): string {
  const headers = `host: a\r\ncontent-type: text/plain\r\ncontent-length: ${bytes}`
  return `POST /s HTTP/1.1\r\n${headers}\r\n\r\n${start}`
}

describe('malformed requests', () => {
  const REQUESTS: Readonly<Record<string, string>> = {
    'no HTTP': 'hello\r\n\r\n',
    'a header without a colon': 'GET /s HTTP/1.1\r\nhost: a\r\nnonsense\r\n\r\n',
    'a NUL in a header': 'GET /s HTTP/1.1\r\nhost: a\r\nx: a\0b\r\n\r\n',
    'a space in a header name': 'GET /s HTTP/1.1\r\nhost: a\r\nx y: b\r\n\r\n',
    'no host': 'GET /s HTTP/1.1\r\n\r\n',
    'a length that is none': 'POST /s HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\n',
    'two lengths':
      'POST /s HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab',
    'a length and chunks':
      'POST /s HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
    'producer headers that contradict each other':
      'POST /s HTTP/1.1\r\nhost: a\r\ncontent-type: text/plain\r\nproducer-id: p\r\nproducer-epoch: 0\r\n' +
      'producer-seq: 0\r\nproducer-seq: 1\r\ncontent-length: 1\r\n\r\nx',
  }

  test('are refused, and harm nobody', async (t) => {
    const web = await startWeb(t)
    await put(web, '/s', TEXT, 'a')
    for (const [name, request] of Object.entries(REQUESTS)) {
      assert.equal(await rawStatus(web.url, request), 400, name)
    }
    const long = `GET /s HTTP/1.1\r\nhost: a\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`
    assert.equal(await rawStatus(web.url, long), 431)
    assert.equal(await (await web.fetch('/s')).text(), 'a')
  })

  test('of methods that are none here get 405, and the ones that there are', async (t) => {
    const web = await startWeb(t)
    for (const method of ['PATCH', 'PROPFIND']) {
      const reply = await web.fetch('/s', { method })
      assert.deepEqual([reply.status, await codeOf(reply)], [405, 'METHOD_NOT_ALLOWED'])
      assert.match(reply.headers.get('allow') ?? '', /GET, HEAD, POST/)
    }
    assert.equal((await put(web, '/')).status, 405)
    assert.equal((await put(web, '/metrics')).status, 405)
    assert.equal((await put(web, '/__bifrost/s')).status, 405)
    assert.equal((await put(web, '/__ds/subscriptions/a')).status, 501)
  })
})

describe('paths', () => {
  const REFUSED: Readonly<Record<string, number>> = {
    '/a%2fb': 400,
    '/a%5Cb': 400,
    '/..': 400,
    '/a/../b': 400,
    '/a/%2e%2e/b': 400,
    '/a/./b': 400,
    '/a//b': 400,
    '/a/': 400,
    '/%00': 400,
    '/a%0d%0ab': 400,
    '/%ff': 400,
    '/%zz': 400,
    [`/${'a'.repeat(2000)}`]: 414,
    'http://elsewhere/a': 400,
    '*': 400,
  }

  test('that could be taken for something else name no stream', async (t) => {
    const web = await startWeb(t)
    for (const [path, status] of Object.entries(REFUSED)) {
      const request = `PUT ${path} HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n`
      assert.equal(await rawStatus(web.url, request), status, path)
    }
    assert.deepEqual(web.bifrost.logIds(), ['http:registry'])
  })
})

describe('a body that is too large', () => {
  test('is refused before it comes', async (t) => {
    const web = await startWeb(t, { maxBodyBytes: 1000 })
    await put(web, '/s')
    const connection = await RawConnection.open(web.url)
    connection.send(postOf(5000))
    connection.send('x'.repeat(4999))
    assert.equal(await metric(web, 'bifrost_http_body_bytes'), 0)
    connection.send('x')
    await connection.until(/^HTTP\/1\.1 413 /)
    const whole = await post(web, '/s', 'x'.repeat(1001))
    assert.deepEqual([whole.status, await codeOf(whole)], [413, 'BODY_TOO_LARGE'])
    assert.equal((await post(web, '/s', 'x'.repeat(1000))).status, 204)
  })

  test('is refused as soon as it is, when its length was not told', async (t) => {
    const web = await startWeb(t, { maxBodyBytes: 1000 })
    await put(web, '/s')
    const connection = await RawConnection.open(web.url)
    connection.send(
      'POST /s HTTP/1.1\r\nhost: a\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n',
    )
    for (let i = 0; i < 20; i++) connection.send(`64\r\n${'x'.repeat(100)}\r\n`)
    connection.send('0\r\n\r\n')
    await connection.until(/^HTTP\/1\.1 413 /)
    assert.equal(await metric(web, 'bifrost_http_body_bytes'), 0)
    assert.equal(await (await web.fetch('/s')).text(), '')
  })

  test('with others is more than the server takes at once: 503, to be tried again', async (t) => {
    const web = await startWeb(t, { maxBufferedBytes: 64 * 1024 })
    await put(web, '/s')
    const half = await RawConnection.open(web.url)
    half.send(postOf(60001))
    half.send('x'.repeat(60_000))
    await until(async () => (await metric(web, 'bifrost_http_body_bytes')) === 60_000)
    const other = await post(web, '/s', 'y'.repeat(10_000))
    assert.deepEqual([other.status, other.headers.get('retry-after')], [503, '1'])
    half.send('x')
    await half.until(/^HTTP\/1\.1 204 /)
    assert.equal((await post(web, '/s', 'y'.repeat(10_000))).status, 204)
    half.socket.destroy()
  })

  test('and is cut off leaves nothing behind', async (t) => {
    const web = await startWeb(t)
    await put(web, '/s')
    const connection = await RawConnection.open(web.url)
    connection.send(postOf(100, 'abc'))
    await until(async () => (await metric(web, 'bifrost_http_body_bytes')) === 3)
    connection.socket.destroy()
    await until(async () => (await metric(web, 'bifrost_http_body_bytes')) === 0)
    assert.equal(await (await web.fetch('/s')).text(), '')
  })
})

describe('a client that sends slowly', () => {
  test('is cut off, in its headers and in its body', async (t) => {
    const web = await startWeb(t, { headersTimeoutMs: 300, requestTimeoutMs: 600 })
    await put(web, '/s')
    const headers = await RawConnection.open(web.url)
    headers.send('GET /s HTTP/1.1\r\nhost: a\r\n')
    const body = await RawConnection.open(web.url)
    body.send(postOf(100, 'abc'))
    await Promise.all([headers.closed(), body.closed()])
    assert.match(headers.received, /^HTTP\/1\.1 408 /)
    assert.equal(await (await web.fetch('/s')).text(), '')
  })
})

describe('a full queue', () => {
  test('refuses with 503 and Retry-After, and keeps what it acknowledged', async (t) => {
    const dir = await temporaryDirectory(t)
    const queueBytes = 256 * 1024
    const bifrost = await Bifrost.open({ dir, queueBytes, maxRecordBytes: 128 * 1024 })
    const web = await startWeb(t, { bifrost })
    const paths = Array.from({ length: 64 }, (_, i) => `/s${i}`)
    await Promise.all(paths.map((path) => put(web, path)))
    const body = 'x'.repeat(64 * 1024)
    const replies = await Promise.all(paths.map((path) => post(web, path, body)))
    const statuses = new Set(replies.map(({ status }) => status))
    assert.ok(statuses.has(204))
    for (const [i, reply] of replies.entries()) {
      const isThere = (await (await web.fetch(paths[i] ?? '')).text()) === body
      assert.equal(isThere, reply.status === 204)
      if (isThere) continue
      assert.deepEqual([reply.status, reply.headers.get('retry-after')], [503, '1'])
      assert.equal(await codeOf(reply), 'QUEUE_FULL')
    }
  })
})

describe('readers that take nothing', () => {
  test('are cut off when what waits for them stays there, and nobody else is', async (t) => {
    const web = await startWeb(t, { stallMs: 1500, heartbeatMs: 100 })
    await put(web, '/s')
    const slow = await RawConnection.open(web.url)
    slow.send('GET /s?offset=-1&live=sse HTTP/1.1\r\nhost: a\r\n\r\n')
    await slow.until('upToDate')
    slow.socket.pause()
    const quick = await RawConnection.open(web.url)
    quick.send('GET /s?offset=-1&live=sse HTTP/1.1\r\nhost: a\r\n\r\n')
    const chunk = 'x'.repeat(MIB)
    for (let i = 0; i < 24; i++) await post(web, '/s', chunk)
    await until(async () => (await metric(web, 'bifrost_http_live_readers')) === 1)
    await post(web, '/s', 'the end')
    await quick.until('the end')
    const sent = (quick.received.match(/x/g) ?? []).length
    assert.ok(sent >= 24 * MIB)
    quick.socket.destroy()
    slow.socket.destroy()
    await until(async () => (await metric(web, 'bifrost_http_live_readers')) === 0)
  })

  test('of a plain answer are cut off too', async (t) => {
    const bifrost = await Bifrost.open({ provider: 'memory' })
    const handler = await createHandler(bifrost, { stallMs: 200, maxReadBytes: 32 * MIB })
    const cut = deferred()
    const server = createServer((request, response) => {
      if (request.method === 'GET') response.once('close', cut.resolve)
      handler.handle(request, response)
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    t.after(async () => {
      server.close()
      await handler.close()
      await bifrost.close()
    })
    const url = `http://127.0.0.1:${port}`
    const append = { method: 'POST', headers: TEXT, body: 'x'.repeat(7 * MIB) }
    await fetch(`${url}/s`, { ...append, method: 'PUT' })
    for (let i = 0; i < 3; i++) await fetch(`${url}/s`, append)
    const socket = connect({ host: '127.0.0.1', port })
    socket.write('GET /s HTTP/1.1\r\nhost: a\r\n\r\n')
    await cut.promise
    let received = 0
    socket.on('error', () => undefined).on('data', (bytes) => (received += bytes.length))
    await once(socket, 'close')
    assert.ok(received < 28 * MIB)
  })

  test('are as many as there may be, and no more', async (t) => {
    const web = await startWeb(t, { maxLiveReaders: 1 })
    await put(web, '/s')
    const first = await RawConnection.open(web.url)
    first.send('GET /s?offset=-1&live=sse HTTP/1.1\r\nhost: a\r\n\r\n')
    await first.until('upToDate')
    for (const live of ['sse', 'long-poll']) {
      const refused = await web.fetch(`/s?offset=now&live=${live}`)
      assert.deepEqual([refused.status, await codeOf(refused)], [503, 'TOO_MANY_READERS'])
    }
    first.socket.destroy()
    await until(async () => (await metric(web, 'bifrost_http_live_readers')) === 0)
  })

  test(`are served by the thousand in bounded memory`, async (t) => {
    const dir = await temporaryDirectory(t)
    const server = await ServeProcess.start({ dir })
    t.after(() => server.stop())
    await fetch(`${server.url}/s`, { method: 'PUT', headers: TEXT })
    const before = residentKib(server.pid)
    const readers: RawConnection[] = []
    for (let i = 0; i < IDLE_READERS; i++) {
      const reader = await RawConnection.open(server.url)
      reader.send('GET /s?offset=-1&live=sse HTTP/1.1\r\nhost: a\r\n\r\n')
      readers.push(reader)
    }
    for (const reader of readers) await reader.until('upToDate')
    await fetch(`${server.url}/s`, { method: 'POST', headers: TEXT, body: 'good morning' })
    for (const reader of readers) await reader.until('data:good morning')
    const perReader = (residentKib(server.pid) - before) / IDLE_READERS
    t.diagnostic(`${perReader.toFixed(1)} KiB a reader`)
    assert.ok(perReader < KIB_PER_READER, `${perReader} KiB a reader`)
    assert.equal(await server.stop(), 0)
    for (const reader of readers) await reader.closed()
    assert.ok(readers.every(({ received }) => received.endsWith('\r\n0\r\n\r\n')))
  })
})

function deferred(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => undefined
  const promise = new Promise<void>((done) => (resolve = done))
  return { promise, resolve }
}

function residentKib(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1])
}
