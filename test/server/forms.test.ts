/** The small forms of the protocol: offsets, cursors, paths, types, headers, bodies and events. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { essenceOf, isText, requireContentType } from '../../server/content-type.ts'
import { formatCursor, leastCursor } from '../../server/cursor.ts'
import { eventData } from '../../server/events.ts'
import type { HttpRequest } from '../../server/exchange.ts'
import { HttpError } from '../../server/http-error.ts'
import { messagesOf } from '../../server/messages.ts'
import { formatOffset, parseOffset } from '../../server/offset.ts'
import { bodyForm, encodeBody } from '../../server/read-body.ts'
import { readQuery } from '../../server/read-query.ts'
import { closesStream, lifetime, producerStamp, streamSeq } from '../../server/request-headers.ts'
import { MAX_PATH_BYTES, streamPath } from '../../server/stream-path.ts'

const utf8 = (text: string): Buffer => Buffer.from(text)

/** The status with which a call is refused. */
function refusal(call: () => unknown): number {
  try {
    call()
  } catch (error) {
    if (error instanceof HttpError) return error.status
    throw error
  }
  assert.fail('it was not refused')
}

describe('offsets', () => {
  const place = fc.record(
    { lsn: fc.maxSafeNat(), bytes: fc.maxSafeNat() },
    { noNullPrototype: true },
  )

  test('parseOffset() takes what formatOffset() makes', () => {
    fc.assert(
      fc.property(place, (offset) => assert.deepEqual(parseOffset(formatOffset(offset)), offset)),
    )
  })

  test('sort as the places do', () => {
    fc.assert(
      fc.property(place, place, (a, b) => {
        const isBefore = a.lsn < b.lsn || (a.lsn === b.lsn && a.bytes < b.bytes)
        assert.equal(formatOffset(a) < formatOffset(b), isBefore)
      }),
    )
  })

  test('parseOffset() takes nothing else', () => {
    const short = '1_2'
    const large = `9999999999999999_${'0'.repeat(16)}`
    for (const token of ['', '-1', 'now', short, large, `${'0'.repeat(16)}_${'0'.repeat(17)}`]) {
      assert.equal(parseOffset(token), undefined, token)
    }
  })
})

describe('cursors', () => {
  const epoch = Date.UTC(2024, 9, 9)

  test('count intervals of 20 s', () => {
    assert.equal(leastCursor(undefined, epoch + 20_000 * 7 + 19_999), 7)
  })

  test('are greater than what the client sent, and never go back', () => {
    for (const sent of ['7', '8', '100']) {
      const least = leastCursor(sent, epoch + 20_000 * 7)
      assert.ok(least > Number(sent) && least <= Number(sent) + 180, `${sent} gives ${least}`)
      assert.equal(formatCursor(least, epoch + 20_000 * 7), String(least))
      assert.equal(formatCursor(least, epoch + 20_000 * 1000), '1000')
    }
  })

  test('pay no attention to nonsense', () => {
    for (const sent of ['', '-3', '1e9', 'NaN', '9'.repeat(30)]) {
      assert.equal(leastCursor(sent, epoch), 0)
    }
  })
})

describe('streamPath()', () => {
  test('brings each spelling into one form', () => {
    assert.equal(streamPath('/v1/stream/a-b_c.d~e'), '/v1/stream/a-b_c.d~e')
    assert.equal(streamPath('/%61/%C3%A9/..%2e'), '/a/é/...')
    assert.equal(streamPath('/a%20b'), '/a b')
    assert.equal(streamPath('/.hidden'), '/.hidden')
  })

  test('refuses what could be taken for something else', () => {
    const tricks = ['/a/../b', '/a/%2e%2e/b', '/./a', '//a', '/a/', '/a%2Fb', '/a%5cb', '/a%00']
    const broken = ['/%', '/%zz', '/%C3', '/%ff', 'a', '*', '/a\u0007', '/a%0a']
    for (const path of [...tricks, ...broken])
      assert.equal(
        refusal(() => streamPath(path)),
        400,
        path,
      )
    assert.equal(
      refusal(() => streamPath(`/${'a'.repeat(MAX_PATH_BYTES)}`)),
      414,
    )
  })
})

describe('content types', () => {
  test('are equal whatever their case and parameters', () => {
    assert.equal(essenceOf('Application/JSON; charset=utf-8'), 'application/json')
    assert.ok(isText('TEXT/csv') && isText('application/json') && !isText('image/png'))
  })

  test('that are none are refused', () => {
    for (const type of [
      '',
      'text',
      'text/',
      '/plain',
      'text/plain\n',
      'text/plain; x',
      'a/b,c/d',
    ]) {
      if (type.trim() === 'text/plain') continue
      assert.equal(
        refusal(() => requireContentType(type)),
        400,
        type,
      )
    }
    assert.equal(
      refusal(() => requireContentType(`text/${'x'.repeat(300)}`)),
      400,
    )
  })
})

describe('request headers', () => {
  const request = (headers: Record<string, string>): HttpRequest =>
    ({ header: (name: string) => headers[name] }) as unknown as HttpRequest

  test('Stream-Closed counts only as true', () => {
    assert.ok(closesStream(request({ 'stream-closed': 'TRUE' })))
    for (const value of ['false', 'yes', '1', '']) {
      assert.equal(closesStream(request({ 'stream-closed': value })), false)
    }
  })

  test('producer headers come together and are whole numbers', () => {
    const stamp = { 'producer-id': 'p', 'producer-epoch': '0', 'producer-seq': '9007199254740991' }
    assert.deepEqual(producerStamp(request(stamp)), { id: 'p', epoch: 0, seq: 2 ** 53 - 1 })
    assert.equal(producerStamp(request({})), undefined)
    const wrong = [
      { 'producer-id': 'p' },
      { ...stamp, 'producer-id': '' },
      { ...stamp, 'producer-id': 'p'.repeat(257) },
      { ...stamp, 'producer-seq': '9007199254740992' },
      ...['1abc', '1e3', '-1', '', '0x1', ' 1'].map((seq) => ({ ...stamp, 'producer-seq': seq })),
    ]
    for (const headers of wrong)
      assert.equal(
        refusal(() => producerStamp(request(headers))),
        400,
      )
  })

  test('Stream-Seq has a length', () => {
    assert.equal(streamSeq(request({ 'stream-seq': 'a' })), 'a')
    assert.equal(
      refusal(() => streamSeq(request({ 'stream-seq': '' }))),
      400,
    )
    assert.equal(
      refusal(() => streamSeq(request({ 'stream-seq': 'a'.repeat(257) }))),
      400,
    )
  })

  test('lifetimes are exact', () => {
    const expires = '2030-01-02T03:04:05.5+01:00'
    const { expiresAtMs } = lifetime(request({ 'stream-expires-at': expires }))
    assert.equal(expiresAtMs, Date.parse(expires))
    assert.equal(lifetime(request({ 'stream-ttl': '0' })).ttlSeconds, 0)
    const ttls = ['+1', '01', '1.0', '1e3', '-1', '', '1 ', '9'.repeat(20)]
    for (const ttl of ttls)
      assert.equal(
        refusal(() => lifetime(request({ 'stream-ttl': ttl }))),
        400,
      )
    for (const at of ['tomorrow', '2030-01-02', '2030-13-02T03:04:05Z', '2030-01-02 03:04:05Z']) {
      assert.equal(
        refusal(() => lifetime(request({ 'stream-expires-at': at }))),
        400,
        at,
      )
    }
    const both = { 'stream-ttl': '1', 'stream-expires-at': expires }
    assert.equal(
      refusal(() => lifetime(request(both))),
      400,
    )
  })
})

describe('readQuery()', () => {
  test('knows places, the beginning and the end', () => {
    assert.deepEqual(readQuery(''), { offset: 'start', live: undefined, cursor: undefined })
    assert.equal(readQuery('offset=-1').offset, 'start')
    assert.equal(readQuery('offset=now&live=sse').live, 'sse')
    assert.equal(readQuery('x=y&cursor=5').cursor, '5')
  })

  test('refuses what it can not serve', () => {
    const wrong = ['offset=', 'offset=1', 'offset=-1&offset=-1', 'live=sse', 'offset=-1&live=ws']
    for (const query of wrong)
      assert.equal(
        refusal(() => readQuery(query)),
        400,
        query,
      )
  })
})

describe('messagesOf()', () => {
  test('makes each JSON message one line, and no other', () => {
    const body = utf8('[{"a":\r\n"\\n"},\n2]')
    const lines = messagesOf(body, 'application/json', 10).map(String)
    assert.deepEqual(
      messagesOf(body, 'application/json', 10).map((message) => Buffer.from(message).toString()),
      ['{"a":  "\\n"}', '2'],
    )
    assert.equal(lines.length, 2)
    assert.deepEqual(messagesOf(utf8('a\nb'), 'text/plain', 10), [utf8('a\nb')])
  })

  test('refuses JSON that is none, or too much', () => {
    const type = 'application/json'
    assert.equal(
      refusal(() => messagesOf(utf8('{'), type, 10)),
      400,
    )
    assert.equal(
      refusal(() => messagesOf(Buffer.from([0x22, 0xff, 0x22]), type, 10)),
      400,
    )
    assert.equal(
      refusal(() => messagesOf(utf8('[1,2,3]'), type, 2)),
      413,
    )
  })
})

describe('bodies and events', () => {
  const of = (...texts: string[]): { lsn: number; data: Buffer }[] =>
    texts.map((text, i) => ({ lsn: i + 1, data: utf8(text) }))
  const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString()

  test('encodeBody() joins messages in each form', () => {
    assert.equal(text(encodeBody(of('a', 'b'), 'bytes')), 'ab')
    assert.equal(text(encodeBody(of('1', '2'), 'json')), '[1,2]')
    assert.equal(text(encodeBody(of('1', '2'), 'ndjson')), '1\n2\n')
    assert.deepEqual(
      ['bytes', 'json', 'ndjson'].map((form) => text(encodeBody([], form as 'json'))),
      ['', '[]', ''],
    )
  })

  test('bodyForm() gives lines to those who ask for them, of JSON', () => {
    assert.equal(bodyForm('application/json', 'application/x-ndjson'), 'ndjson')
    assert.equal(bodyForm('application/json', 'text/html, application/ndjson;q=0.9'), 'ndjson')
    assert.equal(bodyForm('application/json', 'application/json'), 'json')
    assert.equal(bodyForm('text/plain', 'application/x-ndjson'), 'bytes')
  })

  test('eventData() is one event, whatever lines the text has', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('\r', '\n', 'a', 'event: x', 'data:')), (parts) => {
        const payload = parts.join('')
        const event = text(eventData(of(payload), 'text/plain'))
        const [name, ...lines] = event.slice(0, -2).split('\n')
        assert.equal(name, 'event: data')
        assert.ok(event.endsWith('\n\n') && !event.includes('\r'))
        assert.ok(lines.every((line) => line.startsWith('data:')))
        const back = lines.map((line) => line.slice('data:'.length)).join('\n')
        assert.equal(back, payload.replace(/\r\n|\r/g, '\n'))
      }),
    )
  })

  test('eventData() sends bytes as base64', () => {
    const bytes = Buffer.from([0, 255, 10, 13])
    const event = text(eventData([{ lsn: 1, data: bytes }], 'application/octet-stream'))
    assert.equal(event, `event: data\ndata:${bytes.toString('base64')}\n\n`)
  })
})
