/** Which groups are whole, and what the rest of a segment can still witness. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { FRAME_KIND, PATCHED_GROUP_MAGIC } from '../../codec/format.ts'
import {
  eachFrame,
  examineRest,
  GroupScanner,
  type Rest,
  type ScannedGroup,
} from '../../engine/group-scanner.ts'
import type { ReadableFile } from '../../engine/io.ts'
import { Random } from '../support/random.ts'
import { change, readable, record, SegmentBytes } from '../support/segment-bytes.ts'

const FIRST = { number: 0, checksum: 0 }

/** A segment with so many groups of one record each. */
function segmentOf(groups: number): SegmentBytes {
  const segment = new SegmentBytes()
  for (let i = 1; i <= groups; i++) segment.add([record(1, i, `record ${i}`)])
  return segment
}

async function scan(
  segment: SegmentBytes,
  file: ReadableFile = readable(segment.bytes),
  size = segment.bytes.length,
): Promise<{ readonly numbers: number[]; readonly scanner: GroupScanner }> {
  const scanner = new GroupScanner(file, segment.seed, segment.start, FIRST)
  const numbers: number[] = []
  await scanner.scan(size, ({ header }) => {
    numbers.push(header.number)
    return true
  })
  return { numbers, scanner }
}

function rest(segment: SegmentBytes, from: number, size = segment.bytes.length): Promise<Rest> {
  return examineRest(readable(segment.bytes), segment.seed, from, size)
}

describe('GroupScanner.scan()', () => {
  test('visits whole groups in order, and stops at the end of the file', async () => {
    const segment = segmentOf(20)
    const { numbers, scanner } = await scan(segment)
    assert.deepEqual(
      numbers,
      Array.from({ length: 20 }, (_, i) => i + 1),
    )
    const { end, groupPosition, groupNumber: number, groupChecksum: checksum } = segment.end
    assert.equal(scanner.position, end)
    assert.equal(scanner.groupPosition, groupPosition)
    assert.deepEqual(scanner.last, { number, checksum })
  })

  test('stops before zeros, noise, and a cut group', async () => {
    const { end } = segmentOf(3).end
    for (const more of [new Uint8Array(100), new Random(1).bytes(100)]) {
      const { numbers, scanner } = await scan(segmentOf(3).append(more))
      assert.deepEqual([numbers, scanner.position], [[1, 2, 3], end])
    }
    const segment = segmentOf(4)
    for (let size = end; size < segment.bytes.length; size += 7) {
      const { numbers } = await scan(segment, readable(segment.bytes), size)
      assert.deepEqual(numbers, [1, 2, 3], `${size} bytes`)
    }
  })

  test('stops before a group that does not follow: by number, or by checksum', async () => {
    const before = segmentOf(2).end
    for (const wrong of [{ number: 4 }, { number: 2 }, { previous: before.groupChecksum ^ 1 }]) {
      const segment = segmentOf(2).add([record(1, 3, 'x')], wrong)
      const { numbers, scanner } = await scan(segment)
      assert.deepEqual([numbers, scanner.position], [[1, 2], before.end])
    }
  })

  test('stops before the group that the visitor refuses, which does not count', async () => {
    const segment = segmentOf(5)
    const scanner = new GroupScanner(readable(segment.bytes), segment.seed, segment.start, FIRST)
    await scanner.scan(segment.bytes.length, ({ header }) => header.number < 3)
    assert.equal(scanner.last.number, 2)
    await scanner.scan(segment.bytes.length, () => true)
    assert.equal(scanner.last.number, 5, 'and goes on from there')
  })

  test('reads groups larger than its window, and few bytes at a time', async () => {
    const segment = new SegmentBytes()
    segment.add([record(1, 1, new Uint8Array(3 << 20).fill(1))]).add([record(1, 2, 'small')])
    const { numbers } = await scan(segment)
    assert.deepEqual(numbers, [1, 2])
    const few = segmentOf(5)
    assert.deepEqual((await scan(few, readable(few.bytes, 13))).numbers, [1, 2, 3, 4, 5])
  })

  test('stops where a file is shorter than it was said to be', async () => {
    const segment = segmentOf(5)
    const { end } = segmentOf(3).end
    const file = readable(segment.bytes.slice(0, end + 20))
    assert.deepEqual((await scan(segment, file)).numbers, [1, 2, 3])
  })

  test('passes the errors of the file on', async () => {
    const segment = segmentOf(1)
    const failing = { read: () => Promise.reject(new Error('EIO')) }
    await assert.rejects(scan(segment, failing), /EIO/)
  })

  test('goes on behind what a repair made as its fillers say', async () => {
    const segment = segmentOf(1)
    const filler = { kind: FRAME_KIND.filler, loglet: 0xabcd, offset: 7, body: Uint8Array.of(0xc0) }
    segment.add([filler], { magic: PATCHED_GROUP_MAGIC })
    segment.add([record(1, 9, 'behind the hole')], { number: 8, previous: 0xabcd })
    assert.deepEqual((await scan(segment)).numbers, [1, 2, 8])
  })
})

describe('eachFrame()', () => {
  async function firstGroup(segment: SegmentBytes): Promise<ScannedGroup> {
    let found: ScannedGroup | undefined
    const scanner = new GroupScanner(readable(segment.bytes), segment.seed, segment.start, FIRST)
    await scanner.scan(segment.bytes.length, (group) => {
      found ??= group
      return true
    })
    assert.ok(found)
    return found
  }

  test('visits each frame with its position', async () => {
    const segment = new SegmentBytes()
    segment.add([record(1, 1, 'a'), change(FRAME_KIND.trim, 1, 1), record(2, 1, 'b')])
    const seen: [number, number][] = []
    const group = await firstGroup(segment)
    assert.ok(
      eachFrame(group, ({ kind, bodyStart }, position) => {
        assert.equal(position - segment.start, bodyStart - group.at - 24)
        seen.push([kind, position])
        return true
      }),
    )
    assert.deepEqual(
      seen.map(([kind]) => kind),
      [1, 2, 1],
    )
  })

  test('is false where the visitor stops, and where frames do not fill the group', async () => {
    const group = await firstGroup(new SegmentBytes().add([record(1, 1, 'a'), record(1, 2, 'b')]))
    assert.equal(
      eachFrame(group, () => false),
      false,
    )
    const fewer = { ...group, header: { ...group.header, frames: 1 } }
    assert.equal(
      eachFrame(fewer, () => true),
      false,
    )
    const more = { ...group, header: { ...group.header, frames: 3 } }
    assert.equal(
      eachFrame(more, () => true),
      false,
    )
  })
})

describe('examineRest()', () => {
  test('sees only zeros where there are only zeros, or nothing', async () => {
    const segment = segmentOf(1).append(new Uint8Array(3 << 20))
    const { isZero, bytes, frames, header, durable } = await rest(segment, segment.end.end)
    assert.deepEqual([isZero, bytes, frames, header, durable], [true, 0, 0, undefined, undefined])
    assert.equal((await rest(segmentOf(1), segmentOf(1).end.end)).isZero, true)
  })

  test('counts up to the last byte that is not zero', async () => {
    const segment = segmentOf(1).append(new Uint8Array(1 << 21))
    const { end } = segment.end
    for (const at of [0, 1, 4095, 1 << 20, (1 << 21) - 1]) {
      segment.bytes.fill(0, end)
      segment.bytes[end + at] = 1
      const { isZero, bytes } = await rest(segment, end)
      assert.deepEqual([isZero, bytes], [false, at + 1])
    }
  })

  test('finds the witness of a group whose frames are gone', async () => {
    const durable = { segment: 1, position: 4000 }
    const segment = segmentOf(1).add([record(1, 2, 'x'), record(1, 3, 'y')], {
      durable,
      generation: 9,
    })
    const { end } = segmentOf(1).end
    segment.bytes.fill(0, end + 48)
    const found = await rest(segment, end)
    assert.deepEqual([found.durable, found.generation, found.frames], [durable, 9, 2])
    assert.equal(found.header?.number, 2)
  })

  test('finds the furthest witness anywhere behind the first bad byte', async () => {
    for (const gap of [8, 4096, (1 << 20) - 48, (1 << 20) - 40, 1 << 20, 3 << 20]) {
      const segment = segmentOf(1).append(new Uint8Array(gap).fill(1, 0, 5))
      const from = segmentOf(1).end.end
      const far = { segment: 1, position: segment.bytes.length }
      segment.add([record(1, 2, 'far')], { number: 9, durable: far })
      segment.add([record(1, 3, 'near')], { number: 10, durable: { segment: 1, position: 8 } })
      const found = await rest(segment, from)
      assert.deepEqual(found.durable, far, `a gap of ${gap}`)
      assert.equal(found.frames, 2)
      assert.equal(found.header, undefined, 'it is not right there')
    }
  })

  test('takes no witness from another segment, or another place', async () => {
    const other = new SegmentBytes(2).add([record(1, 1, 'x')])
    const segment = segmentOf(1)
    const from = segment.end.end
    segment.append(other.bytes.slice(other.start))
    assert.equal((await rest(segment, from)).durable, undefined)
    const moved = segmentOf(2)
    moved.append(moved.bytes.slice(moved.start))
    assert.equal((await rest(moved, moved.end.end)).durable, undefined)
  })

  test('ends where a file is shorter than it was said to be', async () => {
    const segment = segmentOf(1)
    const { end } = segment.end
    for (const more of [0, 1, 20, 47, 48, 100]) {
      const bytes = new Uint8Array(end + more)
      bytes.set(segment.bytes)
      bytes.fill(1, end)
      const found = await examineRest(readable(bytes), segment.seed, end, end + 5000)
      assert.equal(found.bytes, more)
    }
  })
})
