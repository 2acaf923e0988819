/** R4: damage below the durable mark is CORRUPT, names what is at stake, and touches not a byte. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { describe, test, type TestContext } from 'node:test'
import type { LogErrorOf } from '../../codec/errors.ts'
import {
  cutTo,
  findRecord,
  flipBit,
  mapSegment,
  putU32,
  segmentFiles,
  zeroRange,
  type GroupOnDisk,
} from '../support/corrupt.ts'
import { rejection } from '../support/expect-error.ts'
import { requireRecovered, requireRefused, SMALL } from '../support/recovery-checks.ts'
import {
  closedStore,
  killedStore,
  rollingStore,
  segmentAt,
  segmentedStore,
} from '../support/stores.ts'
import { copyOf, numbered, TestStore } from '../support/test-store.ts'

const TAIL = '0000000001.segment'

/** The group in which the record with an offset of the only log lies. */
function groupOf(path: string, offset: number): GroupOnDisk {
  const group = mapSegment(path).groups.find(({ frames }) =>
    frames.some((frame) => frame.kind === 1 && frame.offset === offset),
  )
  assert.ok(group)
  return group
}

async function refused(t: TestContext, dir: string): Promise<LogErrorOf<'CORRUPT'>> {
  const error = await requireRefused(t, dir, 'CORRUPT')
  assert.equal(error.label, 'R4')
  return error
}

/** What happens to record 50 of 100: what is hit, and whether the record itself is lost with it. */
const HITS: [string, (path: string, group: GroupOnDisk) => void, lost: boolean][] = [
  ['its payload', (path, { frames }) => flipBit(path, (frames[0]?.bodyEnd ?? 0) - 1), true],
  ['its time', (path, { frames }) => flipBit(path, (frames[0]?.bodyStart ?? 0) + 4), true],
  ['its offset', (path, { frames }) => flipBit(path, (frames[0]?.position ?? 0) + 16), true],
  ['its kind', (path, { frames }) => flipBit(path, (frames[0]?.position ?? 0) + 8), true],
  ['its length', (path, { frames }) => putU32(path, frames[0]?.position ?? 0, 0x00ff_ffff), true],
  ['its length, set to 0', (path, { frames }) => putU32(path, frames[0]?.position ?? 0, 0), true],
  ['its checksum', (path, { frames }) => flipBit(path, (frames[0]?.position ?? 0) + 4), true],
  ["its group's length", (path, { position }) => putU32(path, position + 16, 0x00ff_ffff), false],
  ["its group's number", (path, { position }) => flipBit(path, position + 8), false],
  ["its group's magic", (path, { position }) => flipBit(path, position), false],
  ["its group's checksum", (path, { position }) => flipBit(path, position + 44), false],
  ['all of its group', (path, { position, end }) => zeroRange(path, position, end), true],
  [
    'all of its frame',
    (path, { frames, end }) => zeroRange(path, frames[0]?.position ?? 0, end),
    true,
  ],
]

describe('R4 in the last segment', () => {
  for (const [what, hit, isLost] of HITS) {
    test(`One bit flipped in record 50 of 100: ${what}`, async (t) => {
      const dir = await killedStore(t, 100)
      const path = segmentAt(dir, 1)
      const group = groupOf(path, 50)
      hit(path, group)
      const error = await refused(t, dir)
      assert.deepEqual([error.file, error.position], [TAIL, group.position])
      const logs = isLost ? [{ logId: 'log', from: 50, to: 50 }] : []
      assert.deepEqual(error.logs, logs)
    })
  }

  test('One bit flipped in record 50 of 100: all of one batch', async (t) => {
    const before = await TestStore.open(t, { ...SMALL, logs: ['log'] })
    await before.appendBatch('log', numbered(100))
    await before.append('log', 'after')
    const dir = await before.killed(t)
    const { frame } = findRecord(dir, 1, 50)
    flipBit(segmentAt(dir, 1), frame.bodyEnd - 1)
    const error = await refused(t, dir)
    assert.deepEqual(error.logs, [{ logId: 'log', from: 50, to: 50 }])
  })

  test('A length field set to 0x00ffffff, or to 0, mid-file: nothing is allocated for it', async (t) => {
    for (const length of [0x00ff_ffff, 0, 0xffff_ffff, 0x7fff_ffff]) {
      const dir = await killedStore(t, 20)
      const path = segmentAt(dir, 1)
      putU32(path, groupOf(path, 10).frames[0]?.position ?? 0, length)
      const before = process.memoryUsage().arrayBuffers
      const error = await refused(t, dir)
      assert.ok(process.memoryUsage().arrayBuffers - before < 16 * 1024 * 1024)
      assert.deepEqual(error.logs, [{ logId: 'log', from: 10, to: 10 }])
    }
  })

  test('A middle 4 KiB zeroed: every record in it is named', async (t) => {
    const dir = await killedStore(t, 200)
    const path = segmentAt(dir, 1)
    const from = groupOf(path, 60).position
    const lost = mapSegment(path).groups.filter(
      ({ position, end }) => end > from && position < from + 4096,
    )
    zeroRange(path, from, from + 4096)
    const { logs, position } = await refused(t, dir)
    assert.equal(position, from)
    const offsets = lost.flatMap(({ frames }) => frames.map(({ offset }) => offset))
    const named = logs.flatMap(({ from: first, to }) =>
      Array.from({ length: to - first + 1 }, (_, i) => first + i),
    )
    const surely = offsets.filter((offset) => offset !== offsets.at(-1))
    for (const offset of surely) assert.ok(named.includes(offset), `${offset} is named`)
    for (const offset of named) assert.ok(offsets.includes(offset), `${offset} is lost`)
  })

  test('The same cut after a clean close: what was released is named', async (t) => {
    const dir = await closedStore(t)
    const path = segmentAt(dir, 1)
    const last = mapSegment(path).groups.at(-1)
    assert.ok(last)
    cutTo(path, last.end - 9)
    const { logs, position } = await refused(t, dir)
    assert.equal(position, last.position)
    assert.deepEqual(logs, [{ logId: 'log', from: 10, to: 10 }])
  })

  test('Last 4 KiB zeroed: below the durable mark it is CORRUPT', async (t) => {
    const dir = await closedStore(t, 100)
    const path = segmentAt(dir, 1)
    const { end } = mapSegment(path)
    zeroRange(path, end - 4096, end)
    const { logs } = await refused(t, dir)
    assert.equal(logs.length, 1)
    assert.equal(logs[0]?.to, 100)
  })

  test('the end of the file is below the durable mark', async (t) => {
    const dir = await closedStore(t)
    const path = segmentAt(dir, 1)
    cutTo(path, groupOf(path, 4).position)
    const { logs, position } = await refused(t, dir)
    assert.equal(position, groupOf(path, 3).end)
    assert.deepEqual(logs, [{ logId: 'log', from: 4, to: 10 }])
  })

  test('zeros to the end of the file are below the durable mark', async (t) => {
    const dir = await closedStore(t)
    const path = segmentAt(dir, 1)
    zeroRange(path, groupOf(path, 4).position, mapSegment(path).size)
    assert.deepEqual((await refused(t, dir)).logs, [{ logId: 'log', from: 4, to: 10 }])
  })

  test('a later group witnesses it, without any metadata', async (t) => {
    const dir = await killedStore(t)
    fs.rmSync(`${dir}/metadata`)
    const path = segmentAt(dir, 1)
    flipBit(path, (groupOf(path, 9).frames[0]?.bodyEnd ?? 0) - 1)
    assert.deepEqual((await refused(t, dir)).logs, [{ logId: 'log', from: 9, to: 9 }])
  })

  test('the header of the next segment witnesses it, without any metadata', async (t) => {
    const dir = await rollingStore(t)
    fs.rmSync(`${dir}/metadata`)
    flipBit(segmentAt(dir, 2), mapSegment(segmentAt(dir, 2)).end - 20)
    flipBit(segmentAt(dir, 1), mapSegment(segmentAt(dir, 1)).end - 100)
    const { file, logs } = await refused(t, dir)
    assert.equal(file, TAIL)
    assert.deepEqual(logs, [
      { logId: 'log', from: 6, to: 6 },
      { logId: 'fill', from: 1, to: 1 },
    ])
  })

  test('the second group of a segment witnesses the first, without any metadata', async (t) => {
    for (const hit of ['header', 'snapshot', 'group'] as const) {
      const before = await TestStore.open(t, { ...SMALL, dir: await rollingStore(t) })
      await before.append('log', 'the second group of segment 2')
      const dir = await before.killed(t)
      fs.rmSync(`${dir}/metadata`)
      const path = segmentAt(dir, 2)
      const { start, groups } = mapSegment(path)
      const group = groups[0]?.frames[1]?.bodyStart ?? 0
      flipBit(path, { header: 40, snapshot: start - 9, group }[hit])
      const { file, position, logs } = await refused(t, dir)
      assert.deepEqual([file, position], ['0000000002.segment', 0])
      if (hit === 'group') assert.deepEqual(logs, [{ logId: 'log', from: 5, to: 5 }])
    }
  })

  test('a later group witnesses it also when that is torn itself', async (t) => {
    const dir = await killedStore(t)
    const path = segmentAt(dir, 1)
    flipBit(path, (groupOf(path, 9).frames[0]?.bodyEnd ?? 0) - 1)
    flipBit(path, fs.readFileSync(path).lastIndexOf('record 10'))
    const { logs } = await refused(t, dir)
    assert.deepEqual(logs, [{ logId: 'log', from: 9, to: 10 }])
  })

  test('several logs are named, each with its own LSNs', async (t) => {
    const before = await TestStore.open(t, { ...SMALL, logs: ['a', 'b', 'c'] })
    await before.appendMany([
      ['a', 1],
      ['b', 1],
      ['c', 1],
    ])
    await before.appendMany([
      ['a', 2],
      ['b', 2],
      ['a', 3],
    ])
    await before.close()
    const dir = await copyOf(t, before.dir)
    const path = segmentAt(dir, 1)
    const group = mapSegment(path).groups.at(-1)
    assert.equal(group?.frames.length, 3)
    zeroRange(path, group.position, group.end)
    const { logs } = await refused(t, dir)
    assert.deepEqual(logs, [
      { logId: 'a', from: 2, to: 3 },
      { logId: 'b', from: 2, to: 2 },
    ])
  })

  test('header and snapshot of the first segment are below it', async (t) => {
    for (const at of [3, 20, 50, 90]) {
      const dir = await closedStore(t)
      flipBit(segmentAt(dir, 1), at)
      const { file, logs } = await refused(t, dir)
      assert.equal(file, TAIL)
      assert.deepEqual(logs, [])
    }
  })

  test('all of the only segment is zeros', async (t) => {
    const dir = await closedStore(t)
    zeroRange(segmentAt(dir, 1), 0, mapSegment(segmentAt(dir, 1)).size)
    const { file } = await refused(t, dir)
    assert.equal(file, TAIL)
  })
})

describe('R4 in the segments before the last', () => {
  test('Damage in segment 1 of 3: the read that meets it is CORRUPT, and names the LSN', async (t) => {
    const before = await segmentedStore(t, 3)
    await before.close()
    const dir = await copyOf(t, before.dir)
    const { path, file, frame } = findRecord(dir, 1, 5)
    flipBit(path, frame.bodyEnd - 1)
    const store = await TestStore.open(t, { ...SMALL, dir })
    const error = await rejection(store.read('log'), 'CORRUPT')
    assert.deepEqual([error.label, error.file, error.position], ['R4', file, frame.position])
    assert.deepEqual(error.logs, [{ logId: 'log', from: 5, to: 5 }])
    const { records } = await store.readOnce('log', 1)
    assert.deepEqual(
      records.map(({ offset }) => offset),
      [1, 2, 3, 4],
      'what is before it',
    )
    assert.deepEqual(await store.payloads('log', 6), numbered(25, 6), 'and all that is behind it')
    assert.deepEqual(segmentFiles(dir).length, 3, 'no segment is deleted')
    assert.equal(await store.append('log', 'goes on'), 31)
  })

  test('One bit flipped in record 50 of 100: an older segment, wherever in the record it is', async (t) => {
    const before = await TestStore.open(t, { ...SMALL, logs: ['log', 'fill'] })
    await before.appendEach('log', numbered(100))
    await before.append('fill', new Uint8Array(66 * 1024))
    await before.append('fill', 'in segment 2')
    await before.close()
    const { frame } = findRecord(before.dir, 1, 50)
    for (let at = frame.position; at < frame.bodyEnd; at += 5) {
      const dir = await copyOf(t, before.dir)
      flipBit(segmentAt(dir, 1), at, at % 8)
      const store = await TestStore.open(t, { ...SMALL, dir })
      const seen = await store.readOnce('log', 1)
      assert.deepEqual(
        seen.records.map(({ payload }) => payload),
        numbered(49),
        `byte ${at}`,
      )
      const error = await rejection(store.readOnce('log', 50), 'CORRUPT')
      assert.deepEqual(error.logs, [{ logId: 'log', from: 50, to: 50 }])
      assert.deepEqual(await store.payloads('log', 51), numbered(50, 51))
    }
  })

  test('A length field set to 0x00ffffff, or to 0, mid-file: in an older segment too', async (t) => {
    for (const length of [0x00ff_ffff, 0, 0xffff_ffff]) {
      for (const withIndex of [true, false]) {
        const before = await segmentedStore(t, 2)
        await before.close()
        const dir = await copyOf(t, before.dir)
        if (!withIndex) fs.rmSync(`${dir}/0000000001.index`)
        const { path, frame } = findRecord(dir, 1, 5)
        putU32(path, frame.position, length)
        const store = await TestStore.open(t, { ...SMALL, dir })
        const error = await rejection(store.read('log'), 'CORRUPT')
        assert.equal(error.logs[0]?.logId, 'log')
        assert.equal(error.logs[0].from, 5)
        if (withIndex) assert.deepEqual(await store.payloads('log', 6), numbered(15, 6))
        else assert.deepEqual(await store.payloads('log', 11), numbered(10, 11))
      }
    }
  })

  const untouched: [string, (path: string) => void, string][] = [
    ['its header', (path) => flipBit(path, 40), '0000000001.segment'],
    ['its end', (path) => cutTo(path, mapSegment(path).end - 1), '0000000001.segment'],
    [
      'the header of its last group',
      (path) => flipBit(path, (mapSegment(path).groups.at(-1)?.position ?? 0) + 9),
      '0000000001.segment',
    ],
    ['everything', (path) => cutTo(path, 0), '0000000001.segment'],
  ]
  for (const [what, hit, file] of untouched) {
    test(`Damage in segment 1 of 3: ${what} is missed at open`, async (t) => {
      const before = await segmentedStore(t, 3)
      await before.close()
      const dir = await copyOf(t, before.dir)
      hit(segmentAt(dir, 1))
      const error = await refused(t, dir)
      assert.equal(error.file, file)
      assert.deepEqual(
        error.logs.find(({ logId }) => logId === 'log'),
        {
          logId: 'log',
          from: 1,
          to: 10,
        },
      )
    })
  }

  test('a header that is damaged while the store is open is CORRUPT, not a failed read', async (t) => {
    const store = await segmentedStore(t, 3)
    await store.close()
    const again = await TestStore.open(t, { ...SMALL, dir: store.dir, indexCacheBytes: 0 })
    flipBit(segmentAt(store.dir, 2), 50)
    const error = await rejection(again.readOnce('log', 1), 'CORRUPT')
    assert.deepEqual([error.file, error.position, error.label], ['0000000002.segment', 0, 'R4'])
  })

  test('the last whole group before the mark is enough to go on', async (t) => {
    const dir = await killedStore(t, 3)
    const { store } = await requireRecovered(t, dir)
    assert.deepEqual(await store.payloads('log'), numbered(3))
  })
})
