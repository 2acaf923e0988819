/** When groups are formed, by what the last ones took. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CommitPacing } from '../../engine/commit-pacing.ts'

/** Groups of so many commands, each synced in `syncMs`, after which the callers took `callersMs`. */
function run(
  pacing: CommitPacing,
  commands: number,
  syncMs: number,
  callersMs: number,
  bytes = 0,
): void {
  for (let i = 0; i < 100; i++) {
    pacing.landed(commands, bytes, syncMs)
    pacing.resumed(callersMs)
  }
}

test('CommitPacing waits for everybody when the sync takes longest', () => {
  const pacing = new CommitPacing()
  run(pacing, 256, 10, 0.2)
  assert.equal(pacing.isSplit, false)
  assert.equal(pacing.enough, Number.POSITIVE_INFINITY)
})

test('CommitPacing splits many callers whose work takes longer than a sync', () => {
  const pacing = new CommitPacing()
  run(pacing, 256, 0.3, 0.4)
  assert.equal(pacing.isSplit, true)
  assert.equal(pacing.enough, 128)
})

test('CommitPacing never splits few callers', () => {
  const pacing = new CommitPacing()
  run(pacing, 95, 0.1, 10)
  assert.equal(pacing.isSplit, false)
})

test('CommitPacing stays split with halves, and stops when the disk becomes slow', () => {
  const pacing = new CommitPacing()
  run(pacing, 256, 0.3, 0.4)
  run(pacing, 128, 0.3, 0.15)
  assert.equal(pacing.isSplit, true)
  run(pacing, 128, 5, 0.15)
  assert.equal(pacing.isSplit, false)
})

test('CommitPacing stops when the callers become few', () => {
  const pacing = new CommitPacing()
  run(pacing, 256, 0.3, 0.4)
  run(pacing, 20, 0.3, 0.3)
  assert.equal(pacing.isSplit, false)
})

test('CommitPacing does not split when one sync more costs all that it gains', () => {
  const pacing = new CommitPacing()
  run(pacing, 256, 0.17, 0.13)
  assert.equal(pacing.isSplit, false)
})

test('CommitPacing splits when it is the bytes that take the time', () => {
  const pacing = new CommitPacing()
  run(pacing, 256, 3, 1, 4 * 1024 * 1024)
  assert.equal(pacing.isSplit, true)
})
