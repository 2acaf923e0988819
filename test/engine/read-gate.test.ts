/**
 * The gate that keeps a thread of the pool free for commits: reads that are fast go out in bursts,
 * those that wait for the disk one by one.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ReadGate } from '../../engine/read-gate.ts'

/** A gate, and reads that end when they are told to, by a clock that stands still. */
class GatedReads {
  nowMs = 0
  readonly started: number[] = []
  readonly #gate: ReadGate
  #ends: (() => void)[] = []
  #next = 0

  constructor(threads: number) {
    this.#gate = new ReadGate(threads, () => this.nowMs)
  }

  /** Resolves once those that may have been started. */
  async ask(count: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      const read = this.#next++
      this.#gate.run((done) => {
        this.started.push(read)
        this.#ends.push(done)
      })
    }
    await Promise.resolve()
  }

  get underWay(): number {
    return this.#ends.length
  }

  /** Ends what is under way, after a time; returns how many reads are under way then. */
  end(ms: number): number {
    const ends = this.#ends
    this.#ends = []
    this.nowMs += ms
    for (const end of ends) end()
    return this.underWay
  }
}

describe('ReadGate.run()', () => {
  test('starts a read at once while a thread is free for it', async () => {
    const reads = new GatedReads(3)
    for (let i = 1; i <= 5; i++) {
      await reads.ask(1)
      assert.equal(reads.started.length, Math.min(i, 3))
    }
  })

  test('starts all of them, in call order', async () => {
    for (const ms of [0.001, 5]) {
      const reads = new GatedReads(2)
      await reads.ask(500)
      while (reads.underWay > 0) reads.end(ms)
      assert.deepEqual(
        reads.started,
        Array.from({ length: 500 }, (_, i) => i),
      )
    }
  })

  test('makes bursts longer while reads are fast, up to 32', async () => {
    const reads = new GatedReads(1)
    await reads.ask(1000)
    assert.equal(reads.underWay, 8)
    const bursts = Array.from({ length: 4 }, () => reads.end(0.05))
    assert.deepEqual(bursts, [16, 32, 32, 32])
  })

  test('goes one by one once a burst was slow, and tries a burst again after 64', async () => {
    const reads = new GatedReads(1)
    await reads.ask(1000)
    assert.equal(reads.end(1), 1)
    for (let i = 1; i < 64; i++) assert.equal(reads.end(0.01), 1)
    assert.equal(reads.end(0.01), 8)
    assert.equal(reads.end(0.1), 16)
  })

  test('has no more bursts under way than it may take threads, and one while they are slow', async () => {
    const reads = new GatedReads(3)
    await reads.ask(1000)
    assert.equal(reads.underWay, 3 * 8)
    assert.equal(reads.end(1), 1)
    assert.equal(reads.end(1), 1)
  })
})
