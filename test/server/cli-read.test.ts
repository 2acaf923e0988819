/** `bifrost inspect` and `bifrost dump`: what they show, and that they touch nothing. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'node:test'
import { Bifrost } from '../../index.ts'
import { assertUntouched, flipBit, pictureOf, segmentFiles } from '../support/corrupt.ts'
import { temporaryDirectory } from '../support/temp-dir.ts'
import { bifrostCommand } from './cli-process.ts'
import { closedStore, liveStore, order, RECORDS, TRIMMED } from './cli-stores.ts'

interface Inspected {
  readonly storeId: string
  readonly closedCleanly: boolean
  readonly segments: readonly { readonly file: string; readonly bytes: number }[]
  readonly logs?: readonly object[]
}

interface Line {
  readonly log: string
  readonly lsn: number
  readonly kind?: string
  readonly until?: number
  readonly payload?: unknown
}

function linesOf(stdout: string): Line[] {
  return stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line)
}

async function dump(...args: readonly string[]): Promise<Line[]> {
  const { code, stdout, stderr } = await bifrostCommand('dump', ...args)
  assert.deepEqual([code, stderr], [0, ''])
  return linesOf(stdout)
}

test('bifrost inspect shows segments, logs, tails, trim points and seals, and changes nothing', async (t) => {
  const dir = await closedStore(t)
  const before = pictureOf(dir)
  const { code, stdout, stderr } = await bifrostCommand('inspect', dir)
  assert.deepEqual([code, stderr], [0, ''])
  assert.match(stdout, /^store [0-9a-f]{32}, closed cleanly\n/)
  assert.match(stdout, /^orders +601 +10$/m)
  assert.match(stdout, /^mail +2 +0 +sealed: moved away$/m)
  for (const file of segmentFiles(dir)) {
    const { size } = before.get(file) ?? { size: 0 }
    assert.match(stdout, new RegExp(`^${file} +${size} +20\\d\\d-.*Z$`, 'm'))
  }
  assertUntouched(dir, before)
})

test('bifrost inspect --json tells the same to programs', async (t) => {
  const dir = await closedStore(t)
  const before = pictureOf(dir)
  const { code, stdout } = await bifrostCommand('inspect', '--dir', dir, '--json')
  assert.equal(code, 0)
  const { storeId, closedCleanly, segments, logs } = JSON.parse(stdout) as Inspected
  assert.match(storeId, /^[0-9a-f]{32}$/)
  assert.equal(closedCleanly, true)
  assert.deepEqual(logs, [
    { logId: 'orders', tail: RECORDS + 1, trimPoint: TRIMMED, sealed: false },
    { logId: 'mail', tail: 2, trimPoint: 0, sealed: true, reason: 'moved away' },
  ])
  for (const { file, bytes } of segments) assert.equal(bytes, before.get(file)?.size)
  const names = new Set(segments.map(({ file }) => file))
  assert.ok(segmentFiles(dir).every((file) => names.has(file)))
  assertUntouched(dir, before)
})

test('bifrost inspect shows the files of a store that is too damaged to open', async (t) => {
  const dir = await closedStore(t)
  const last = segmentFiles(dir).at(-1) ?? ''
  flipBit(join(dir, last), 5000)
  const before = pictureOf(dir)
  for (const options of [[], ['--json']]) {
    const { code, stdout, stderr } = await bifrostCommand('inspect', dir, ...options)
    assert.equal(code, 1)
    assert.ok(stdout.includes(last), stdout)
    assert.match(stderr, /^bifrost: CORRUPT: R4 in /)
    if (options.length > 0) assert.equal((JSON.parse(stdout) as Inspected).logs, undefined)
  }
  assertUntouched(dir, before)
})

test("bifrost inspect shows no control characters of a log's name", async (t) => {
  const dir = join(await temporaryDirectory(t), 'store')
  const name = 'a\u001b[2Jb\u009bc\nd'
  const bifrost = await Bifrost.open({ dir, logs: [name] })
  await bifrost.append(name, name)
  await bifrost.close()
  const inspected = await bifrostCommand('inspect', dir)
  assert.match(inspected.stdout, /^a\ufffd\[2Jb\ufffdc\ufffdd +2 +0$/m)
  const dumped = await bifrostCommand('dump', dir)
  assert.match(dumped.stdout, /^[\x20-\x7e]+\n$/)
  assert.deepEqual(linesOf(dumped.stdout)[0]?.payload, name)
})

test('bifrost inspect and dump show a store that another process is writing', async (t) => {
  const { bifrost, dir } = await liveStore(t)
  const inspected = JSON.parse((await bifrostCommand('inspect', dir, '--json')).stdout) as Inspected
  assert.equal(inspected.closedCleanly, false)
  const first = await dump(dir)
  assert.ok(first.length >= 99, 'it is one group behind at most')
  first.forEach(({ payload }, i) => assert.deepEqual(payload, order(i + 1)))
  const over = new AbortController()
  const writing = (async () => {
    for (let id = 101; !over.signal.aborted; id++) {
      await bifrost.append('orders', order(id))
      await sleep(1)
    }
  })()
  const second = await dump(dir)
  over.abort()
  await writing
  second.forEach(({ payload }, i) => assert.deepEqual(payload, order(i + 1)))
  assert.ok(second.length >= first.length)
})

test('bifrost dump prints every record as a line of JSON, and changes nothing', async (t) => {
  const dir = await closedStore(t)
  const before = pictureOf(dir)
  const lines = await dump(dir)
  const [gap, ...rest] = lines
  assert.deepEqual(gap, { log: 'orders', lsn: 1, kind: 'trim-gap', until: TRIMMED })
  const orders = rest.filter(({ log }) => log === 'orders')
  assert.equal(orders.length, RECORDS - TRIMMED)
  orders.forEach(({ lsn, payload }, i) => {
    assert.equal(lsn, TRIMMED + 1 + i)
    assert.deepEqual(payload, order(lsn))
  })
  const mail = rest.filter(({ log }) => log === 'mail')
  assert.deepEqual(
    mail.map(({ lsn, payload }) => [lsn, payload]),
    [[1, 'only one']],
  )
  assertUntouched(dir, before)
})

test('bifrost dump starts at any LSN, ends at any, and takes one log', async (t) => {
  const dir = await closedStore(t)
  const lsns = async (...args: string[]): Promise<number[]> =>
    (await dump(dir, ...args)).map(({ lsn }) => lsn)
  assert.deepEqual(await lsns('--from', '598'), [598, 599, 600])
  assert.deepEqual(await lsns('--log', 'orders', '--from', '20', '--to', '22'), [20, 21, 22])
  assert.deepEqual(await lsns('--log', 'mail'), [1])
  assert.deepEqual(await lsns('--from', '601'), [])
  assert.deepEqual(await lsns('--log', 'mail', '--from', '9007199254740991'), [])
  const [gap, first] = await dump(dir, '--log', 'orders', '--from', '5', '--to', '11')
  assert.deepEqual(gap, { log: 'orders', lsn: 5, kind: 'trim-gap', until: TRIMMED })
  assert.equal(first?.lsn, TRIMMED + 1)
})

test('bifrost dump says which log there is not', async (t) => {
  const dir = await closedStore(t)
  const { code, stdout, stderr } = await bifrostCommand('dump', dir, '--log', 'order')
  assert.deepEqual([code, stdout], [2, ''])
  assert.match(stderr, /^bifrost: There is no log "order"\n/)
})

test('bifrost dump has a form for every value, and no two values share one', async (t) => {
  const dir = join(await temporaryDirectory(t), 'store')
  const bifrost = await Bifrost.open({ dir, logs: ['values'] })
  const forms: readonly (readonly [value: unknown, form: unknown])[] = [
    [null, null],
    ['text', 'text'],
    [1.5, 1.5],
    [-0, { $number: '-0' }],
    [Number.NaN, { $number: 'NaN' }],
    [-Infinity, { $number: '-Infinity' }],
    [2n ** 63n - 1n, { $bigint: '9223372036854775807' }],
    [new Date(1), { $date: '1970-01-01T00:00:00.001Z' }],
    [new TextEncoder().encode('héllo'), { $utf8: 'héllo' }],
    [new TextEncoder().encode('\ufeff'), { $utf8: '\ufeff' }],
    [Uint8Array.of(0xff, 0), { $base64: '/wA=' }],
    [Uint8Array.of(), { $utf8: '' }],
    [
      { $date: 'mine', $$: 1 },
      { $$date: 'mine', $$$: 1 },
    ],
    [[{ deep: [7n] }], [{ deep: [{ $bigint: '7' }] }]],
  ]
  await bifrost.appendBatch(
    'values',
    forms.map(([value]) => value),
  )
  await bifrost.append('values', 'with keys', { keys: ['a', 'b'] })
  await bifrost.close()
  const lines = await dump(dir)
  assert.deepEqual(
    lines.slice(0, forms.length).map(({ payload }) => payload),
    forms.map(([, form]) => form),
  )
  const { createdAt, ...last } = lines.at(-1) as Line & { readonly createdAt: string }
  assert.equal(new Date(createdAt).toISOString(), createdAt)
  const lsn = forms.length + 1
  assert.deepEqual(last, { log: 'values', lsn, keys: ['a', 'b'], payload: 'with keys' })
})

test('bifrost dump prints what comes before damage, and then fails', async (t) => {
  const dir = await closedStore(t)
  flipBit(join(dir, segmentFiles(dir)[0] ?? ''), 20_000)
  const before = pictureOf(dir)
  const { code, stdout, stderr } = await bifrostCommand('dump', dir, '--log', 'orders')
  assert.equal(code, 1)
  const at = /at stake: "orders" (\d+)/.exec(stderr)?.[1]
  assert.match(stderr, /^bifrost: CORRUPT: R4 in 0000000001\.segment at \d+: /)
  const lines = linesOf(stdout)
  assert.equal(lines.at(-1)?.lsn, Number(at) - 1)
  for (const { lsn, payload } of lines.slice(1)) assert.deepEqual(payload, order(lsn))
  assertUntouched(dir, before)
})
