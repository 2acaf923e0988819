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

  ask(count: number): void {
    for (let i = 0; i < count; i++) {
      const read = this.#next++
      this.#gate.run((done) => {
        this.started.push(read)
        this.#ends.push(done)
      })
    }
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
  test('starts a read at once while a thread is free for it', () => {
    const reads = new GatedReads(3)
    reads.ask(5)
    assert.deepEqual(reads.started, [0, 1, 2])
  })

  test('starts all of them, in call order', () => {
    for (const ms of [0.001, 5]) {
      const reads = new GatedReads(2)
      reads.ask(500)
      while (reads.underWay > 0) reads.end(ms)
      assert.deepEqual(
        reads.started,
        Array.from({ length: 500 }, (_, i) => i),
      )
    }
  })

  test('makes bursts longer while reads are fast, up to 64', () => {
    const reads = new GatedReads(1)
    reads.ask(1000)
    const bursts = Array.from({ length: 6 }, () => reads.end(0.05))
    assert.deepEqual(bursts, [8, 16, 32, 64, 64, 64])
  })

  test('goes one by one once a burst was slow, and tries a burst again after 64', () => {
    const reads = new GatedReads(1)
    reads.ask(1000)
    assert.equal(reads.end(0.05), 8)
    for (let i = 0; i < 64; i++) assert.equal(reads.end(0.5), 1)
    assert.equal(reads.end(0.1), 8)
    assert.equal(reads.end(0.1), 16)
  })

  test('has no more bursts under way than it may take threads', () => {
    const reads = new GatedReads(3)
    reads.ask(1000)
    reads.end(1)
    reads.end(1)
    assert.equal(reads.end(1), 3)
  })
})
