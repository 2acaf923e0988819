/** What the benchmarks make of their measurements. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  differenceOf,
  indexOfBest,
  median,
  quantile,
  ratioOf,
  spreadOf,
} from '../../perf/support/statistics.ts'

describe('statistics', () => {
  it('median() takes the middle, or the mean of the two middle ones, in any order', () => {
    assert.equal(median([3, 1, 2]), 2)
    assert.equal(median([4, 1, 3, 2]), 2.5)
    assert.equal(median([7]), 7)
  })

  it('median() is not moved by one wild round', () => {
    assert.equal(median([10, 11, 1_000_000]), 11)
  })

  it('quantile() interpolates between neighbours and reaches both ends', () => {
    const values = [10, 20, 30, 40, 50]
    assert.equal(quantile(values, 0), 10)
    assert.equal(quantile(values, 0.25), 20)
    assert.equal(quantile(values, 0.9), 46)
    assert.equal(quantile(values, 1), 50)
  })

  it('quantile() leaves the values as they stand', () => {
    const values = [3, 1, 2]
    quantile(values, 0.5)
    assert.deepEqual(values, [3, 1, 2])
  })

  it('quantile() of nothing is a bug', () => {
    assert.throws(() => quantile([], 0.5), assert.AssertionError)
  })

  it('spreadOf() gives median and quartiles', () => {
    assert.deepEqual(spreadOf([5, 4, 3, 2, 1]), { median: 3, low: 2, high: 4 })
  })

  it('ratioOf() compares round by round, so that a drift of the machine cancels out', () => {
    const theirs = [100, 10, 1000]
    const ours = theirs.map((value) => value * 2)
    assert.deepEqual(ratioOf(ours, theirs), { median: 2, low: 2, high: 2 })
  })

  it('differenceOf() compares round by round', () => {
    assert.equal(differenceOf([5, 9, 8], [1, 2, 3]).median, 5)
  })

  it('ratioOf() of different numbers of rounds is a bug', () => {
    assert.throws(() => ratioOf([1, 2], [1]), assert.AssertionError)
  })

  it('indexOfBest() goes by the median, not by the best round', () => {
    const series = [
      [1, 1, 100],
      [5, 6, 7],
      [2, 3, 4],
    ]
    assert.equal(indexOfBest(series), 1)
  })
})
