/** A gate for tasks: never more at a time than it was told, first come first. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ThreadGate } from '../../engine/thread-gate.ts'
import { turn } from '../support/test-store.ts'

/** Runs so many tasks at once; resolves with the most that ran at a time, and their order. */
async function runMany(
  gate: ThreadGate,
  tasks: number,
): Promise<{ readonly most: number; readonly order: number[] }> {
  let running = 0
  let most = 0
  const order: number[] = []
  const run = (i: number): Promise<void> =>
    gate.run(async () => {
      order.push(i)
      running++
      most = Math.max(most, running)
      await turn()
      running--
    })
  await Promise.all(Array.from({ length: tasks }, (_, i) => run(i)))
  return { most, order }
}

describe('ThreadGate.run()', () => {
  test('never runs more tasks than there are threads, and serves them in call order', async () => {
    for (const threads of [1, 3]) {
      const { most, order } = await runMany(new ThreadGate(threads), 20)
      assert.equal(most, threads)
      assert.deepEqual(
        order,
        Array.from({ length: 20 }, (_, i) => i),
      )
    }
  })

  test('settles as the task does, and gives the thread back when it fails', async () => {
    const gate = new ThreadGate(1)
    assert.equal(await gate.run(() => Promise.resolve(7)), 7)
    const failure = new Error('the task failed')
    for (let i = 0; i < 3; i++) {
      await assert.rejects(
        gate.run(() => Promise.reject(failure)),
        failure,
      )
    }
    assert.equal(await gate.run(() => Promise.resolve(8)), 8)
  })

  test('gives a thread back to one that waits, not to one that comes later', async () => {
    const gate = new ThreadGate(1)
    const order: string[] = []
    const first = gate.run(async () => turn())
    const waits = gate.run(async () => void order.push('waits'))
    await first
    const late = gate.run(async () => void order.push('late'))
    await Promise.all([waits, late])
    assert.deepEqual(order, ['waits', 'late'])
  })
})
