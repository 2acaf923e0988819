/** Where a segment's records are: runs as they grow, packed, and on disk, and never the wrong ones. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { writeU32 } from '../../codec/bytes.ts'
import { checksum } from '../../codec/checksum.ts'
import {
  decodeIndex,
  encodeIndex,
  readIndexFile,
  writeIndexFile,
  type IndexBinding,
} from '../../engine/index-file.ts'
import {
  findRun,
  GrowingIndex,
  MAX_RUN_BYTES,
  PackedIndex,
  type LogletRuns,
} from '../../engine/segment-index.ts'
import { eachCut, eachFlip } from '../support/codec-arbitraries.ts'
import { SimDisk } from '../support/sim-disk.ts'

const BINDING: IndexBinding = { seed: 0x1234, last: { number: 9, checksum: 0xdead_beef } }

/** One record in a segment. */
interface Placed {
  readonly loglet: number
  readonly offset: number
  readonly position: number
  readonly end: number
}

/** Records of some loglets one behind the other, with gaps where other frames are. */
const placed: fc.Arbitrary<Placed[]> = fc
  .array(
    fc.record({
      loglet: fc.integer({ min: 1, max: 5 }),
      size: fc.oneof(fc.integer({ min: 24, max: 500 }), fc.integer({ min: 24, max: 50_000 })),
      gap: fc.constantFrom(0, 0, 0, 48, 5000),
    }),
    { maxLength: 80 },
  )
  .map((sizes) => {
    const tails = new Map<number, number>()
    let at = 96
    return sizes.map(({ loglet, size, gap }) => {
      const offset = tails.get(loglet) ?? loglet * 1000
      tails.set(loglet, offset + 1)
      const position = at + gap
      at = position + size
      return { loglet, offset, position, end: at }
    })
  })

function indexOf(records: readonly Placed[]): GrowingIndex {
  const index = new GrowingIndex()
  for (const { loglet, offset, position, end } of records)
    index.add(loglet, offset, 1, position, end)
  return index
}

/** The loglets of some records, with the tails that they have after those. */
function logletsOf(records: readonly Placed[]): { id: number; tail: number }[] {
  const tails = new Map<number, number>()
  for (const { loglet, offset } of records) tails.set(loglet, offset + 1)
  return [...tails].map(([id, tail]) => ({ id, tail }))
}

/** That every record is in the run that is found for it, and no run is too long. */
function requireAll(
  records: readonly Placed[],
  find: (loglet: number) => LogletRuns | undefined,
): void {
  for (const { loglet, offset, position, end } of records) {
    const runs = find(loglet)
    assert.ok(runs && runs.startTail <= offset && offset < runs.endTail)
    const run = runs.run(findRun(runs, offset))
    assert.ok(run.first <= offset && run.position <= position && end <= run.end)
    assert.ok(run.end - run.position <= Math.max(MAX_RUN_BYTES, end - position))
  }
}

describe('GrowingIndex and PackedIndex', () => {
  test('find the run of every record, before and after packing', () => {
    fc.assert(
      fc.property(placed, (records) => {
        const growing = indexOf(records)
        requireAll(records, (loglet) => growing.find(loglet))
        const packed = PackedIndex.over(growing.pack(logletsOf(records)))
        assert.ok(packed)
        requireAll(records, (loglet) => packed.find(loglet))
        for (const loglet of [0, 6, 1000]) assert.equal(packed.find(loglet), undefined)
      }),
    )
  })

  test('join records that lie next to each other, and no others', () => {
    const index = new GrowingIndex()
    index.add(1, 5, 3, 100, 200)
    index.add(1, 8, 1, 200, 250)
    index.add(1, 9, 1, 300, 350)
    const runs = index.find(1)
    assert.deepEqual([runs?.count, runs?.startTail, runs?.endTail], [2, 5, 10])
    assert.ok(runs)
    assert.deepEqual(runs.run(0), { first: 5, position: 100, end: 250 })
    assert.deepEqual(runs.run(1), { first: 9, position: 300, end: 350 })
  })

  test('list loglets without a record, so that a search sees where they stood', () => {
    const packed = PackedIndex.over(new GrowingIndex().pack([{ id: 7, tail: 2 ** 40 }]))
    const runs = packed?.find(7)
    assert.deepEqual([runs?.count, runs?.startTail, runs?.endTail], [0, 2 ** 40, 2 ** 40])
  })

  test('refuse a record out of order: that is our own bug', () => {
    const index = new GrowingIndex()
    index.add(1, 5, 1, 0, 10)
    assert.throws(() => index.add(1, 7, 1, 10, 20), { name: 'AssertionError' })
  })

  test('over() refuses words that are not shaped like an index', () => {
    const { loglets, words } = indexOf([{ loglet: 1, offset: 1, position: 0, end: 9 }]).pack([
      { id: 1, tail: 2 },
    ])
    assert.ok(PackedIndex.over({ loglets, words }))
    assert.equal(PackedIndex.over({ loglets: 2, words }), undefined)
    assert.equal(PackedIndex.over({ loglets, words: words.slice(0, -1) }), undefined)
    const far = words.slice()
    far[1] = 0xffff_ffff
    assert.equal(PackedIndex.over({ loglets, words: far }), undefined)
  })
})

describe('encodeIndex() and decodeIndex()', () => {
  const records = [
    { loglet: 1, offset: 1, position: 100, end: 200 },
    { loglet: 3, offset: 2 ** 40, position: 200, end: 300 },
  ]
  const file = encodeIndex(indexOf(records).pack(logletsOf(records)), BINDING)

  test('bring all runs back', () => {
    const index = decodeIndex(file, BINDING)
    assert.ok(index)
    requireAll(records, (loglet) => index.find(loglet))
  })

  test('bind an index to store, segment and last group', () => {
    const { seed, last } = BINDING
    for (const other of [
      { seed: seed + 1, last },
      { seed, last: { ...last, number: 10 } },
      { seed, last: { ...last, checksum: 1 } },
    ]) {
      assert.equal(decodeIndex(file, other), undefined)
    }
  })

  test('notice a flip in any byte, but for the four that nothing is in', () => {
    eachFlip(file, (flipped, at) => {
      const isSpare = at >= 36 && at < 40
      if (!isSpare) assert.equal(decodeIndex(flipped, BINDING), undefined, `byte ${at}`)
    })
  })

  test('notice a cut at any length, and never throw for other bytes', () => {
    eachCut(file, (cut) => assert.equal(decodeIndex(cut, BINDING), undefined))
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        assert.equal(decodeIndex(bytes, BINDING), undefined)
      }),
    )
  })

  test('never throw for an index whose checksum fits, whatever its fields are', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 80, maxLength: 80 }), (bytes) => {
        bytes.set(file.subarray(0, 12))
        const seed = checksum(bytes, 0, 32, 0)
        writeU32(bytes, 32, checksum(bytes, 40, bytes.length, seed))
        decodeIndex(bytes, BINDING)
      }),
    )
  })
})

describe('writeIndexFile() and readIndexFile()', () => {
  test('replace an index as a whole, and find nothing where there is none', async () => {
    const disk = new SimDisk({ seed: 1 })
    disk.makeDirectory('/d')
    const { fileSystem } = disk
    const read = (): Promise<PackedIndex | undefined> =>
      disk.run(readIndexFile(fileSystem, '/d', 1, BINDING))
    assert.equal(await read(), undefined)
    const records = [{ loglet: 1, offset: 1, position: 100, end: 200 }]
    const bytes = encodeIndex(indexOf(records).pack(logletsOf(records)), BINDING)
    disk.writeFile('/d/0000000001.index.new', new Uint8Array(10))
    await disk.run(writeIndexFile(fileSystem, '/d', 1, bytes))
    assert.deepEqual([...disk.contents().keys()], ['/d/0000000001.index'])
    assert.equal((await read())?.find(1)?.count, 1)
  })
})
