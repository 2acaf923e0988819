/** Logs whose link begins at another LSN than 1: every translation between LSNs and offsets. */
import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { MAX_POSITION } from '../../codec/offset.ts'
import type { Bifrost } from '../../loglets/bifrost.ts'
import { rejection } from '../support/expect-error.ts'
import { openMemoryStore } from './memory-store.ts'
import { RebasedProvider } from './wrapped-provider.ts'

const BASE = 100

async function openAt(
  t: TestContext,
  bases: Readonly<Record<string, number>>,
  maxOffset?: number,
): Promise<Bifrost> {
  const bifrost = await openMemoryStore(
    { logs: Object.keys(bases) },
    {
      internals: { maxOffset },
      wrap: (provider) => new RebasedProvider(provider, (logId) => bases[logId] ?? 1),
      startsInOpen: true,
    },
  )
  t.after(() => bifrost.close())
  return bifrost
}

async function all(bifrost: Bifrost, options = {}): Promise<unknown[]> {
  const seen: unknown[] = []
  for await (const record of bifrost.createReader('log', { follow: false, ...options })) {
    seen.push(record.kind === 'data' ? [record.lsn, record.payload] : record)
  }
  return seen
}

describe('a log whose link begins at LSN 100', () => {
  test('appends from 100 on', async (t) => {
    const bifrost = await openAt(t, { log: BASE, one: 1 })
    assert.equal(await bifrost.append('log', 'a'), 100)
    assert.equal(await bifrost.appendBatch('log', ['b', 'c']), 101)
    const lsns = await bifrost.appendMany([
      { logId: 'log', payload: 'd' },
      { logId: 'one', payload: 'x' },
      { logId: 'log', payload: 'e' },
    ])
    assert.deepEqual(lsns, [103, 1, 104])
    const appender = bifrost.createAppender('log')
    await appender.enqueueMany(['f', 'g'])
    assert.equal(await appender.committed(), 106)
    assert.equal(appender.lastCommitted, 106)
    assert.deepEqual(await bifrost.appendStream('log', ['h', 'i']), {
      count: 2,
      first: 107,
      last: 108,
    })
  })

  test('takes and gives tails in LSNs', async (t) => {
    const bifrost = await openAt(t, { log: BASE, one: 1 })
    const open = { sealed: false, reason: undefined }
    assert.deepEqual(await bifrost.findTail('log'), { ...open, lsn: 100, last: undefined })
    for (const expectedTail of [1, 99, 101]) {
      const call = bifrost.append('log', 'a', { expectedTail })
      assert.equal((await rejection(call, 'TAIL_MISMATCH')).tail, 100)
    }
    assert.equal(await bifrost.append('log', 'a', { expectedTail: 100 }), 100)
    assert.deepEqual(await bifrost.findTail('log'), { ...open, lsn: 101, last: 100 })
    for (const expectedTail of [1, 2, 99, 100, 102, Number.MAX_SAFE_INTEGER]) {
      const call = bifrost.append('log', 'b', { expectedTail })
      const error = await rejection(call, 'TAIL_MISMATCH')
      assert.equal(error.tail, 101)
      assert.match(error.message, new RegExp(`to be ${expectedTail}, but it is 101`))
    }
    const many = bifrost.appendMany([
      { logId: 'one', payload: 1, expectedTail: 1 },
      { logId: 'log', payload: 'b', expectedTail: 101 },
      { logId: 'log', payload: 'c', expectedTail: 101 },
    ])
    assert.equal((await rejection(many, 'TAIL_MISMATCH')).tail, 101)
    const other = bifrost.appendMany([
      { logId: 'log', payload: 'b' },
      { logId: 'one', payload: 1, expectedTail: 7 },
    ])
    assert.equal((await rejection(other, 'TAIL_MISMATCH')).tail, 1)
  })

  test('seals at an LSN', async (t) => {
    const bifrost = await openAt(t, { log: BASE, one: 1 })
    await bifrost.appendBatch('log', ['a', 'b'])
    const sealed = { sealed: true, reason: 'moved', lsn: 102, last: 101 }
    assert.deepEqual(await bifrost.seal('log', 'moved'), sealed)
    assert.deepEqual(await bifrost.findTail('log'), sealed)
    assert.equal((await rejection(bifrost.append('log', 'c'), 'SEALED')).tail, 102)
    const many = bifrost.appendMany([
      { logId: 'one', payload: 1 },
      { logId: 'log', payload: 'c' },
    ])
    assert.equal((await rejection(many, 'SEALED')).tail, 102)
    assert.equal((await rejection(bifrost.readNextSingle('log', 101), 'SEALED')).tail, 102)
    assert.deepEqual(await all(bifrost, { from: 102 }), [])
    await rejection(bifrost.createReader('log', { from: 103 }).readNext(), 'INVALID_LSN')
  })

  test('trims in LSNs, what came before its first link included', async (t) => {
    const bifrost = await openAt(t, { log: BASE })
    assert.equal(await bifrost.getTrimPoint('log'), 99)
    assert.equal(await bifrost.trim('log', 5), 99)
    await bifrost.appendBatch('log', ['a', 'b', 'c', 'd'])
    assert.equal(await bifrost.trim('log', 99), 99)
    assert.equal(await bifrost.trim('log', 101), 101)
    assert.equal(await bifrost.getTrimPoint('log'), 101)
    assert.equal(await bifrost.trim('log', 3), 101)
    assert.equal(await bifrost.trim('log', 1000), 103)
    assert.equal((await bifrost.findTail('log')).last, undefined)
    assert.equal(await bifrost.append('log', 'e'), 104)
  })

  test('reads in LSNs, and all that is gone is one gap', async (t) => {
    const bifrost = await openAt(t, { log: BASE })
    await bifrost.appendBatch('log', ['a', 'b', 'c', 'd'])
    const data = [
      [100, 'a'],
      [101, 'b'],
      [102, 'c'],
      [103, 'd'],
    ]
    assert.deepEqual(await all(bifrost), [{ kind: 'trim-gap', lsn: 1, until: 99 }, ...data])
    assert.deepEqual(await all(bifrost, { from: 100 }), data)
    assert.deepEqual(await all(bifrost, { after: 100, to: 102 }), data.slice(1, 3))
    assert.deepEqual(await all(bifrost, { last: 2 }), data.slice(2))
    await bifrost.trim('log', 101)
    const gap = { kind: 'trim-gap', lsn: 50, until: 101 }
    assert.deepEqual(await all(bifrost, { from: 50 }), [gap, ...data.slice(2)])
    assert.deepEqual(await all(bifrost, { last: 3 }), [
      { kind: 'trim-gap', lsn: 101, until: 101 },
      ...data.slice(2),
    ])
    assert.deepEqual(await bifrost.readNextSingle('log', 0), {
      kind: 'trim-gap',
      lsn: 1,
      until: 101,
    })
    assert.equal((await bifrost.readNextSingle('log', 101)).lsn, 102)
    assert.equal(await bifrost.readNextSingleOpt('log', 103), undefined)
    const thrower = bifrost.createReader('log', { from: 50, gaps: 'throw' })
    assert.equal((await rejection(thrower.readNext(), 'TRIMMED')).trimPoint, 101)
    assert.equal(thrower.readPointer, 50)
  })

  test('keeps the read pointer in LSNs, and a parked reader wakes', async (t) => {
    const bifrost = await openAt(t, { log: BASE })
    const reader = bifrost.createReader('log', { from: 100 })
    assert.equal(reader.readPointer, 100)
    const parked = reader.readNext()
    await bifrost.append('log', 'a')
    assert.equal((await parked)?.lsn, 100)
    assert.equal(reader.readPointer, 101)
    assert.equal(bifrost.createReader('log', { last: 1 }).readPointer, 100)
    await reader.return()
  })
})

describe('a log at the end of all LSNs', () => {
  const base = MAX_POSITION - 2

  test('uses the last LSN there is, and refuses more instead of rounding', async (t) => {
    const bifrost = await openAt(t, { log: base }, 3)
    assert.equal(await bifrost.appendBatch('log', ['a', 'b']), base)
    await rejection(bifrost.appendBatch('log', ['c', 'd']), 'INVALID_LSN')
    const expectedTail = MAX_POSITION
    assert.equal(await bifrost.append('log', 'c', { expectedTail }), MAX_POSITION)
    await rejection(bifrost.append('log', 'd'), 'INVALID_LSN')
    const { lsn, last } = await bifrost.findTail('log')
    assert.deepEqual([lsn, last], [Number.MAX_SAFE_INTEGER, MAX_POSITION])
    const full = bifrost.append('log', 'd', { expectedTail: lsn })
    await rejection(full, 'INVALID_LSN')
    assert.deepEqual(await all(bifrost, { from: MAX_POSITION }), [[MAX_POSITION, 'c']])
    assert.deepEqual(await all(bifrost, { after: MAX_POSITION }), [])
    assert.deepEqual(await all(bifrost, { last: 1 }), [[MAX_POSITION, 'c']])
    assert.equal(await bifrost.trim('log', Number.MAX_SAFE_INTEGER), MAX_POSITION)
  })

  test('refuses numbers past it', async (t) => {
    const bifrost = await openAt(t, { log: base }, 3)
    const past = Number.MAX_SAFE_INTEGER + 1
    await rejection(bifrost.trim('log', past), 'INVALID_LSN')
    await rejection(bifrost.readNextSingle('log', past), 'INVALID_LSN')
    await rejection(bifrost.readNextSingle('log', Number.MAX_SAFE_INTEGER), 'INVALID_LSN')
    await rejection(bifrost.createReader('log', { from: past }).readNext(), 'INVALID_LSN')
    await rejection(bifrost.append('log', 1, { expectedTail: past }), 'INVALID_OPTION')
  })
})
