/** How far behind the metadata may be: timing by a clock that the test moves. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { describe, test, type TestContext } from 'node:test'
import { decodeMetadata, type Metadata } from '../../codec/metadata.ts'
import { mapSegment } from '../support/corrupt.ts'
import { metadataPath, SMALL } from '../support/recovery-checks.ts'
import { FILLING, segmentAt } from '../support/stores.ts'
import { numbered, TestStore } from '../support/test-store.ts'

function metadataOf(store: TestStore): Metadata {
  const found = decodeMetadata(new Uint8Array(fs.readFileSync(metadataPath(store.dir))))
  assert.ok(found)
  return found
}

/** How often the metadata was written so far. */
function writes(store: TestStore): number {
  return store.faults.trace.filter(
    ({ kind, path }) => kind === 'rename' && path.endsWith('metadata.new'),
  ).length
}

function open(t: TestContext): Promise<TestStore> {
  return TestStore.open(t, { ...SMALL, logs: ['log', 'fill'] })
}

describe('MetadataKeeper', () => {
  test('covers a commit within a second, and not before anybody commits', async (t) => {
    const store = await open(t)
    const before = writes(store)
    store.clock.tick(10_000)
    await store.whenQuiet()
    assert.equal(writes(store), before, 'nothing to cover')
    await store.append('log', 1)
    store.clock.tick(1000)
    await store.whenQuiet()
    assert.equal(writes(store), before + 1)
    const { place, loglets } = metadataOf(store)
    const { end, groups } = mapSegment(segmentAt(store.dir, 1))
    assert.deepEqual([place.segment, place.position], [1, end])
    const last = groups.at(-1)
    assert.deepEqual(
      [place.groupPosition, place.groupNumber, place.groupChecksum],
      [last?.position, last?.header.number, last?.header.checksum],
    )
    assert.deepEqual(loglets[0], { loglet: 1, released: 1, trimPoint: 0, sealed: false })
  })

  test('writes once for many commits, and again for those after it', async (t) => {
    const store = await open(t)
    const before = writes(store)
    for (let round = 1; round <= 3; round++) {
      await store.appendEach('log', numbered(20))
      store.clock.tick(600)
      await store.whenQuiet()
      assert.equal(writes(store), before + round)
      assert.equal(metadataOf(store).loglets[0]?.released, 20 * round)
    }
  })

  test('never makes a commit wait', async (t) => {
    const store = await open(t)
    await store.append('log', 1)
    const hold = store.hold(({ path }) => path.endsWith('metadata.new'))
    store.clock.tick(600)
    await hold.reached
    assert.deepEqual(await Promise.all([2, 3].map((i) => store.append('log', i))), [2, 3])
    hold.release()
  })

  test('covers what was committed while it was being written, with the next one', async (t) => {
    const store = await open(t)
    await store.append('log', 1)
    const hold = store.hold(({ kind, path }) => kind === 'write' && path.endsWith('metadata.new'))
    store.clock.tick(600)
    await hold.reached
    await store.append('log', 2)
    hold.release()
    await store.whenQuiet()
    assert.equal(metadataOf(store).loglets[0]?.released, 1, 'what it was when it was written')
    store.clock.tick(600)
    await store.whenQuiet()
    assert.equal(metadataOf(store).loglets[0]?.released, 2)
  })

  test('is written at a roll, and names the next segment before its first group', async (t) => {
    const store = await open(t)
    assert.equal(metadataOf(store).newestSegment, 2)
    await store.append('fill', FILLING)
    await store.append('log', 'rolls')
    await store.whenQuiet()
    const { place, newestSegment } = metadataOf(store)
    assert.deepEqual([place.segment, newestSegment], [2, 3])
  })

  test('holds trim points, seals and burnt ids as of its place', async (t) => {
    const store = await open(t)
    await store.appendBatch('log', numbered(5))
    await store.trim('log', 3)
    await store.seal('fill')
    await store.close()
    const { clean, loglets, nextLogletId } = metadataOf(store)
    assert.equal(clean, true)
    assert.equal(nextLogletId, 3)
    assert.deepEqual(loglets, [
      { loglet: 1, released: 5, trimPoint: 3, sealed: false },
      { loglet: 2, released: 0, trimPoint: 0, sealed: true },
    ])
  })

  test('is not clean while the store is open', async (t) => {
    const store = await open(t)
    await store.close()
    const again = await TestStore.open(t, { ...SMALL, dir: store.dir })
    assert.equal(metadataOf(again).clean, false)
  })

  test('counts its generations on, and groups name the one that is durable', async (t) => {
    const store = await open(t)
    const first = metadataOf(store).generation
    await store.append('log', 1)
    store.clock.tick(600)
    await store.whenQuiet()
    const second = metadataOf(store).generation
    assert.ok(second > first)
    await store.append('log', 2)
    assert.equal(mapSegment(segmentAt(store.dir, 1)).groups.at(-1)?.header.generation, second)
    await store.close()
    const again = await TestStore.open(t, { ...SMALL, dir: store.dir })
    assert.ok(metadataOf(again).generation > second)
  })

  test('is tried again half a second after it could not be written', async (t) => {
    const store = await open(t)
    await store.append('log', 1)
    const before = writes(store)
    store.faults.fail(({ kind, path }) => kind === 'open' && path.endsWith('metadata.new'), {
      code: 'EMFILE',
    })
    store.clock.tick(500)
    await store.whenQuiet()
    assert.equal(writes(store), before)
    store.clock.tick(500)
    await store.whenQuiet()
    assert.equal(writes(store), before + 1)
  })
})
