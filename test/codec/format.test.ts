/** docs/format.md says what codec/format.ts says, and its example is a segment that opens. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { describe, test } from 'node:test'
import * as format from '../../codec/format.ts'
import { FRAME_KIND } from '../../codec/format.ts'
import { decodeFrame, type Frame } from '../../codec/frame.ts'
import { decodeGroupHeader, framesCheck } from '../../codec/group.ts'
import { decodeSnapshot, emptyFacts } from '../../codec/log-state.ts'
import { unpack } from '../../codec/msgpack.ts'
import { decodeRecord } from '../../codec/record.ts'
import {
  checkedSnapshot,
  decodeSegmentHeader,
  groupsStart,
  NO_SEGMENT_END,
  segmentSeed,
} from '../../codec/segment-header.ts'
import { inRepository } from '../support/repository.ts'
import { change, record, SegmentBytes } from '../support/segment-bytes.ts'
import { temporaryDirectory } from '../support/temp-dir.ts'
import { TestStore } from '../support/test-store.ts'

const MADE_AT_MS = Date.UTC(2026, 0, 5)
const STORE_ID = Uint8Array.from({ length: 16 }, (_, i) => i)

const text = fs.readFileSync(inRepository('docs/format.md'), 'utf8')

/** The rows of the tables below a heading. */
function rowsBelow(heading: string): string[][] {
  const from = text.indexOf(`\n## ${heading}\n`)
  assert.ok(from >= 0, `there is a heading ${heading}`)
  const section = text.slice(from + 1).split('\n## ')[0] ?? ''
  return section
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| ---'))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    )
}

/** What a value on the page stands for. */
function valueOf(cell: string): unknown {
  return cell.startsWith('"') ? cell.slice(1, -1) : Number(cell)
}

/** The bytes of the example; each line's position must be that of its first byte. */
function example(): Uint8Array {
  const dump = /```hex\n([^]*?)```/.exec(text)?.[1] ?? ''
  const bytes: number[] = []
  for (const line of dump.trimEnd().split('\n')) {
    const found = /^ *(\d+) {2}((?:[0-9a-f]{2} ?){1,8})/.exec(line)
    assert.ok(found, `a line of the example: ${line}`)
    assert.equal(Number(found[1]), bytes.length)
    bytes.push(
      ...(found[2] ?? '')
        .trim()
        .split(' ')
        .map((byte) => Number.parseInt(byte, 16)),
    )
  }
  return Uint8Array.from(bytes)
}

describe('docs/format.md', () => {
  test('has every constant of codec/format.ts, and no other', () => {
    const said = rowsBelow('Constants').slice(1)
    const constants = Object.entries(format).filter(([name]) => name !== 'FRAME_KIND')
    assert.deepEqual(
      Object.fromEntries(said.map(([name = '', value = '']) => [name, valueOf(value)])),
      Object.fromEntries(constants),
    )
  })

  test('has every kind of frame', () => {
    const kinds = rowsBelow('Frame header').filter(
      ([kind, name]) => Number(kind) > 0 && /^\w+$/.test(name ?? '') && Number.isNaN(Number(name)),
    )
    assert.deepEqual(Object.fromEntries(kinds.map(([kind, name = '']) => [name, Number(kind)])), {
      ...FRAME_KIND,
    })
  })

  const layouts: [heading: string, starts: number, ends: number][] = [
    ['Prefix', 0, format.PREFIX_BYTES],
    ['Segment header', format.PREFIX_BYTES, format.SEGMENT_HEADER_BYTES],
    ['Group header', 0, format.GROUP_HEADER_BYTES],
    ['Frame header', 0, format.FRAME_HEADER_BYTES],
    ['Metadata file', format.PREFIX_BYTES, format.METADATA_HEADER_BYTES],
  ]
  for (const [heading, starts, ends] of layouts) {
    test(`has a layout without holes or overlaps: ${heading}`, () => {
      const fields = rowsBelow(heading).filter(
        (row) => row.length === 3 && /^\d+$/.test(row[1] ?? ''),
      )
      let next = starts
      for (const [at, size, what = ''] of fields) {
        assert.equal(Number(at), next, what)
        next += Number(size) + (what.includes('three zero bytes') ? 3 : 0)
      }
      assert.equal(next, ends)
    })
  }

  test('puts every field of a layout where the code has it', () => {
    const at = (heading: string): number[] =>
      rowsBelow(heading)
        .map(([position]) => Number(position))
        .filter((n) => !Number.isNaN(n))
    const positions = (prefix: RegExp): number[] =>
      Object.entries(format)
        .filter(([name]) => prefix.test(name) && name.endsWith('_AT'))
        .map(([, value]) => value as number)
    const heads: [string, RegExp][] = [
      ['Prefix', /^PREFIX_/],
      ['Segment header', /^(STORE_ID|SEGMENT|PREVIOUS|SNAPSHOT)_/],
      ['Group header', /^GROUP_/],
      ['Frame header', /^FRAME_/],
      ['Metadata file', /^METADATA_/],
    ]
    for (const [heading, prefix] of heads) {
      for (const position of positions(prefix)) {
        assert.ok(at(heading).includes(position), `${heading} has a field at ${position}`)
      }
    }
  })
})

describe('The example in docs/format.md', () => {
  const bytes = example()

  test('is what the encoders make of the same input', () => {
    const segment = new SegmentBytes(1, emptyFacts(), NO_SEGMENT_END, STORE_ID, MADE_AT_MS)
    const frames = [
      change(FRAME_KIND.create, 1, 1, 'orders'),
      record(1, 1, { id: 7 }, { createdAtMs: MADE_AT_MS }),
    ]
    segment.add(frames, { durable: { segment: 1, position: 0 }, generation: 2 })
    assert.equal(Buffer.from(bytes).toString('hex'), Buffer.from(segment.bytes).toString('hex'))
  })

  test('is what the decoders say that it is', () => {
    const header = decodeSegmentHeader(bytes)
    assert.ok(header)
    const { storeId, segment, createdAtMs, previous } = header
    assert.deepEqual([storeId, segment, createdAtMs], [STORE_ID, 1, MADE_AT_MS])
    assert.deepEqual(previous, NO_SEGMENT_END)
    const snapshot = checkedSnapshot(bytes, header)
    assert.ok(snapshot)
    assert.deepEqual(unpack(snapshot, 0, snapshot.length), [1, 1, [], []])
    assert.ok(decodeSnapshot(snapshot))
    const seed = segmentSeed(storeId, 1)
    const start = groupsStart(header.snapshotLength)
    const group = decodeGroupHeader(bytes, start, seed, start)
    assert.ok(group && framesCheck(bytes, start, group, seed, start))
    assert.deepEqual(
      [group.number, group.frames, group.durable, group.generation, group.previous],
      [1, 2, { segment: 1, position: 0 }, 2, 0],
    )
    const [create, data] = framesOf(start + format.GROUP_HEADER_BYTES, seed)
    assert.deepEqual([create?.kind, create?.loglet, create?.offset], [FRAME_KIND.create, 1, 1])
    assert.equal(unpack(bytes, create?.bodyStart ?? 0, create?.bodyEnd ?? 0), 'orders')
    assert.deepEqual([data?.kind, data?.loglet, data?.offset], [FRAME_KIND.data, 1, 1])
    const stored = decodeRecord(bytes, data?.bodyStart ?? 0, data?.bodyEnd ?? 0)
    assert.deepEqual([stored.createdAtMs, stored.keys, stored.payload], [MADE_AT_MS, [], { id: 7 }])
  })

  function framesOf(start: number, seed: number): Frame[] {
    const frames: Frame[] = []
    for (let at = start; frames.length < 2;) {
      const frame = decodeFrame(bytes, at, bytes.length, seed, at)
      assert.ok(frame)
      frames.push(frame)
      at = frame.bodyEnd
    }
    return frames
  }

  test('is a store that opens', async (t) => {
    const dir = await temporaryDirectory(t)
    fs.writeFileSync(`${dir}/0000000001.segment`, bytes)
    const store = await TestStore.open(t, { dir })
    assert.deepEqual(await store.payloads('orders'), [{ id: 7 }])
    assert.equal(store.store.recovery.metadataRebuilt, true)
    assert.equal(await store.append('orders', { id: 8 }), 2)
  })
})
