/** Reading by offset: every record, in order, whatever the index is like, and damage never skipped. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { describe, test, type TestContext } from 'node:test'
import { LogError } from '../../codec/errors.ts'
import { findRecord, flipBit, mapSegment, putBytes, zeroRange } from '../support/corrupt.ts'
import { rejection } from '../support/expect-error.ts'
import { SMALL } from '../support/recovery-checks.ts'
import { Random } from '../support/random.ts'
import { FILLING, segmentAt, segmentedStore } from '../support/stores.ts'
import { copyOf, numbered, TestStore, type TestStoreOptions } from '../support/test-store.ts'

const UNCACHED: TestStoreOptions = { ...SMALL, indexCacheBytes: 0 }

/** A closed store of four segments, ten records of `log` in each. */
async function fourSegments(t: TestContext): Promise<string> {
  const store = await segmentedStore(t, 4)
  await store.close()
  return copyOf(t, store.dir)
}

function indexAt(dir: string, segment: number): string {
  return segmentAt(dir, segment).replace('segment', 'index')
}

describe('SegmentReader.read()', () => {
  test('finds every record from any offset, in stores of many interleaved logs', async (t) => {
    const logs = ['a', 'b', 'c', 'd', 'e']
    const store = await TestStore.open(t, { ...UNCACHED, logs })
    const random = new Random(7)
    const written = new Map<string, string[]>(logs.map((log) => [log, []]))
    for (let i = 0; i < 300; i++) {
      const log = random.pick(logs)
      const payloads = Array.from({ length: random.between(1, 5) }, (_, n) =>
        `${i} ${n}`.repeat(80),
      )
      void written.get(log)?.push(...payloads)
      await store.appendBatch(log, payloads)
    }
    assert.ok(store.store.metrics().bifrost_segments > 3)
    for (const log of logs) {
      const payloads = written.get(log) ?? []
      assert.deepEqual(await store.payloads(log), payloads)
      for (let n = 0; n < 10; n++) {
        const from = random.between(1, payloads.length)
        const { records } = await store.readOnce(log, from, from + 2)
        const expected = payloads.slice(from - 1, from + 2)
        assert.deepEqual(
          records.map(({ payload }) => payload),
          expected.slice(0, records.length),
        )
        assert.ok(records.length > 0 && records[0]?.offset === from)
      }
    }
  })

  test('stops soon after the bytes that were asked for, with at least one record', async (t) => {
    const store = await TestStore.open(t, { ...SMALL, logs: ['log'] })
    await store.appendBatch(
      'log',
      Array.from({ length: 20 }, () => new Uint8Array(1000)),
    )
    const one = await store.readOnce('log', 1, Infinity, 1)
    assert.equal(one.records.length, 1)
    const some = await store.readOnce('log', 1, Infinity, 5000)
    assert.ok(some.records.length >= 4 && some.records.length <= 6, `${some.records.length}`)
    assert.deepEqual(some.outcome, { kind: 'data', next: some.records.length + 1 })
  })

  test('reads little more than it was asked for, also where a log is thin in its segment', async (t) => {
    const store = await TestStore.open(t, { segmentSizeBytes: 1 << 24, logs: ['thin', 'thick'] })
    for (let i = 0; i < 400; i++) {
      await store.append('thin', i)
      await store.append('thick', new Uint8Array(15_000))
    }
    const before = store.faults.trace.length
    const { records } = await store.readOnce('thin', 1, Infinity, 64 * 1024)
    const bytes = store.faults.trace
      .slice(before)
      .filter(({ kind }) => kind === 'read')
      .reduce((sum, { outcome }) => sum + Number(outcome), 0)
    assert.ok(records.length > 0)
    assert.ok(bytes <= 1024 * 1024, `${bytes} bytes were read for ${records.length} records`)
  })

  test('lends bytes that the next read overwrites, and hands out no more than one record', async (t) => {
    const store = await TestStore.open(t, { ...SMALL, logs: ['log'] })
    await store.appendBatch('log', numbered(5))
    const cell = store.cell('log')
    const bodies: Uint8Array[] = []
    const visit = (_: number, bytes: Uint8Array, start: number, end: number): boolean => {
      bodies.push(bytes.slice(start, end))
      return bodies.length < 3
    }
    const outcome = await store.store.read(cell, { from: 1, to: 5, maxBytes: 1e6, visit })
    assert.deepEqual([outcome, bodies.length], [{ kind: 'data', next: 4 }, 3])
    const frame = findRecord(store.dir, 1, 2).frame
    const file = new Uint8Array(fs.readFileSync(segmentAt(store.dir, 1)))
    assert.deepEqual(bodies[1], file.slice(frame.bodyStart, frame.bodyEnd))
  })

  test('rejects with what the visitor throws', async (t) => {
    const store = await TestStore.open(t, { ...SMALL, logs: ['log'] })
    await store.append('log', 1)
    const request = {
      from: 1,
      to: 1,
      maxBytes: 1e6,
      visit: () => {
        throw new Error('the consumer failed')
      },
    }
    await assert.rejects(store.store.read(store.cell('log'), request), (error: Error) => {
      const { message } = error.cause instanceof Error ? error.cause : error
      return message === 'the consumer failed'
    })
  })

  for (const [what, spoil] of [
    ['missing', (path: string) => fs.rmSync(path)],
    ['empty', (path: string) => fs.writeFileSync(path, '')],
    ['damaged', (path: string) => flipBit(path, 50)],
    ['noise', (path: string) => fs.writeFileSync(path, new Random(1).bytes(500))],
  ] as const) {
    test(`builds an index that is ${what} again, and writes it beside the segment`, async (t) => {
      const dir = await fourSegments(t)
      const whole = fs.readFileSync(indexAt(dir, 2))
      for (const segment of [1, 2, 3]) spoil(indexAt(dir, segment))
      const store = await TestStore.open(t, { ...UNCACHED, dir })
      assert.deepEqual(await store.payloads('log'), numbered(40))
      assert.deepEqual(fs.readFileSync(indexAt(dir, 2)), whole)
    })
  }

  test("takes no other segment's index, and no other store's", async (t) => {
    const dir = await fourSegments(t)
    const other = await fourSegments(t)
    fs.copyFileSync(indexAt(dir, 1), indexAt(dir, 2))
    fs.copyFileSync(indexAt(other, 3), indexAt(dir, 3))
    const store = await TestStore.open(t, { ...UNCACHED, dir })
    assert.deepEqual(await store.payloads('log'), numbered(40))
  })

  test('is not misled by an index that a crash left of a segment that was written again', async (t) => {
    const dir = await fourSegments(t)
    fs.copyFileSync(indexAt(dir, 3), indexAt(dir, 4))
    const store = await TestStore.open(t, { ...UNCACHED, dir })
    assert.ok(!fs.existsSync(indexAt(dir, 4)), 'the tail has no index on disk')
    assert.deepEqual(await store.payloads('log'), numbered(40))
  })

  test('does without an index that cannot be written', async (t) => {
    const dir = await fourSegments(t)
    fs.rmSync(indexAt(dir, 1))
    const store = await TestStore.open(t, { ...UNCACHED, dir })
    store.faults.fail(({ path }) => path.endsWith('.index.new'), { code: 'ENOSPC' }, Infinity)
    assert.deepEqual(await store.payloads('log'), numbered(40))
    assert.ok(!fs.existsSync(indexAt(dir, 1)))
  })

  for (const withIndex of [true, false]) {
    const how = withIndex ? 'with' : 'without'
    test(`never gives fewer records and silence over damage, ${how} indexes`, async (t) => {
      const dir = await fourSegments(t)
      const random = new Random(99)
      for (let n = 0; n < 25; n++) {
        const damaged = await copyOf(t, dir)
        const segment = random.between(1, 3)
        const path = segmentAt(damaged, segment)
        const { start, groups } = mapSegment(path)
        const at = random.between(start, (groups.at(-1)?.position ?? 0) - 64)
        const kind = random.below(3)
        if (kind === 0) flipBit(path, at, random.below(8))
        else if (kind === 1) zeroRange(path, at, at + 64)
        else putBytes(path, at, random.bytes(64))
        for (const index of [1, 2, 3]) if (!withIndex) fs.rmSync(indexAt(damaged, index))
        const store = await TestStore.open(t, { ...UNCACHED, dir: damaged })
        await requireHonest(store, `${kind} at ${at} of segment ${segment}`)
        await store.close()
      }
    })
  }

  test('finds what lies behind damage: in the same segment with an index, in later ones always', async (t) => {
    const dir = await fourSegments(t)
    for (const withIndex of [true, false]) {
      const damaged = await copyOf(t, dir)
      if (!withIndex) fs.rmSync(indexAt(damaged, 2))
      const { path, frame } = findRecord(damaged, 1, 15)
      flipBit(path, frame.bodyEnd - 1)
      const store = await TestStore.open(t, { ...UNCACHED, dir: damaged })
      for (const offset of [1, 9, 11, 14, 21, 35, 40]) {
        const { records } = await store.readOnce('log', offset, offset)
        assert.deepEqual(records, [{ offset, payload: `record ${offset}` }])
      }
      const error = await rejection(store.readOnce('log', 15), 'CORRUPT')
      assert.equal(error.file, '0000000002.segment')
      assert.deepEqual([error.logs[0]?.from, error.logs[0]?.to], withIndex ? [15, 15] : [15, 20])
      assert.equal((await store.readOnce('fill', 3)).records.length, 1)
    }
  })

  test('reads what is released while more is being written', async (t) => {
    const store = await TestStore.open(t, { ...UNCACHED, logs: ['log', 'fill'] })
    const writer = (async () => {
      for (let i = 1; i <= 100; i++) {
        await store.append('log', `record ${i}`)
        if (i % 25 === 0) await store.append('fill', FILLING)
      }
    })()
    let seen = 0
    while (seen < 100) {
      const { records, outcome } = await store.readOnce('log', seen + 1)
      for (const { offset, payload } of records) {
        assert.deepEqual([offset, payload], [seen + 1, `record ${seen + 1}`])
        seen++
      }
      if (outcome.kind === 'tail') await new Promise((resolve) => setImmediate(resolve))
    }
    await writer
    assert.equal(seen, 100)
  })
})

/** Each record is read as it was, or refused as CORRUPT by the read that starts at it. */
async function requireHonest(store: TestStore, what: string): Promise<void> {
  for (let offset = 1; offset <= 40;) {
    try {
      const { records, outcome } = await store.readOnce('log', offset)
      assert.equal(outcome.kind, 'data', what)
      assert.ok(records.length > 0, what)
      for (const record of records) {
        assert.deepEqual(record, { offset, payload: `record ${offset}` }, what)
        offset++
      }
    } catch (error) {
      if (!LogError.is(error, 'CORRUPT')) throw error
      const [range] = error.logs
      assert.ok(range?.logId === 'log' && range.from === offset && range.to >= offset, what)
      offset++
    }
  }
}
