/** What a stream over HTTP promises beyond the conformance suite: trims, conditions, forms, limits. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Bifrost } from '../../index.ts'
import { createHandler } from '../../server/index.ts'
import { temporaryDirectory } from '../support/temp-dir.ts'
import { codeOf, JSON_TYPE, nextOffset, post, producer, put, startWeb, TEXT } from './web.ts'

describe('a trim', () => {
  test('gives up what comes before an offset, and tells who asks for it where to go on', async (t) => {
    const web = await startWeb(t)
    await put(web, '/s', TEXT, 'one')
    const two = nextOffset(await post(web, '/s', 'two'))
    const three = nextOffset(await post(web, '/s', 'three'))
    const trim = await post(web, '/s', '', { 'stream-trim-before': two })
    assert.equal(trim.status, 204)
    assert.equal(trim.headers.get('stream-earliest-offset'), two)

    const below = await web.fetch(`/s?offset=${'0'.repeat(16)}_${'0'.repeat(16)}`)
    assert.equal(below.status, 410)
    assert.equal(below.headers.get('stream-earliest-offset'), two)
    assert.equal(await codeOf(below), 'TRIMMED')
    const live = await web.fetch(`/s?offset=${'0'.repeat(16)}_${'0'.repeat(16)}&live=sse`)
    assert.equal(live.status, 410)

    const all = await web.fetch('/s?offset=-1')
    assert.equal(await all.text(), 'three')
    assert.equal(nextOffset(all), three)
    const head = await web.fetch('/s', { method: 'HEAD' })
    assert.equal(head.headers.get('stream-earliest-offset'), two)
  })

  test('never goes back, nor past the end', async (t) => {
    const web = await startWeb(t)
    const one = nextOffset(await put(web, '/s', TEXT, 'one'))
    const two = nextOffset(await post(web, '/s', 'two'))
    const past = `${'1'.repeat(16)}_${'0'.repeat(16)}`
    const all = await post(web, '/s', '', { 'stream-trim-before': past })
    assert.equal(all.headers.get('stream-earliest-offset'), two)
    const back = await post(web, '/s', '', { 'stream-trim-before': one })
    assert.equal(back.headers.get('stream-earliest-offset'), two)
    assert.equal(nextOffset(await web.fetch('/s', { method: 'HEAD' })), two)
    assert.equal(await (await web.fetch('/s')).text(), '')
    await post(web, '/s', 'three')
    assert.equal(await (await web.fetch('/s')).text(), 'three')
  })

  test('keeps what is known of the writers, also through a restart', async (t) => {
    const dir = await temporaryDirectory(t)
    await t.test('writes and trims', async (t2) => {
      const web = await startWeb(t2, { dir })
      await put(web, '/s')
      await post(web, '/s', 'a', { ...producer('p', 3, 0), 'stream-seq': 'b' })
      const end = nextOffset(await post(web, '/s', 'b', producer('p', 3, 1)))
      const trim = await post(web, '/s', '', { 'stream-trim-before': end })
      assert.equal(trim.headers.get('stream-earliest-offset'), end)
    })
    const web = await startWeb(t, { dir })
    const again = await post(web, '/s', 'b', producer('p', 3, 1))
    assert.deepEqual([again.status, again.headers.get('producer-seq')], [204, '1'])
    assert.equal((await post(web, '/s', 'x', producer('p', 2, 0))).status, 403)
    assert.equal((await post(web, '/s', 'x', { ...TEXT, 'stream-seq': 'b' })).status, 409)
    assert.equal((await post(web, '/s', 'c', producer('p', 3, 2))).status, 200)
    assert.equal(await (await web.fetch('/s')).text(), 'c')
  })

  test('has no body, closes nothing, and is not for a stream that others read through', async (t) => {
    const web = await startWeb(t)
    const end = nextOffset(await put(web, '/s', TEXT, 'one'))
    const trim = { 'stream-trim-before': end }
    assert.equal((await post(web, '/s', 'x', { ...TEXT, ...trim })).status, 400)
    assert.equal((await post(web, '/s', '', { ...trim, 'stream-closed': 'true' })).status, 400)
    assert.equal((await post(web, '/s', '', { 'stream-trim-before': 'now' })).status, 400)
    await put(web, '/fork', { 'stream-forked-from': '/s' })
    assert.equal((await post(web, '/s', '', trim)).status, 409)
    await web.fetch('/fork', { method: 'DELETE' })
    assert.equal((await post(web, '/s', '', trim)).status, 204)
  })
})

describe('an append on a condition', () => {
  test('is done only where the end is as expected', async (t) => {
    const web = await startWeb(t)
    const start = nextOffset(await put(web, '/s'))
    const expecting = (offset: string): Record<string, string> => ({
      ...TEXT,
      'stream-expected-offset': offset,
    })
    const first = await post(web, '/s', 'a', expecting(start))
    assert.equal(first.status, 204)
    const second = await post(web, '/s', 'b', expecting(start))
    assert.equal(second.status, 412)
    assert.equal(nextOffset(second), nextOffset(first))
    assert.equal(await codeOf(second), 'TAIL_MISMATCH')
    assert.equal((await post(web, '/s', 'b', expecting('x'))).status, 400)
  })

  test('is won by one of many', async (t) => {
    const web = await startWeb(t)
    const start = nextOffset(await put(web, '/s'))
    const headers = { ...TEXT, 'stream-expected-offset': start }
    const replies = await Promise.all(
      Array.from({ length: 16 }, (_, i) => post(web, '/s', String(i), headers)),
    )
    const won = replies.filter(({ status }) => status === 204)
    assert.equal(won.length, 1)
    assert.equal(replies.filter(({ status }) => status === 412).length, 15)
  })
})

describe('JSON', () => {
  test('comes back byte for byte, also as lines for who asks for them', async (t) => {
    const web = await startWeb(t)
    const big = '{"n":12345678901234567890, "n":1.0}'
    await put(web, '/s', JSON_TYPE, `[${big},\n[1, 2]]`)
    const array = await web.fetch('/s')
    assert.equal(await array.text(), `[${big},[1, 2]]`)
    assert.equal(array.headers.get('vary'), 'accept')
    const lines = await web.fetch('/s', { headers: { accept: 'application/x-ndjson' } })
    assert.equal(lines.headers.get('content-type'), 'application/x-ndjson')
    assert.equal(await lines.text(), `${big}\n[1, 2]\n`)
    assert.notEqual(lines.headers.get('etag'), array.headers.get('etag'))
  })

  test('is one message a record, so that a read may end between any two', async (t) => {
    const web = await startWeb(t, { maxReadBytes: 1 })
    await put(web, '/s', JSON_TYPE, '[1,2,3]')
    const read: string[] = []
    for (let offset = '-1'; ;) {
      const response = await web.fetch(`/s?offset=${offset}`)
      read.push(await response.text())
      offset = nextOffset(response)
      if (response.headers.get('stream-up-to-date') === 'true') break
      assert.match(response.headers.get('cache-control') ?? '', /^public, max-age=60/)
    }
    assert.deepEqual(read, ['[1]', '[2]', '[3]'])
  })

  test('of too many messages is refused', async (t) => {
    const web = await startWeb(t, { maxMessages: 3 })
    await put(web, '/s', JSON_TYPE)
    assert.equal((await post(web, '/s', '[1,2,3]', JSON_TYPE)).status, 204)
    assert.equal((await post(web, '/s', '[1,2,3,4]', JSON_TYPE)).status, 413)
    assert.equal(await (await web.fetch('/s')).text(), '[1,2,3]')
  })
})

describe('a path that is used again', () => {
  test('is another stream, which knows nothing of the first', async (t) => {
    const web = await startWeb(t)
    await put(web, '/s', TEXT, 'secret')
    const old = nextOffset(await post(web, '/s', 'more', producer('p', 0, 0)))
    const etag = (await web.fetch('/s')).headers.get('etag') ?? ''
    const [before] = web.bifrost.logIds().filter((logId) => logId.startsWith('http:/s#'))
    assert.equal((await web.fetch('/s', { method: 'DELETE' })).status, 204)
    assert.equal((await web.fetch('/s')).status, 404)
    assert.equal((await put(web, '/s', TEXT, 'new')).status, 201)
    const [after, ...others] = web.bifrost.logIds().filter((logId) => logId.startsWith('http:/s#'))
    assert.deepEqual(others, [])
    assert.notEqual(after, before)
    assert.equal((await web.fetch(`/s?offset=${old}`)).status, 400)
    const read = await web.fetch('/s', { headers: { 'if-none-match': etag } })
    assert.equal(await read.text(), 'new')
    assert.equal((await post(web, '/s', '!', producer('p', 0, 1))).status, 409)
  })

  test('is created once by many at the same time', async (t) => {
    const web = await startWeb(t)
    const replies = await Promise.all(Array.from({ length: 16 }, () => put(web, '/s', TEXT, 'x')))
    assert.equal(replies.filter(({ status }) => status === 201).length, 1)
    assert.equal(replies.filter(({ status }) => status === 200).length, 15)
    assert.equal(await (await web.fetch('/s')).text(), 'x')
  })

  test('can be deleted and created by many at the same time', async (t) => {
    const web = await startWeb(t)
    const replies = await Promise.all(
      Array.from({ length: 60 }, (_, i) => {
        if (i % 3 === 0) return web.fetch('/s', { method: 'DELETE' })
        return i % 3 === 1 ? put(web, '/s', TEXT, 'x') : post(web, '/s', 'y')
      }),
    )
    const statuses = new Set(replies.map(({ status }) => status))
    for (const status of statuses) assert.ok([200, 201, 204, 404].includes(status), String(status))
    await web.fetch('/s', { method: 'DELETE' })
    assert.deepEqual(web.bifrost.logIds(), ['http:registry'])
  })
})

describe('a limit', () => {
  test('on streams is 507', async (t) => {
    const web = await startWeb(t, { maxStreams: 2 })
    const replies = await Promise.all(['/a', '/b', '/c'].map((path) => put(web, path)))
    assert.deepEqual(replies.map(({ status }) => status).sort(), [201, 201, 507])
    await web.fetch('/a', { method: 'DELETE' })
    assert.equal((await put(web, '/d')).status, 201)
  })

  test('on producers is 429, and those that are known go on', async (t) => {
    const web = await startWeb(t, { maxProducers: 2 })
    await put(web, '/s')
    assert.equal((await post(web, '/s', 'a', producer('a', 0, 0))).status, 200)
    assert.equal((await post(web, '/s', 'b', producer('b', 0, 0))).status, 200)
    const third = await post(web, '/s', 'c', producer('c', 0, 0))
    assert.deepEqual([third.status, await codeOf(third)], [429, 'TOO_MANY_PRODUCERS'])
    assert.equal((await post(web, '/s', 'a', producer('a', 0, 1))).status, 200)
    assert.equal(await (await web.fetch('/s')).text(), 'aba')
  })
})

describe('a stream through a restart', () => {
  test('is as it was, in every respect', async (t) => {
    const dir = await temporaryDirectory(t)
    const expires = '2100-01-01T00:00:00.000Z'
    const heads = new Map<string, [string, string | null][]>()
    const names = ['content-type', 'stream-next-offset', 'stream-ttl', 'stream-expires-at']
    const headOf = async (
      web: Awaited<ReturnType<typeof startWeb>>,
      path: string,
    ): Promise<[string, string | null][]> => {
      const { headers } = await web.fetch(path, { method: 'HEAD' })
      return [...names, 'stream-closed'].map((name) => [name, headers.get(name)])
    }
    await t.test('before', async (t2) => {
      const web = await startWeb(t2, { dir })
      await put(web, '/ttl', { ...TEXT, 'stream-ttl': '3600' }, 'a')
      await put(web, '/expires', { ...JSON_TYPE, 'stream-expires-at': expires }, '[1,2]')
      await put(web, '/closed', { ...TEXT, 'stream-closed': 'true' }, 'all')
      await put(web, '/closed-later', TEXT, 'a')
      await post(web, '/closed-later', 'b', { ...producer('p', 0, 0), 'stream-closed': 'true' })
      await put(web, '/closed-only', TEXT, 'a')
      await post(web, '/closed-only', '', { 'stream-closed': 'true' })
      await put(web, '/deleted', TEXT, 'a')
      await web.fetch('/deleted', { method: 'DELETE' })
      await put(web, '/fork', { 'stream-forked-from': '/closed' }, '!')
      await web.fetch('/closed', { method: 'DELETE' })
      for (const path of ['/ttl', '/expires', '/closed-later', '/closed-only', '/fork']) {
        heads.set(path, await headOf(web, path))
      }
    })
    const web = await startWeb(t, { dir })
    for (const [path, head] of heads) assert.deepEqual(await headOf(web, path), head, path)
    assert.equal(heads.get('/expires')?.[3]?.[1], expires)
    assert.equal(await (await web.fetch('/closed-later')).text(), 'ab')
    const again = { ...producer('p', 0, 0), 'stream-closed': 'true' }
    assert.equal((await post(web, '/closed-later', 'b', again)).status, 204)
    assert.equal((await post(web, '/closed-only', 'b')).status, 409)
    assert.equal((await web.fetch('/deleted')).status, 404)
    assert.equal((await web.fetch('/closed')).status, 410)
    assert.equal(await (await web.fetch('/fork')).text(), 'all!')
    await web.fetch('/fork', { method: 'DELETE' })
    for (let tries = 0; (await web.fetch('/closed')).status !== 404; tries++) assert.ok(tries < 100)
    assert.equal(web.bifrost.logIds().filter((logId) => logId.includes('/closed#')).length, 0)
  })

  test('needs only a bounded stretch of its log to know its writers again', async (t) => {
    const bifrost = await Bifrost.open({ provider: 'memory' })
    const handler = await createHandler(bifrost)
    t.after(async () => {
      await handler.close()
      await bifrost.close()
    })
    const ask = async (method: string, headers: Record<string, string>): Promise<number> => {
      const body = method === 'POST' ? { body: 'x' } : {}
      const request = new Request('http://localhost/s', { method, headers, ...body })
      return (await handler.fetch(request)).status
    }
    await ask('PUT', TEXT)
    const replies: Promise<number>[] = []
    for (let seq = 0; seq < 500; seq++) {
      for (const id of ['a', 'b', 'c', 'd', 'e']) replies.push(ask('POST', producer(id, 0, seq)))
    }
    assert.deepEqual([...new Set(await Promise.all(replies))], [200])

    const [logId = ''] = bifrost.logIds().filter((id) => id.startsWith('http:/s#'))
    const { lsn: tail } = await bifrost.findTail(logId)
    const last = await bifrost.readNextSingleOpt<unknown[]>(logId, tail - 2)
    assert.ok(last?.kind === 'data')
    const mark = last.payload[3] as number
    assert.ok(tail - mark <= 1100, `the mark is at ${mark} of ${tail}`)
    const marked = await bifrost.readNextSingleOpt<unknown[]>(logId, mark - 1)
    assert.ok(marked?.kind === 'data')
    const [, producers] = marked.payload[5] as [null, unknown[]]
    assert.equal(producers.length, 5)
  })
})

describe('a store', () => {
  test('has one handler at a time, and can have another after it', async (t) => {
    const bifrost = await Bifrost.open({ provider: 'memory' })
    t.after(() => bifrost.close())
    const handler = await createHandler(bifrost)
    await assert.rejects(createHandler(bifrost), TypeError)
    await handler.close()
    const other = await createHandler(bifrost)
    await other.close()
    await assert.rejects(createHandler(bifrost, { maxBodyBytes: -1 }), RangeError)
    await assert.rejects(createHandler(bifrost, { bodyBytes: 1 } as object), TypeError)
  })

  test('keeps the logs that are no streams', async (t) => {
    const dir = await temporaryDirectory(t)
    const bifrost = await Bifrost.open({ dir, logs: ['orders', '/s#1', 'http', 'http/x'] })
    const web = await startWeb(t, { bifrost })
    await put(web, '/s')
    await web.fetch('/s', { method: 'DELETE' })
    assert.deepEqual(bifrost.logIds(), ['orders', '/s#1', 'http', 'http/x', 'http:registry'])
  })
})
