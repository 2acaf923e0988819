/** R3: a group that is not whole goes as a whole, so that every batch is all or none. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { cutTo, flipBit, mapSegment, zeroRange } from '../support/corrupt.ts'
import { requireRecovered, SMALL } from '../support/recovery-checks.ts'
import { killedStore, rollingStore, segmentAt } from '../support/stores.ts'
import { copyOf, numbered, TestStore } from '../support/test-store.ts'

describe('R3', () => {
  test('Batch of 5 cut after 3: none of the 5', async (t) => {
    const before = await TestStore.open(t, { ...SMALL, logs: ['log'] })
    await before.append('log', 'before')
    await before.appendBatch('log', numbered(5))
    const dir = await before.killed(t)
    const path = segmentAt(dir, 1)
    const batch = mapSegment(path).groups.at(-1)
    assert.equal(batch?.frames.length, 5)
    cutTo(path, batch.frames[3]?.position ?? 0)
    const { store, labels, report } = await requireRecovered(t, dir)
    assert.deepEqual(labels, ['R3', 'R9'])
    assert.equal(report.droppedFrames, 5)
    assert.deepEqual(await store.payloads('log'), ['before'])
    assert.equal(await store.appendBatch('log', numbered(5)), 2)
  })

  test('A group of 5 callers with one sector lost: none of the 5, whichever sector it is', async (t) => {
    const before = await TestStore.open(t, { ...SMALL, logs: ['log'] })
    await before.append('log', 'before')
    await Promise.all(
      numbered(5).map((_, i) => before.append('log', new Uint8Array(400).fill(i + 1))),
    )
    const left = await before.killed(t)
    const group = mapSegment(segmentAt(left, 1)).groups.at(-1)
    assert.equal(group?.frames.length, 5, 'they shared a group')
    const first = group.position - (group.position % 512)
    for (let sector = first + 512; sector < group.end; sector += 512) {
      const dir = await copyOf(t, left)
      zeroRange(segmentAt(dir, 1), sector, Math.min(sector + 512, group.end))
      const store = await TestStore.open(t, { dir })
      assert.deepEqual(await store.payloads('log'), ['before'], `sector ${sector}`)
      assert.equal(store.store.recovery.droppedFrames, 5)
    }
  })

  test('one bit of one frame is flipped in the last group: all of it goes', async (t) => {
    const before = await TestStore.open(t, { ...SMALL, logs: ['a', 'b'] })
    await before.appendMany([
      ['a', 1],
      ['b', 2],
      ['a', 3],
    ])
    await before.appendMany([
      ['a', 4],
      ['b', 5],
      ['a', 6],
    ])
    const dir = await before.killed(t)
    const last = mapSegment(segmentAt(dir, 1)).groups.at(-1)
    flipBit(segmentAt(dir, 1), last?.frames[1]?.bodyStart ?? 0)
    const { store, labels, report } = await requireRecovered(t, dir)
    assert.deepEqual(labels, ['R3', 'R9'])
    assert.equal(report.droppedFrames, 3)
    assert.deepEqual(await store.payloads('a'), [1, 3])
    assert.deepEqual(await store.payloads('b'), [2])
  })

  test('a trim, a seal, a create and a delete in a torn group did not happen', async (t) => {
    const before = await TestStore.open(t, { ...SMALL, logs: ['a', 'b', 'c'] })
    await before.appendBatch('a', numbered(3))
    await Promise.all([
      before.trim('a', 2),
      before.seal('b', 'moved'),
      before.store.createLogs(['d']),
      before.store.deleteLog('c'),
    ])
    const dir = await before.killed(t)
    const last = mapSegment(segmentAt(dir, 1)).groups.at(-1)
    assert.equal(last?.frames.length, 4)
    flipBit(segmentAt(dir, 1), last.frames[0]?.position ?? 0)
    const { store, view } = await requireRecovered(t, dir)
    assert.deepEqual(
      view.map(({ logId }) => logId),
      ['a', 'b', 'c'],
    )
    assert.deepEqual(
      view.map(({ isSealed }) => isSealed),
      [false, false, false],
    )
    assert.deepEqual(await store.payloads('a'), numbered(3))
  })

  test('a loglet id that a torn group gave is given again, and that is no second use', async (t) => {
    const dir = await killedStore(t, 2)
    const before = await TestStore.open(t, { ...SMALL, dir })
    await before.store.createLogs(['torn'])
    const left = await before.killed(t)
    const last = mapSegment(segmentAt(left, 1)).groups.at(-1)
    flipBit(segmentAt(left, 1), last?.frames[0]?.bodyStart ?? 0)
    const { store, view } = await requireRecovered(t, left)
    assert.deepEqual(
      view.map(({ logId }) => logId),
      ['log'],
    )
    await store.store.createLogs(['another'])
    await store.append('another', 'record')
    assert.deepEqual(await store.payloads('another'), ['record'])
  })

  const torn: [string, (path: string) => void][] = [
    ['its prefix', (path) => flipBit(path, 3)],
    ['its header', (path) => flipBit(path, 50)],
    ['its snapshot', (path) => flipBit(path, 100)],
    ['all of its header', (path) => zeroRange(path, 0, 88)],
    ['the header of its group', (path) => flipBit(path, mapSegment(path).start + 8)],
    ['a frame of its group', (path) => flipBit(path, mapSegment(path).end - 20)],
    ['the end of its group', (path) => cutTo(path, mapSegment(path).end - 20)],
  ]
  for (const [what, tear] of torn) {
    test(`the first group of a segment without ${what} goes with header and snapshot`, async (t) => {
      const dir = await rollingStore(t)
      tear(segmentAt(dir, 2))
      const { store, report } = await requireRecovered(t, dir)
      assert.ok(report.droppedBytes > 0)
      assert.ok(report.findings.some(({ label }) => label === 'R5' || label === 'R3'))
      assert.deepEqual(await store.payloads('log'), numbered(3))
      assert.equal(await store.appendBatch('log', numbered(3, 4)), 4)
      assert.deepEqual(await store.payloads('log'), numbered(6))
    })
  }
})
