/** R2: bytes behind the last whole group that don't check. They are torn: they go, and are counted. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { describe, test } from 'node:test'
import { cutTo, flipBit, mapSegment, putBytes, rewrite, zeroRange } from '../support/corrupt.ts'
import { Random } from '../support/random.ts'
import { requireRecovered } from '../support/recovery-checks.ts'
import { closedStore, killedStore, segmentAt } from '../support/stores.ts'
import { numbered, TestStore } from '../support/test-store.ts'

describe('R2', () => {
  test('noise behind the tail goes', async (t) => {
    const dir = await killedStore(t)
    const path = segmentAt(dir, 1)
    const { end } = mapSegment(path)
    putBytes(path, end, new Random(1).bytes(1000).fill(255, 999))
    const { store, labels, report } = await requireRecovered(t, dir)
    assert.deepEqual(labels, ['R2', 'R9'])
    assert.deepEqual([report.droppedBytes, report.droppedFrames], [1000, 0])
    const finding = report.findings.find(({ label }) => label === 'R2')
    assert.deepEqual([finding?.file, finding?.position], ['0000000001.segment', end])
    assert.deepEqual(await store.payloads('log'), numbered(10))
    const { bifrost_recovery_dropped_bytes_total: dropped } = store.store.metrics()
    assert.equal(dropped, 1000)
  })

  test('noise behind the tail of a store that was closed goes too', async (t) => {
    const dir = await closedStore(t)
    const path = segmentAt(dir, 1)
    putBytes(path, mapSegment(path).end + 100, Uint8Array.of(1))
    const { store, labels, report } = await requireRecovered(t, dir)
    assert.deepEqual(labels, ['R2', 'R9'])
    assert.equal(report.droppedBytes, 101)
    assert.equal(await store.append('log', 'next'), 11)
  })

  test('a torn group whose header is hit goes', async (t) => {
    const dir = await killedStore(t)
    const path = segmentAt(dir, 1)
    const last = mapSegment(path).groups.at(-1)
    assert.ok(last)
    flipBit(path, last.position + 20)
    const torn = last.end - last.position - trailingZeros(path, last.end)
    const { store, labels, report } = await requireRecovered(t, dir)
    assert.deepEqual(labels, ['R2', 'R9'])
    assert.equal(report.droppedBytes, torn)
    assert.deepEqual(await store.payloads('log'), numbered(9))
    assert.equal(await store.append('log', 'takes its offset'), 10)
  })

  test('Last record cut mid-body after a crash: three more are appended, and all are there', async (t) => {
    for (const at of ['in its header', 'in its body'] as const) {
      const dir = await killedStore(t)
      const path = segmentAt(dir, 1)
      const last = mapSegment(path).groups.at(-1)
      assert.ok(last)
      cutTo(path, at === 'in its header' ? last.position + 20 : last.end - 9)
      const { store } = await requireRecovered(t, dir)
      assert.equal(mapSegment(path).end, last.position, 'cut to the last whole group')
      for (const payload of ['a', 'b', 'c']) await store.append('log', payload)
      const left = await store.killed(t)
      const again = await TestStore.open(t, { dir: left })
      assert.deepEqual(await again.payloads('log'), [...numbered(9), 'a', 'b', 'c'])
    }
  })

  test('the cut is synced before anything is appended', async (t) => {
    const dir = await killedStore(t)
    const path = segmentAt(dir, 1)
    cutTo(path, mapSegment(path).end - 9)
    const store = await TestStore.open(t, { dir })
    await store.append('log', 'next')
    const steps = store.faults.trace.filter((entry) => entry.path === path)
    const sync = steps.findIndex(({ kind }) => kind === 'sync')
    const commit = steps.findIndex(({ kind }) => kind === 'commit')
    assert.ok(sync >= 0 && sync < commit, `sync ${sync}, commit ${commit}`)
  })

  test('Last 4 KiB zeroed: past the durable mark they are torn, and reported', async (t) => {
    const dir = await killedStore(t, 0)
    const before = await TestStore.open(t, { dir })
    await before.append('log', 'small')
    await before.append('log', new Uint8Array(9000).fill(7))
    const left = await before.killed(t)
    const path = segmentAt(left, 1)
    const last = mapSegment(path).groups.at(-1)
    assert.ok(last)
    zeroRange(path, last.end - 4096, last.end)
    const { store, report } = await requireRecovered(t, left)
    assert.ok(report.droppedBytes > 4000 && report.droppedBytes <= 9000, `${report.droppedBytes}`)
    assert.equal(report.droppedFrames, 1)
    assert.deepEqual(await store.payloads('log'), ['small'])
  })

  test('Old frames in a recycled file: groups of another segment at the tail are torn bytes', async (t) => {
    const dir = await killedStore(t)
    const other = segmentAt(await killedStore(t), 1)
    const path = segmentAt(dir, 1)
    const { end } = mapSegment(path)
    const donor = new Uint8Array(fs.readFileSync(other))
    putBytes(path, end, donor.slice(mapSegment(other).start, mapSegment(other).end))
    const { store, labels } = await requireRecovered(t, dir)
    assert.deepEqual(labels, ['R2', 'R9'])
    assert.deepEqual(await store.payloads('log'), numbered(10))
  })

  test('Old frames in a recycled file: groups of the same segment at another place are torn bytes', async (t) => {
    const dir = await killedStore(t)
    const path = segmentAt(dir, 1)
    const { start, end } = mapSegment(path)
    rewrite(path, (bytes) => {
      bytes.copyWithin(end, start, end)
      return bytes
    })
    const { store, labels } = await requireRecovered(t, dir)
    assert.deepEqual(labels, ['R2', 'R9'])
    assert.deepEqual(await store.payloads('log'), numbered(10))
  })

  test('a copy of groups inside a payload is never taken for groups', async (t) => {
    const dir = await killedStore(t)
    const path = segmentAt(dir, 1)
    const { start, end } = mapSegment(path)
    const copy = new Uint8Array(fs.readFileSync(path)).slice(start, end)
    const store = await TestStore.open(t, { dir })
    await store.append('log', copy)
    const left = await store.killed(t)
    const tail = mapSegment(segmentAt(left, 1)).groups.at(-1)
    assert.ok(tail)
    flipBit(segmentAt(left, 1), tail.position)
    const { store: again, labels } = await requireRecovered(t, left)
    assert.deepEqual(labels, ['R2', 'R9'])
    assert.deepEqual(await again.payloads('log'), numbered(10))
  })
})

/** How many bytes right before a position are zero: they are not counted as dropped. */
function trailingZeros(path: string, end: number): number {
  const bytes = fs.readFileSync(path)
  let count = 0
  while (bytes[end - 1 - count] === 0) count++
  return count
}
