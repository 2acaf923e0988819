/** Histograms: exact sums and counts, percentiles within 1.6 %, whatever is recorded. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { Histogram } from '../../engine/histogram.ts'

/** The value at a rank of sorted values, as a percentile is defined. */
function exact(sorted: readonly number[], fraction: number): number {
  return sorted[Math.max(0, Math.ceil(sorted.length * fraction) - 1)] as number
}

const values = fc.array(fc.oneof(fc.nat(200), fc.nat(), fc.maxSafeNat()), {
  minLength: 1,
  maxLength: 300,
})

describe('Histogram', () => {
  test('snapshot() is all zeros while nothing was recorded', () => {
    const names = ['count', 'sum', 'min', 'max', 'mean', 'p50', 'p90', 'p99', 'p999']
    const expected = Object.fromEntries(names.map((name) => [name, 0]))
    assert.deepEqual({ ...new Histogram().snapshot() }, expected)
  })

  test('snapshot() has exact count, sum, minimum, maximum and mean', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(1_000_000), { minLength: 1 }), (some) => {
        const histogram = new Histogram()
        for (const value of some) histogram.record(value)
        const { count, sum, min, max, mean } = histogram.snapshot()
        const total = some.reduce((a, b) => a + b, 0)
        assert.deepEqual(
          { count, sum, min, max, mean },
          {
            count: some.length,
            sum: total,
            min: Math.min(...some),
            max: Math.max(...some),
            mean: total / some.length,
          },
        )
      }),
    )
  })

  test('snapshot() has percentiles within 1/64 of the value, and never below it', () => {
    fc.assert(
      fc.property(values, (some) => {
        const histogram = new Histogram()
        for (const value of some) histogram.record(value)
        const sorted = [...some].sort((a, b) => a - b)
        const { p50, p90, p99, p999 } = histogram.snapshot()
        for (const [found, fraction] of [
          [p50, 0.5],
          [p90, 0.9],
          [p99, 0.99],
          [p999, 0.999],
        ] as const) {
          const value = exact(sorted, fraction)
          assert.ok(found >= value && found <= value * (1 + 1 / 64), `${found} for ${value}`)
        }
      }),
    )
  })

  test('snapshot() has exact percentiles below 64, 0 included', () => {
    const histogram = new Histogram()
    for (let value = 0; value < 64; value++) histogram.record(value)
    const { min, p50, p90, max } = histogram.snapshot()
    assert.deepEqual([min, p50, p90, max], [0, 31, 57, 63])
  })

  test('snapshot() multiplies everything but the count by the unit', () => {
    const histogram = new Histogram()
    histogram.record(2_000_000_000)
    const { count, sum, min, max, mean, p50 } = histogram.snapshot(1e-9)
    assert.deepEqual([count, sum, min, max, mean, p50], [1, 2, 2, 2, 2, 2])
  })

  test('record() takes the greatest safe integer', () => {
    const histogram = new Histogram()
    histogram.record(Number.MAX_SAFE_INTEGER)
    assert.equal(histogram.snapshot().p50, Number.MAX_SAFE_INTEGER)
  })
})
