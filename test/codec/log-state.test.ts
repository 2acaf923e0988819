/** The state of a store: how frames merge into it, and that a snapshot brings all of it back. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { MAX_LOGLET_ID } from '../../codec/format.ts'
import {
  applyCreate,
  applyDeadSegments,
  applyDelete,
  applyLossGap,
  applyRecord,
  applySeal,
  applyTrim,
  decodeSnapshot,
  effectiveTrimPoint,
  emptyFacts,
  emptyLoglet,
  encodeSnapshot,
  encodeSnapshotOfLength,
  isLogId,
  snapshotBytesBound,
  type LogletFacts,
  type StoreFacts,
} from '../../codec/log-state.ts'
import { pack, unpack } from '../../codec/msgpack.ts'
import { MAX_POSITION } from '../../codec/offset.ts'
import { anyValue, bytes, eachCut, storeFacts, withReplaced } from '../support/codec-arbitraries.ts'

const LOGS = ['orders', 'emails', 'audit']

/** What may come in a frame, whether it fits the state or not. */
type Change =
  | { readonly kind: 'record'; readonly loglet: number; readonly by: number }
  | { readonly kind: 'trim'; readonly loglet: number; readonly by: number }
  | { readonly kind: 'seal'; readonly loglet: number; readonly by: number }
  | { readonly kind: 'loss'; readonly loglet: number; readonly by: number; readonly length: number }
  | { readonly kind: 'create'; readonly log: string; readonly by: number }
  | { readonly kind: 'delete'; readonly log: string }
  | { readonly kind: 'dead'; readonly last: number }

const loglet = fc.integer({ min: 0, max: 6 })
const by = fc.integer({ min: -2, max: 2 })
const log = fc.constantFrom(...LOGS)
const change: fc.Arbitrary<Change> = fc.oneof(
  fc.record({ kind: fc.constant('record' as const), loglet, by }),
  fc.record({ kind: fc.constant('record' as const), loglet, by: fc.constant(0) }),
  fc.record({ kind: fc.constant('trim' as const), loglet, by }),
  fc.record({ kind: fc.constant('seal' as const), loglet, by }),
  fc.record({ kind: fc.constant('loss' as const), loglet, by, length: fc.nat(3) }),
  fc.record({ kind: fc.constant('create' as const), log, by }),
  fc.record({ kind: fc.constant('delete' as const), log }),
  fc.record({ kind: fc.constant('dead' as const), last: fc.nat(12) }),
)

/** Applies a change that is `by` away from the one that would fit. */
function apply(facts: StoreFacts, what: Change, segment: number): boolean {
  if (what.kind === 'dead') return applyDeadSegments(facts, what.last, segment)
  if (what.kind === 'delete') return applyDelete(facts, what.log)
  if (what.kind === 'create') {
    const id = facts.nextLogletId + what.by
    return applyCreate(facts, what.log, { loglet: id, baseLsn: 1 })
  }
  const known = facts.loglets.get(what.loglet)
  const at = (known?.tail ?? 1) + what.by
  if (what.kind === 'record') return applyRecord(known, at, 1000 + what.by)
  if (what.kind === 'trim') return applyTrim(known, at)
  if (what.kind === 'seal') return applySeal(known, at, { reason: `at ${at}` })
  return applyLossGap(known, { from: at, to: at + what.length - 1 })
}

function copyOf(facts: StoreFacts): StoreFacts {
  return structuredClone(facts)
}

function requireForward(before: LogletFacts, after: LogletFacts): void {
  assert.ok(after.tail >= before.tail, 'the tail moves forward only')
  assert.ok(after.trimPoint >= before.trimPoint, 'the trim point moves forward only')
  assert.ok(after.trimPoint < after.tail, 'only what was written is trimmed')
  assert.ok(after.createdAtMs >= before.createdAtMs, 'time does not go back')
  if (before.seal !== undefined) assert.deepEqual(after.seal, before.seal, 'the first seal wins')
  assert.ok(after.gaps.length >= before.gaps.length, 'no loss is forgotten')
}

describe('apply…()', () => {
  test('keep the merge rules for any frames in any order', () => {
    fc.assert(
      fc.property(fc.array(change, { maxLength: 60 }), (changes) => {
        const facts = emptyFacts()
        const used = new Set<number>()
        for (const [i, what] of changes.entries()) {
          const before = copyOf(facts)
          const applied = apply(facts, what, i)
          if (!applied) assert.deepEqual(facts, before, 'what contradicts changes nothing')
          assert.ok(facts.nextLogletId >= before.nextLogletId)
          assert.ok(facts.firstSegment >= before.firstSegment)
          for (const after of facts.loglets.values()) {
            const known = before.loglets.get(after.id)
            if (known !== undefined) requireForward(known, after)
            else assert.ok(!used.has(after.id), 'a loglet id is never used twice')
            used.add(after.id)
            assert.ok(after.id < facts.nextLogletId)
          }
        }
      }),
      { numRuns: 500 },
    )
  })

  test('applyRecord() takes the tail and nothing else', () => {
    const facts = emptyLoglet(1)
    assert.equal(applyRecord(facts, 2, 5), false)
    assert.equal(applyRecord(facts, 1, 5), true)
    assert.equal(applyRecord(facts, 1, 5), false)
    assert.deepEqual([facts.tail, facts.createdAtMs], [2, 5])
    assert.equal(applyRecord(undefined, 1, 5), false)
  })

  test('applyRecord() refuses a record behind a seal, and past the last offset', () => {
    const sealed = emptyLoglet(1)
    assert.ok(applySeal(sealed, 1, { reason: undefined }))
    assert.equal(applyRecord(sealed, 1, 5), false)
    const full = { ...emptyLoglet(1), tail: MAX_POSITION + 1 }
    assert.equal(applyRecord(full, MAX_POSITION + 1, 5), false)
  })

  test('applySeal() takes the tail only, and the first reason wins', () => {
    const facts = emptyLoglet(1)
    assert.equal(applySeal(facts, 2, { reason: 'x' }), false)
    assert.ok(applySeal(facts, 1, { reason: 'first' }))
    assert.ok(applySeal(facts, 1, { reason: 'second' }))
    assert.deepEqual(facts.seal, { reason: 'first' })
  })

  test('applyCreate() refuses a log that is there, an id that was used, and what is no log id', () => {
    const facts = emptyFacts()
    assert.ok(applyCreate(facts, 'orders', { loglet: 5, baseLsn: 1 }))
    assert.equal(applyCreate(facts, 'orders', { loglet: 6, baseLsn: 1 }), false)
    assert.equal(applyCreate(facts, 'emails', { loglet: 5, baseLsn: 1 }), false)
    assert.ok(applyDelete(facts, 'orders'))
    assert.equal(applyCreate(facts, 'orders', { loglet: 5, baseLsn: 1 }), false)
    assert.equal(applyCreate(facts, '', { loglet: 6, baseLsn: 1 }), false)
    assert.equal(applyCreate(facts, 'x', { loglet: MAX_LOGLET_ID + 1, baseLsn: 1 }), false)
    assert.equal(applyCreate(facts, 'x', { loglet: 6, baseLsn: 0 }), false)
    assert.ok(applyCreate(facts, 'orders', { loglet: 6, baseLsn: 1 }))
  })

  test('applyDeadSegments() never takes the segment that says so', () => {
    const facts = emptyFacts()
    assert.equal(applyDeadSegments(facts, 3, 3), false)
    assert.ok(applyDeadSegments(facts, 2, 3))
    assert.ok(applyDeadSegments(facts, 1, 3))
    assert.equal(facts.firstSegment, 3)
  })

  test('applyLossGap() moves the tail past what was lost, and knows a gap that it has', () => {
    const facts = emptyLoglet(1)
    assert.ok(applyLossGap(facts, { from: 3, to: 5 }))
    assert.ok(applyLossGap(facts, { from: 3, to: 5 }))
    assert.ok(applyLossGap(facts, { from: 1, to: 1 }))
    assert.deepEqual(facts.gaps, [
      { from: 1, to: 1 },
      { from: 3, to: 5 },
    ])
    assert.equal(facts.tail, 6)
    assert.equal(applyLossGap(facts, { from: 7, to: 6 }), false)
  })
})

describe('effectiveTrimPoint()', () => {
  test('clamps to the last record, and never goes back', () => {
    assert.equal(effectiveTrimPoint({ tail: 10, trimPoint: 0 }, 5), 5)
    assert.equal(effectiveTrimPoint({ tail: 10, trimPoint: 0 }, 100), 9)
    assert.equal(effectiveTrimPoint({ tail: 10, trimPoint: 7 }, 5), 7)
    assert.equal(effectiveTrimPoint({ tail: 1, trimPoint: 0 }, 5), 0)
  })
})

describe('encodeSnapshot() and decodeSnapshot()', () => {
  test('bring the whole state back', () => {
    fc.assert(
      fc.property(storeFacts, (facts) => {
        assert.deepEqual(decodeSnapshot(encodeSnapshot(facts)), facts)
      }),
    )
  })

  test('take no more than was reckoned with', () => {
    fc.assert(
      fc.property(storeFacts, (facts) => {
        assert.ok(encodeSnapshot(facts).length <= snapshotBytesBound(facts))
      }),
      { numRuns: 500 },
    )
  })

  test('take no more than was reckoned with for thousands of logs at their greatest', () => {
    const facts = { ...emptyFacts(), nextLogletId: MAX_LOGLET_ID }
    for (let i = 0; i < 2000; i++) {
      const id = MAX_LOGLET_ID - 4000 + i
      facts.logs.set(`${i}`, { logId: `${i}`, links: [{ loglet: id, baseLsn: MAX_POSITION }] })
      const [tail, trimPoint] = [MAX_POSITION + 1, MAX_POSITION]
      const createdAtMs = Number.MAX_SAFE_INTEGER
      facts.loglets.set(id, { ...emptyLoglet(id), tail, trimPoint, createdAtMs })
    }
    const { length } = encodeSnapshot(facts)
    const bound = snapshotBytesBound(facts)
    assert.ok(length <= bound && bound < 2 * length, `${length} of ${bound}`)
  })

  test('write plain msgpack', () => {
    const facts = emptyFacts()
    applyCreate(facts, 'orders', { loglet: 1, baseLsn: 1 })
    applyRecord(facts.loglets.get(1), 1, 1_700_000_000_000)
    const snapshot = encodeSnapshot(facts)
    assert.deepEqual(unpack(snapshot, 0, snapshot.length), [
      2,
      1,
      [['orders', [[1, 1]]]],
      [[1, 2, 0, 1_700_000_000_000, null, []]],
    ])
  })

  test('keep the order in which the logs were created', () => {
    const facts = emptyFacts()
    for (const [i, id] of ['z', 'a', 'm'].entries()) {
      applyCreate(facts, id, { loglet: i + 1, baseLsn: 1 })
    }
    assert.deepEqual(
      [...(decodeSnapshot(encodeSnapshot(facts))?.logs.keys() ?? [])],
      ['z', 'a', 'm'],
    )
  })

  test('see no snapshot in a part of one', () => {
    const facts = emptyFacts()
    applyCreate(facts, 'orders', { loglet: 1, baseLsn: 1 })
    eachCut(encodeSnapshot(facts), (cut) => assert.equal(decodeSnapshot(cut), undefined))
  })

  test('never throw for any bytes, or any value in place of one of theirs', () => {
    fc.assert(
      fc.property(bytes, (some) => {
        decodeSnapshot(some)
      }),
    )
    fc.assert(
      fc.property(
        storeFacts,
        fc.array(fc.nat(9), { maxLength: 5 }),
        anyValue,
        (facts, path, by) => {
          const snapshot = encodeSnapshot(facts)
          const value = withReplaced(unpack(snapshot, 0, snapshot.length), path, by)
          const found = decodeSnapshot(pack(value))
          for (const { links } of found?.logs.values() ?? []) {
            for (const link of links) assert.ok(found?.loglets.has(link.loglet))
          }
        },
      ),
      { numRuns: 1000 },
    )
  })

  test('refuse a state that no frames could have made', () => {
    const good = [3, 1, [['orders', [[1, 1]]]], [[1, 5, 2, 0, null, []]]]
    assert.ok(decodeSnapshot(pack(good)))
    const bad: [string, readonly number[], unknown][] = [
      ['a trim point at the tail', [3, 0, 2], 5],
      ['a loglet with an id that was not given yet', [0], 1],
      ['a link without its loglet', [2, 0, 1, 0, 0], 2],
      ['a log without a link', [2, 0, 1], []],
      ['a log without a name', [2, 0, 0], ''],
      ['a loss that ends before it starts', [3, 0, 5], [[4, 3]]],
      ['a seal that is none', [3, 0, 4], 'sealed'],
      ['a base LSN of 0', [2, 0, 1, 0, 1], 0],
    ]
    for (const [name, path, by] of bad) {
      assert.equal(decodeSnapshot(pack(withReplaced(good, path, by))), undefined, name)
    }
  })
})

describe('encodeSnapshotOfLength()', () => {
  test('has the very length it was asked for, and the same state', () => {
    fc.assert(
      fc.property(storeFacts, fc.nat(100), (facts, more) => {
        const length = encodeSnapshot(facts).length + 8 + more
        const snapshot = encodeSnapshotOfLength({ ...facts, isPartial: true }, length)
        if (snapshot === undefined) return
        assert.equal(snapshot.length, length)
        assert.deepEqual(decodeSnapshot(snapshot), { ...facts, isPartial: true })
      }),
    )
  })
})

describe('isLogId()', () => {
  test('takes 1 to 255 bytes of UTF-8, whatever they are', () => {
    for (const id of ['a', ':', '/', '..', '🦔', 'x'.repeat(255), 'é'.repeat(127), '\0', ' ']) {
      assert.ok(isLogId(id), JSON.stringify(id))
    }
    for (const id of ['', 'x'.repeat(256), 'é'.repeat(128), '\ud800', 1, null, undefined, {}]) {
      assert.ok(!isLogId(id), JSON.stringify(id))
    }
  })
})
