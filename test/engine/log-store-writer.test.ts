/** The one writer: what shares a group, what is told when, and that nothing is told too early. */
import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { LogError } from '../../codec/errors.ts'
import type { Offset } from '../../codec/offset.ts'
import { LogStore } from '../../engine/log-store.ts'
import { NodeFileSystem } from '../../engine/node-file-system.ts'
import { resolveStoreOptions } from '../../engine/options.ts'
import { mapSegment } from '../support/corrupt.ts'
import { rejection } from '../support/expect-error.ts'
import { SMALL } from '../support/recovery-checks.ts'
import { FILLING, segmentAt } from '../support/stores.ts'
import { temporaryDirectory } from '../support/temp-dir.ts'
import { numbered, TestStore, turn } from '../support/test-store.ts'

function commits(store: TestStore): number {
  return store.faults.count('commit')
}

/** What a promise has come to so far. */
function watch(promise: Promise<unknown>): { outcome: string } {
  const seen = { outcome: 'pending' }
  promise.then(
    () => (seen.outcome = 'resolved'),
    (error: unknown) => (seen.outcome = error instanceof LogError ? error.code : String(error)),
  )
  return seen
}

describe('LogStoreWriter groups', () => {
  test('everything that is called in one tick shares a group, of whatever kind it is', async (t) => {
    const store = await TestStore.open(t, { ...SMALL, logs: ['a', 'b', 'c'] })
    await store.appendBatch('a', numbered(3))
    const before = commits(store)
    await Promise.all([
      store.append('a', 1),
      store.appendBatch('b', [2, 3]),
      store.appendMany([
        ['a', 4],
        ['c', 5],
      ]),
      store.trim('a', 2),
      store.seal('b', 'moved'),
      store.store.createLogs(['d', 'e']),
      store.store.deleteLog('c'),
    ])
    assert.equal(commits(store), before + 1)
    const group = mapSegment(segmentAt(store.dir, 1)).groups.at(-1)
    const kinds = group?.frames.map(({ kind, loglet, offset }) => [kind, loglet, offset])
    assert.deepEqual(kinds, [
      [1, 1, 4],
      [1, 2, 1],
      [1, 2, 2],
      [1, 1, 5],
      [1, 3, 1],
      [2, 1, 2],
      [3, 2, 3],
      [4, 4, 1],
      [4, 5, 1],
      [5, 0, 0],
    ])
  })

  test('State updates of a group accumulated: each group holds its own commands and no others', async (t) => {
    const store = await TestStore.open(t, { ...SMALL, logs: ['a', 'b'] })
    await store.appendBatch('a', numbered(10))
    for (let i = 1; i <= 5; i++) {
      await Promise.all([store.trim('a', i), store.append('b', i)])
    }
    const groups = mapSegment(segmentAt(store.dir, 1)).groups.slice(-5)
    groups.forEach(({ frames }, i) => {
      const found = frames.map(({ kind, offset }) => [kind, offset])
      assert.deepEqual(found, [
        [2, i + 1],
        [1, i + 1],
      ])
    })
  })

  test('a group that needs no frame is not written, and its verdicts are told', async (t) => {
    const store = await TestStore.open(t, { ...SMALL, logs: ['a', 'b'] })
    await store.append('a', 1)
    await store.trim('a', 1)
    await store.seal('b', 'first')
    const before = commits(store)
    const [trimmed, sealed, created, mismatch] = await Promise.allSettled([
      store.trim('a', 1),
      store.seal('b', 'second'),
      store.store.createLogs(['a']),
      store.append('a', 2, { expectedTail: 7 }),
    ])
    assert.deepEqual(trimmed, { status: 'fulfilled', value: 1 })
    assert.deepEqual([sealed.status, created.status], ['fulfilled', 'fulfilled'])
    assert.ok(mismatch.status === 'rejected' && LogError.is(mismatch.reason, 'TAIL_MISMATCH'))
    assert.equal(mismatch.reason.tail, 2)
    assert.equal(commits(store), before)
    assert.equal(store.cell('b').facts.seal?.reason, 'first')
  })

  test('what a group refuses leaves no frame between those that it keeps', async (t) => {
    const store = await TestStore.open(t, { ...SMALL, logs: ['a', 'b'] })
    await store.seal('b')
    const [first, , second] = await Promise.allSettled([
      store.append('a', 'kept'),
      store.append('b', 'refused, and longer than what follows'),
      store.append('a', 'kept too'),
    ])
    assert.deepEqual(
      [first, second].map(({ status }) => status),
      ['fulfilled', 'fulfilled'],
    )
    assert.equal(mapSegment(segmentAt(store.dir, 1)).groups.at(-1)?.frames.length, 2)
    assert.deepEqual(await store.payloads('a'), ['kept', 'kept too'])
  })

  test('offsets are given in call order, batches at consecutive ones', async (t) => {
    const store = await TestStore.open(t, { ...SMALL, logs: ['a'] })
    const firsts = await Promise.all([
      store.append('a', 1),
      store.appendBatch('a', [2, 3, 4]),
      store.append('a', 5),
      store.appendBatch('a', [6, 7]),
    ])
    assert.deepEqual(firsts, [1, 2, 5, 6])
    assert.deepEqual(await store.payloads('a'), [1, 2, 3, 4, 5, 6, 7])
  })

  test('a record that is larger than a segment has one of its own', async (t) => {
    const store = await TestStore.open(t, { ...SMALL, logs: ['a'] })
    const large = new Uint8Array(300_000).fill(7)
    for (let i = 0; i < 3; i++) await store.append('a', large)
    const [first] = await store.payloads('a', 3)
    assert.deepEqual(first, large)
    assert.equal(mapSegment(segmentAt(store.dir, 2)).groups.length, 1)
  })

  test('a segment is never less than 4 times its snapshot', async (t) => {
    const store = await TestStore.open(t, SMALL)
    await store.store.createLogs(numbered(1500).map((name) => `${name} has a long name`))
    await store.append('record 1 has a long name', FILLING)
    await store.append('record 1 has a long name', 'in segment 2 as well')
    const { start, header } = mapSegment(segmentAt(store.dir, 2))
    assert.ok(header.snapshotLength > 32 * 1024)
    for (let i = 0; i < 3; i++)
      await store.append('record 1 has a long name', new Uint8Array(start))
    assert.equal(mapSegment(segmentAt(store.dir, 2)).groups.length, 5, 'no roll at 64 KiB')
  })
})

describe('LogStoreWriter outcomes', () => {
  test('are told after the commit, and in order', async (t) => {
    const store = await TestStore.open(t, { ...SMALL, logs: ['a'] })
    const hold = store.hold(({ kind }) => kind === 'commit')
    const told: number[] = []
    const appends = [1, 2, 3].map((i) => store.append('a', i).then(() => told.push(i)))
    await hold.reached
    for (let i = 0; i < 10; i++) await turn()
    assert.deepEqual(told, [])
    assert.equal(store.cell('a').facts.tail, 1, 'nothing is released')
    assert.deepEqual((await store.readOnce('a', 1)).outcome, { kind: 'tail' })
    hold.release()
    await Promise.all(appends)
    assert.deepEqual(told, [1, 2, 3])
  })

  test('a tail mismatch is told after its group, so that all below the tail can be read', async (t) => {
    const store = await TestStore.open(t, { ...SMALL, logs: ['a'] })
    const hold = store.hold(({ kind }) => kind === 'commit')
    const append = store.append('a', 1)
    const conditional = store.append('a', 2, { expectedTail: 1 })
    const verdict = watch(conditional)
    await hold.reached
    for (let i = 0; i < 10; i++) await turn()
    assert.equal(verdict.outcome, 'pending')
    hold.release()
    await append
    const error = await rejection(conditional, 'TAIL_MISMATCH')
    assert.equal(error.tail, 2)
    assert.deepEqual(await store.payloads('a'), [1])
  })

  test("a tail mismatch is the group's error if the group fails", async (t) => {
    for (const [code, expected] of [
      ['ENOSPC', 'WRITE_FAILED'],
      ['EIO', 'STORE_FAILED'],
    ] as const) {
      const store = await TestStore.open(t, { ...SMALL, logs: ['a'] })
      store.faults.fail(
        ({ kind, position = 0 }) => kind === 'commit' && position % 4096 !== 0,
        { code },
        2,
      )
      const append = store.append('a', new Uint8Array(70_000))
      const conditional = store.append('a', 2, { expectedTail: 1 })
      await rejection(append, expected)
      await rejection(conditional, expected)
    }
  })

  test('expectedTail is judged in queue order: one of many wins', async (t) => {
    const store = await TestStore.open(t, { ...SMALL, logs: ['a'] })
    const tries = Array.from({ length: 10 }, (_, i) => store.append('a', i, { expectedTail: 1 }))
    const outcomes = await Promise.allSettled(tries)
    assert.deepEqual(outcomes[0], { status: 'fulfilled', value: 1 })
    for (const outcome of outcomes.slice(1)) {
      assert.ok(outcome.status === 'rejected' && LogError.is(outcome.reason, 'TAIL_MISMATCH'))
      assert.equal(outcome.reason.tail, 2)
    }
  })

  test('a seal is judged in queue order: no append behind it is acknowledged', async (t) => {
    const store = await TestStore.open(t, { ...SMALL, logs: ['a'] })
    const [before, , after] = await Promise.allSettled([
      store.append('a', 1),
      store.seal('a', 'moved'),
      store.append('a', 2),
    ])
    assert.deepEqual(before, { status: 'fulfilled', value: 1 })
    assert.ok(after.status === 'rejected' && LogError.is(after.reason, 'SEALED'))
    assert.deepEqual([after.reason.tail, after.reason.reason], [2, 'moved'])
  })

  test('an append over several logs is all or none, and says which entry was refused', async (t) => {
    const store = await TestStore.open(t, { ...SMALL, logs: ['a', 'b'] })
    await store.append('b', 1)
    const refused: (number | undefined)[] = []
    const many = new Promise<Offset[]>((committed, reject) => {
      const parts = (['a', 'b', 'a'] as const).map((logId) => ({
        cell: store.cell(logId),
        payload: 'x',
        keys: undefined,
        expectedTail: 1,
      }))
      const failed = (error: LogError, at: number | undefined): void => {
        refused.push(at)
        reject(error)
      }
      store.store.appendMany(parts, undefined, { committed, failed })
    })
    const error = await rejection(many, 'TAIL_MISMATCH')
    assert.deepEqual([error.tail, refused], [2, [1]])
    assert.deepEqual(await store.payloads('a'), [])
    assert.deepEqual(
      await store.appendMany([
        ['a', 1, 1],
        ['b', 2, 2],
        ['a', 3, 2],
      ]),
      [1, 2, 2],
    )
  })

  test('a thousand groups that are refused are settled, however the pace is', async (t) => {
    const dir = await temporaryDirectory(t)
    let now = 0
    // A clock that moves on with every look at it: the callers seem slow, so they are split.
    const clock = {
      now: () => now,
      monotonicNow: () => now++,
      setTimer: () => undefined,
      clearTimer: () => undefined,
    }
    const fileSystem = new NodeFileSystem()
    const options = resolveStoreOptions({ dir, batchCommitCount: 48 })
    const store = await LogStore.open(options, { fileSystem, clock })
    t.after(() => store.shutdown(5000))
    await store.createLogs(['a'])
    const cell = store.cell(1)
    assert.ok(cell)
    const append = (): Promise<Offset> =>
      new Promise((committed, failed) => {
        store.append(cell, 'x', undefined, undefined, { committed, failed })
      })
    const caller = async (): Promise<void> => {
      for (let i = 0; i < 10; i++) await append()
    }
    await Promise.all(Array.from({ length: 300 }, caller))
    const sealed = store.seal(cell, 'full')
    const outcomes = await Promise.allSettled(Array.from({ length: 150_000 }, append))
    await sealed
    const isSealed = (outcome: PromiseSettledResult<Offset>): boolean =>
      outcome.status === 'rejected' && LogError.is(outcome.reason, 'SEALED')
    assert.ok(outcomes.every(isSealed))
  })
})

describe('LogStoreWriter with a delay', () => {
  const DELAY = { ...SMALL, batchCommitDelayMs: 100 }

  async function delayed(t: TestContext): Promise<TestStore> {
    const store = await TestStore.open(t, DELAY)
    const created = store.store.createLogs(['a'])
    store.clock.tick(100)
    await created
    await store.whenQuiet()
    return store
  }

  test('A commit timer re-armed by every command: the first one decides when the group goes', async (t) => {
    const store = await delayed(t)
    const first = watch(store.append('a', 1))
    for (let i = 0; i < 9; i++) {
      store.clock.tick(10)
      void store.append('a', i).catch(() => undefined)
      await turn()
    }
    assert.equal(first.outcome, 'pending')
    const before = commits(store)
    store.clock.tick(10)
    await store.whenQuiet()
    assert.equal(first.outcome, 'resolved')
    assert.equal(commits(store), before + 1, 'with all that came meanwhile')
  })

  test('does not hold a group back that is full', async (t) => {
    const store = await TestStore.open(t, { ...DELAY, batchCommitCount: 3 })
    const created = store.store.createLogs(['a', 'b', 'c'])
    await created
    const appends = [1, 2, 3].map((i) => store.append('a', i))
    assert.deepEqual(await Promise.all(appends), [1, 2, 3])
  })

  test('A zero delay that still paid a 1 ms timer tick: no timer is set at all', async (t) => {
    const store = await TestStore.open(t, { ...SMALL, logs: ['a'] })
    const before = store.clock.timerCount
    let during = 0
    const append = store.append('a', 1)
    for (let i = 0; i < 3; i++) {
      await Promise.resolve()
      during = Math.max(during, store.clock.timerCount)
    }
    await append
    assert.equal(during, before)
  })
})
