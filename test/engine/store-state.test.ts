/** The state and its draft: judged on one, read from the other, and no id is given twice. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { closed, storeFailed, unknownLog } from '../../engine/errors.ts'
import { lsnIn, StoreState } from '../../engine/store-state.ts'
import {
  applyCreate,
  applyRecord,
  emptyFacts,
  encodeSnapshot,
  type StoreFacts,
} from '../../codec/log-state.ts'
import { MAX_POSITION } from '../../codec/offset.ts'

/** Two logs, `a` with one record; loglets 1 and 2. */
function facts(): StoreFacts {
  const made = emptyFacts()
  applyCreate(made, 'a', { loglet: 1, baseLsn: 1 })
  applyCreate(made, 'b', { loglet: 2, baseLsn: 101 })
  applyRecord(made.loglets.get(1), 1, 5)
  return made
}

function cellOf(state: StoreState, loglet: number): NonNullable<ReturnType<StoreState['cell']>> {
  const cell = state.cell(loglet)
  assert.ok(cell)
  return cell
}

describe('StoreState', () => {
  test('adopt() makes the draft the facts, and tells which cells changed', () => {
    const state = new StoreState(facts(), 1)
    const cell = cellOf(state, 1)
    cell.tail = 5
    cell.trimPoint = 2
    cell.seal = { reason: 'x' }
    state.touch(cell)
    state.touch(cell)
    assert.equal(cell.facts.tail, 2, 'the facts stay what is durable')
    assert.deepEqual(state.adopt(), [cell])
    const { tail, trimPoint, seal } = cell.facts
    assert.deepEqual([tail, trimPoint, seal], [5, 2, { reason: 'x' }])
    assert.deepEqual(state.adopt(), [])
  })

  test('discard() forgets the draft: tails, trims, seals, logs and dead segments', () => {
    const state = new StoreState(facts(), 1)
    const cell = cellOf(state, 1)
    Object.assign(cell, { tail: 5, trimPoint: 2, seal: { reason: 'x' } })
    state.touch(cell)
    state.draftCreate('c', 1)
    state.draftDelete('b')
    state.draftDeadSegments(7)
    state.discard()
    assert.deepEqual([cell.tail, cell.trimPoint, cell.seal], [2, 0, undefined])
    assert.deepEqual([state.hasDraftLog('b'), state.hasDraftLog('c')], [true, false])
    assert.equal(state.firstSegmentDraft, 1)
    assert.deepEqual(state.adopt(), [])
    assert.deepEqual([...state.facts.logs.keys()], ['a', 'b'])
  })

  test('a log is created and deleted in the draft, in order', () => {
    const state = new StoreState(facts(), 1)
    const old = cellOf(state, 1)
    state.draftDelete('a')
    assert.deepEqual([state.hasDraftLog('a'), state.hasDraftCell(old)], [false, false])
    assert.equal(state.draftCreate('a', 1), 3)
    assert.deepEqual([state.hasDraftLog('a'), state.hasDraftCell(old)], [true, false])
    state.draftDelete('a')
    assert.equal(state.draftCreate('a', 1), 4)
    const ended = state.adopt()
    assert.deepEqual(
      ended.map(({ facts: { id }, ended: why }) => [id, why?.code]),
      [
        [1, 'UNKNOWN_LOG'],
        [3, 'UNKNOWN_LOG'],
      ],
    )
    assert.deepEqual(state.log('a')?.links, [{ loglet: 4, baseLsn: 1 }])
    assert.deepEqual([state.cell(1), state.cell(3)], [undefined, undefined])
    assert.ok(state.hasDraftCell(cellOf(state, 4)))
  })

  test('an id is burnt by a group that fails, and by any witness', () => {
    const state = new StoreState(facts(), 9)
    assert.equal(state.draftCreate('c', 1), 9)
    state.discard()
    assert.equal(state.draftCreate('c', 1), 10)
    state.adopt()
    assert.deepEqual([state.nextLogletId, state.facts.nextLogletId], [11, 11])
  })

  test('a snapshot before the group in formation says no more than what was burnt before it', () => {
    const state = new StoreState(facts(), 1)
    const loglet = state.draftCreate('c', 1)
    assert.equal(state.snapshot().nextLogletId, loglet, 'the create behind it must still fit')
    state.discard()
    assert.equal(state.snapshot().nextLogletId, loglet + 1)
  })

  test('snapshotBytes stays an upper bound through creates, seals and deletes', () => {
    const state = new StoreState(emptyFacts(), 1)
    const requireBound = (): void => {
      const { length } = encodeSnapshot(state.snapshot())
      assert.ok(length <= state.snapshotBytes, `${length} of ${state.snapshotBytes}`)
    }
    requireBound()
    for (let i = 1; i <= 300; i++) {
      state.draftCreate(`log ${'x'.repeat(i % 200)} ${i}`, 1)
      state.adopt()
      const cell = cellOf(state, i)
      Object.assign(cell, { tail: 2 ** 50, trimPoint: 2 ** 49, seal: { reason: 'r'.repeat(i) } })
      state.touch(cell)
      state.adopt()
      requireBound()
    }
    const full = state.snapshotBytes
    for (let i = 1; i <= 300; i++) {
      state.draftDelete(`log ${'x'.repeat(i % 200)} ${i}`)
      state.adopt()
      requireBound()
    }
    assert.ok(state.snapshotBytes < full)
  })

  test('snapshotBytes comes back down when a log that was sealed is deleted', () => {
    const state = new StoreState(emptyFacts(), 1)
    const before = state.snapshotBytes
    for (let i = 1; i <= 100; i++) {
      state.draftCreate('again', 1)
      state.adopt()
      const cell = cellOf(state, i)
      cell.seal = { reason: 'a long reason '.repeat(100) }
      state.touch(cell)
      state.adopt()
      state.draftDelete('again')
      state.adopt()
    }
    assert.equal(state.snapshotBytes, before)
  })
})

describe('LogletCell', () => {
  test('watch() tells each watcher of every change until it is taken back', () => {
    const cell = cellOf(new StoreState(facts(), 1), 1)
    let calls = 0
    const count = (): void => {
      calls++
    }
    const stops = [cell.watch(count), cell.watch(count)]
    assert.ok(cell.isWatched)
    cell.notify()
    stops[0]?.()
    cell.notify()
    stops[1]?.()
    cell.notify()
    assert.deepEqual([calls, cell.isWatched], [3, false])
  })

  test('end() keeps the first reason, but a close ends what had failed', () => {
    const deleted = cellOf(new StoreState(facts(), 1), 1)
    deleted.end(unknownLog('a'))
    deleted.end(closed())
    assert.equal(deleted.ended?.code, 'UNKNOWN_LOG')
    const failed = cellOf(new StoreState(facts(), 1), 1)
    failed.end(storeFailed(new Error('EIO')))
    assert.equal(failed.ended?.code, 'STORE_FAILED')
    failed.end(closed())
    assert.equal(failed.ended.code, 'CLOSED')
  })

  test('has no offset whose LSN would be past the greatest one', () => {
    const state = new StoreState(facts(), 1)
    assert.equal(cellOf(state, 1).maxOffset, MAX_POSITION)
    assert.equal(cellOf(state, 2).maxOffset, MAX_POSITION - 100)
  })

  test('adopt() never goes back: that would be our own bug', () => {
    const state = new StoreState(facts(), 1)
    const cell = cellOf(state, 1)
    cell.tail = 1
    state.touch(cell)
    assert.throws(() => state.adopt(), { name: 'AssertionError' })
  })
})

test('lsnIn() says where an offset stands in its log', () => {
  assert.equal(lsnIn(facts(), 'a', 1, 7), 7)
  assert.equal(lsnIn(facts(), 'b', 2, 1), 101)
})
