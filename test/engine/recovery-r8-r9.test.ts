/** R8: a newer version is told from damage, before anything else. R9: whole groups are kept. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { FORMAT_VERSION, METADATA_MAGIC, PREFIX_BYTES, SEGMENT_MAGIC } from '../../codec/format.ts'
import { writePrefix } from '../../codec/prefix.ts'
import { flipBit, mapSegment, putBytes, rewrite } from '../support/corrupt.ts'
import {
  metadataPath,
  requireRecovered,
  requireRefused,
  SMALL,
} from '../support/recovery-checks.ts'
import { killedStore, rollingStore, segmentAt, segmentedStore } from '../support/stores.ts'
import { copyOf, numbered, TestStore } from '../support/test-store.ts'

/** Gives a file the prefix of another version; the rest of it stays. */
function setVersion(path: string, magic: string, version: number): void {
  const prefix = new Uint8Array(PREFIX_BYTES)
  writePrefix(prefix, magic, version)
  putBytes(path, 0, prefix)
}

describe('R8', () => {
  for (const version of [FORMAT_VERSION + 1, 0, 0xffff_ffff]) {
    test(`metadata of version ${version} is UNSUPPORTED_VERSION`, async (t) => {
      const dir = await killedStore(t)
      setVersion(metadataPath(dir), METADATA_MAGIC, version)
      const error = await requireRefused(t, dir, 'UNSUPPORTED_VERSION')
      assert.match(error.message, new RegExp(`R8.*metadata.*version ${version}`))
    })
  }

  for (const [segment, which] of [
    [1, 'the oldest'],
    [3, 'the last'],
    [4, 'one behind the last'],
  ] as const) {
    test(`a segment of a newer version is UNSUPPORTED_VERSION: ${which}`, async (t) => {
      const store = await segmentedStore(t, 3)
      await store.close()
      const dir = await copyOf(t, store.dir)
      setVersion(segmentAt(dir, segment), SEGMENT_MAGIC, FORMAT_VERSION + 1)
      const error = await requireRefused(t, dir, 'UNSUPPORTED_VERSION')
      assert.match(error.message, new RegExp(`000000000${segment}.segment`))
    })
  }

  test('a newer version wins over damage anywhere else', async (t) => {
    const dir = await killedStore(t)
    flipBit(segmentAt(dir, 1), mapSegment(segmentAt(dir, 1)).start + 60)
    setVersion(metadataPath(dir), METADATA_MAGIC, FORMAT_VERSION + 1)
    await requireRefused(t, dir, 'UNSUPPORTED_VERSION')
  })

  test('a newer version wins over everything that this version does not know in the file', async (t) => {
    const dir = await rollingStore(t)
    rewrite(segmentAt(dir, 2), (bytes) => bytes.map((byte) => byte ^ 0xa5))
    setVersion(segmentAt(dir, 2), SEGMENT_MAGIC, FORMAT_VERSION + 1)
    await requireRefused(t, dir, 'UNSUPPORTED_VERSION')
  })

  test('a version in a prefix that is not intact is damage', async (t) => {
    const dir = await killedStore(t)
    flipBit(metadataPath(dir), 8, 1)
    const { report } = await requireRecovered(t, dir)
    assert.equal(report.metadataRebuilt, true)
  })
})

describe('R9', () => {
  test('whole groups that no metadata covers are kept', async (t) => {
    const dir = await killedStore(t, 25)
    const { store, report } = await requireRecovered(t, dir)
    const found = report.findings.find(({ label }) => label === 'R9')
    assert.match(found?.message ?? '', /26 whole groups/)
    assert.deepEqual(await store.payloads('log'), numbered(25))
    assert.deepEqual([report.droppedBytes, report.droppedFrames], [0, 0])
  })

  test('the first group of a segment that no metadata covers is kept', async (t) => {
    const dir = await rollingStore(t)
    const { store, labels } = await requireRecovered(t, dir)
    assert.deepEqual(labels, ['R1', 'R9'])
    assert.deepEqual(await store.payloads('log'), numbered(6))
  })

  test('whole groups of every kind are kept', async (t) => {
    const before = await TestStore.open(t, { ...SMALL, logs: ['a', 'b', 'c'] })
    await before.appendBatch('a', numbered(5))
    await before.trim('a', 2)
    await before.seal('b')
    await before.store.deleteLog('c')
    await before.store.createLogs(['c', 'd'])
    await before.append('c', 'a new incarnation')
    const { store, view } = await requireRecovered(t, await before.killed(t))
    assert.deepEqual(
      view.map(({ logId, tail, trimPoint, isSealed }) => [logId, tail, trimPoint, isSealed]),
      [
        ['a', 6, 2, false],
        ['b', 1, 0, true],
        ['c', 2, 0, false],
        ['d', 1, 0, false],
      ],
    )
    assert.equal(store.cell('b').seal?.reason, undefined)
    const ids = ['a', 'b', 'c', 'd'].map((log) => store.cell(log).facts.id)
    assert.deepEqual(ids, [1, 2, 4, 5], 'the id of what was deleted is not given again')
  })

  test('time does not go back within a log over a recovery', async (t) => {
    const before = await TestStore.open(t, { ...SMALL, logs: ['log'] })
    before.clock.jump(1_000_000)
    await before.append('log', 'from the future')
    const { store, view } = await requireRecovered(t, await before.killed(t))
    await store.append('log', 'the clock was set back')
    const [first] = view[0]?.records ?? []
    const createdAt = store.cell('log').facts.createdAtMs
    assert.ok(BigInt(createdAt) * 1_000_000n >= (first?.[2] ?? 0n))
  })
})
