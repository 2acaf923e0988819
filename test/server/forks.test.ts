/** Forks: where they leave their source, and what they may not ask for. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { codeOf, JSON_TYPE, nextOffset, post, put, startWeb, TEXT, type Web } from './web.ts'

interface ForkPlace {
  readonly offset?: string
  readonly sub?: string
}

function fork(web: Web, path: string, { offset, sub }: ForkPlace = {}): Promise<Response> {
  return put(web, path, {
    'stream-forked-from': '/s',
    ...(offset === undefined ? {} : { 'stream-fork-offset': offset }),
    ...(sub === undefined ? {} : { 'stream-fork-sub-offset': sub }),
  })
}

async function content(web: Web, path: string): Promise<string> {
  return (await web.fetch(path)).text()
}

describe('a fork', () => {
  test('starts at the end, at an offset, or within a message', async (t) => {
    const web = await startWeb(t)
    const one = nextOffset(await put(web, '/s', TEXT, 'one,'))
    await post(web, '/s', 'two,')
    assert.equal((await fork(web, '/end')).status, 201)
    assert.equal((await fork(web, '/one', { offset: one })).status, 201)
    assert.equal((await fork(web, '/within', { offset: one, sub: '2' })).status, 201)
    assert.equal((await fork(web, '/behind', { offset: one, sub: '4' })).status, 201)
    await post(web, '/s', 'three')
    for (const path of ['/end', '/one', '/within', '/behind']) await post(web, path, '!')
    const contents = [content(web, '/end'), content(web, '/one'), content(web, '/within')]
    assert.deepEqual(await Promise.all(contents), ['one,two,!', 'one,!', 'one,tw!'])
    assert.equal(await content(web, '/behind'), 'one,two,!')
    assert.equal((await fork(web, '/one', { offset: one })).status, 200)
    assert.equal((await fork(web, '/one')).status, 409)
  })

  test('of JSON counts messages', async (t) => {
    const web = await startWeb(t)
    const start = nextOffset(await put(web, '/s', JSON_TYPE))
    await post(web, '/s', '[1,2,3]', JSON_TYPE)
    assert.equal((await fork(web, '/f', { offset: start, sub: '2' })).status, 201)
    assert.equal(await content(web, '/f'), '[1,2]')
    assert.equal((await fork(web, '/g', { offset: start, sub: '4' })).status, 400)
  })

  test('has a place that is one of its source', async (t) => {
    const web = await startWeb(t)
    const start = nextOffset(await put(web, '/s', TEXT))
    const one = nextOffset(await post(web, '/s', 'one,'))
    const past = `${'1'.repeat(16)}_${'0'.repeat(16)}`
    assert.equal((await fork(web, '/f', { offset: past })).status, 400)
    assert.equal((await fork(web, '/f', { offset: start, sub: '5' })).status, 400)
    assert.equal((await fork(web, '/f', { offset: one, sub: '1' })).status, 400)
    assert.equal((await fork(web, '/f', { sub: '1' })).status, 400)
    assert.equal((await fork(web, '/f', { offset: start, sub: '01' })).status, 400)
    assert.equal((await fork(web, '/s')).status, 400)
    const alone = await put(web, '/f', { 'stream-fork-sub-offset': '0' })
    assert.equal(alone.status, 400)
    const other = await put(web, '/f', { ...JSON_TYPE, 'stream-forked-from': '/s' })
    assert.deepEqual([other.status, await codeOf(other)], [409, 'CONTENT_TYPE_MISMATCH'])
    assert.equal((await put(web, '/f', { 'stream-forked-from': '/none' })).status, 404)
    assert.equal((await web.fetch('/f')).status, 404)
  })

  test('starts from what a trim has left', async (t) => {
    const web = await startWeb(t)
    const one = nextOffset(await put(web, '/s', TEXT, 'one,'))
    const two = nextOffset(await post(web, '/s', 'two,'))
    await post(web, '/s', 'three')
    await post(web, '/s', '', { 'stream-trim-before': two })
    const trimmed = await fork(web, '/f', { offset: one })
    assert.deepEqual([trimmed.status, await codeOf(trimmed)], [410, 'TRIMMED'])
    assert.equal((await fork(web, '/f', { offset: two })).status, 201)
    await post(web, '/f', '!')
    assert.equal(await content(web, '/f'), '!')
  })

  test('of a deleted stream is refused, and those that are there go on', async (t) => {
    const web = await startWeb(t)
    await put(web, '/s', TEXT, 'one,')
    await fork(web, '/f')
    assert.equal((await web.fetch('/s', { method: 'DELETE' })).status, 204)
    const late = await fork(web, '/g')
    assert.deepEqual([late.status, await codeOf(late)], [409, 'GONE'])
    assert.equal((await post(web, '/s', 'x')).status, 410)
    const poll = web.fetch('/f?offset=now&live=long-poll')
    await post(web, '/f', 'two')
    assert.ok([200, 204].includes((await poll).status))
    assert.equal(await content(web, '/f'), 'one,two')
  })
})

describe('those who wait at the end of a stream', () => {
  test('are told when it is deleted', async (t) => {
    const web = await startWeb(t)
    await put(web, '/s', TEXT, 'a')
    const events = await web.fetch('/s?offset=now&live=sse')
    const poll = web.fetch('/s?offset=now&live=long-poll')
    while (!/live_readers 2$/m.test(await content(web, '/metrics'))) await Promise.resolve()
    await web.fetch('/s', { method: 'DELETE' })
    assert.match(await events.text(), /upToDate/)
    assert.equal((await poll).status, 404)
  })

  test('are told when it is closed', async (t) => {
    const web = await startWeb(t)
    await put(web, '/s', TEXT, 'a')
    const events = await web.fetch('/s?offset=now&live=sse')
    const poll = web.fetch('/s?offset=now&live=long-poll')
    while (!/live_readers 2$/m.test(await content(web, '/metrics'))) await Promise.resolve()
    await post(web, '/s', '', { 'stream-closed': 'true' })
    assert.match(await events.text(), /"streamClosed":true/)
    const reply = await poll
    assert.deepEqual([reply.status, reply.headers.get('stream-closed')], [204, 'true'])
  })

  test('in vain go after their time', async (t) => {
    const web = await startWeb(t, { longPollMs: 50, eventStreamMs: 50 })
    await put(web, '/s', TEXT, 'a')
    assert.equal((await web.fetch('/s?offset=now&live=long-poll')).status, 204)
    assert.doesNotMatch(await content(web, '/s?offset=now&live=sse'), /streamClosed/)
  })
})

describe('the registry', () => {
  test('stays short however many streams come and go, and keeps those that stay', async (t) => {
    const web = await startWeb(t)
    await put(web, '/stays', TEXT, 'here')
    const paths = Array.from({ length: 1200 }, (_, i) => `/passes/${i}`)
    await Promise.all(paths.map((path) => put(web, path)))
    await Promise.all(paths.map((path) => web.fetch(path, { method: 'DELETE' })))
    const registry = 'http:registry'
    while ((await web.bifrost.getTrimPoint(registry)) === 0) await put(web, '/stays', TEXT)
    const left = web.bifrost.createReader<object>(registry, { follow: false })
    const kept: object[] = []
    for await (const record of left) if (record.kind === 'data') kept.push(record.payload)
    const stays = kept.filter((put) => JSON.stringify(put).includes('"/stays"'))
    assert.ok(stays.length >= 1)
    assert.equal(await content(web, '/stays'), 'here')
  })
})
