/** Frames of whole groups become facts and index, or contradict them; never anything else. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { FRAME_KIND } from '../../codec/format.ts'
import { emptyFacts, type StoreFacts } from '../../codec/log-state.ts'
import { GroupScanner } from '../../engine/group-scanner.ts'
import { replayGroup, replayTarget } from '../../engine/replay.ts'
import { GrowingIndex } from '../../engine/segment-index.ts'
import {
  change,
  readable,
  record,
  SegmentBytes,
  type FrameInput,
} from '../support/segment-bytes.ts'

const { create, deadSegments, delete: remove, filler, lossGap, relocated, seal, trim } = FRAME_KIND

interface Replayed {
  readonly facts: StoreFacts
  readonly index: GrowingIndex
  /** How many groups were applied before one contradicted. */
  readonly groups: number
}

/** Replays groups in a segment with this number. */
async function replay(groups: readonly (readonly FrameInput[])[], segment = 9): Promise<Replayed> {
  const built = new SegmentBytes(segment)
  for (const frames of groups) built.add(frames)
  const facts = emptyFacts()
  const index = new GrowingIndex()
  const target = replayTarget(facts, segment, index)
  const last = { number: 0, checksum: 0 }
  const scanner = new GroupScanner(readable(built.bytes), built.seed, built.start, last)
  await scanner.scan(built.bytes.length, (group) => replayGroup(target, group))
  return { facts, index, groups: scanner.last.number }
}

const CREATE = change(create, 1, 1, 'log')

describe('replayGroup()', () => {
  test('applies frames of every kind', async () => {
    const { facts, index, groups } = await replay([
      [CREATE, change(create, 2, 101, 'other')],
      [record(1, 1, 'a', { createdAtMs: 7 }), record(1, 2, 'b'), record(2, 1, 'c')],
      [change(trim, 1, 1), change(seal, 2, 2, 'moved'), change(deadSegments, 0, 3)],
      [change(remove, 0, 0, 'log'), change(create, 3, 1, 'log')],
      [change(lossGap, 2, 5, 2)],
      [change(seal, 3, 1)],
    ])
    assert.equal(groups, 6)
    assert.deepEqual([...facts.logs.keys()], ['other', 'log'])
    assert.deepEqual([facts.nextLogletId, facts.firstSegment], [4, 4])
    const other = facts.loglets.get(2)
    assert.deepEqual(
      [other?.tail, other?.seal, other?.gaps],
      [6, { reason: 'moved' }, [{ from: 2, to: 5 }]],
    )
    assert.deepEqual(facts.loglets.get(3)?.seal, { reason: undefined })
    assert.equal(facts.loglets.get(1), undefined)
    const runs = index.find(1)
    assert.deepEqual([runs?.count, runs?.startTail, runs?.endTail], [1, 1, 3])
    assert.equal(index.find(2)?.endTail, 6, 'the loss moved the tail in the index too')
  })

  test("keeps a loglet's newest time, rounded up", async () => {
    const { facts } = await replay([
      [CREATE],
      [record(1, 1, 'a', { createdAtMs: 7000 }), record(1, 2, 'b', { createdAtMs: 5000 })],
    ])
    assert.equal(facts.loglets.get(1)?.createdAtMs, 7000)
  })

  const contradictions: [string, readonly FrameInput[]][] = [
    ['a record of a loglet that there is not', [record(7, 1, 'x')]],
    ['a record behind the tail', [record(1, 2, 'x')]],
    ['a record twice', [record(1, 1, 'x'), record(1, 1, 'x')]],
    ['a record in a sealed loglet', [change(seal, 1, 1), record(1, 1, 'x')]],
    ['a trim past the tail', [change(trim, 1, 1)]],
    ['a seal that is not at the tail', [change(seal, 1, 2)]],
    ['a log that is there', [change(create, 2, 1, 'log')]],
    ['a loglet id that was used', [change(create, 1, 1, 'another')]],
    ['a log without a name', [change(create, 2, 1, '')]],
    ['a log whose name is a number', [change(create, 2, 1, 7)]],
    ['the end of a log that there is not', [change(remove, 0, 0, 'another')]],
    ['the end of a segment that goes on', [change(deadSegments, 0, 9)]],
    ['a loss that ends before it starts', [change(lossGap, 1, 1, 2)]],
    ['a loss whose start is no number', [change(lossGap, 1, 1, 'x')]],
    ['a kind that is reserved', [change(relocated, 1, 1)]],
    ['a body that is no msgpack', [{ ...CREATE, loglet: 2, body: Uint8Array.of(0xc1) }]],
  ]
  for (const [what, frames] of contradictions) {
    test(`refuses ${what}`, async () => {
      const { groups } = await replay([[CREATE], frames])
      assert.equal(groups, 1)
    })
  }

  test('lets frames be missing only behind what a repair made', async () => {
    const lost = [record(1, 5, 'behind a hole')]
    assert.equal((await replay([[CREATE], lost])).groups, 1)
    const patch = { kind: filler, loglet: 0, offset: 1, body: Uint8Array.of(0xc0) }
    const { groups, facts, index } = await replay([[CREATE], [patch], lost])
    assert.equal(groups, 3)
    const runs = index.find(1)
    assert.deepEqual([runs?.count, runs?.endTail], [1, 6])
    assert.equal(facts.loglets.get(1)?.tail, 6)
  })
})
