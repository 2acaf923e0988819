/**
 * The statistics of the benchmarks. A shared machine drifts, so two sides are compared round by
 * round, each round's two measurements being close in time, and what is reported is the median of
 * those ratios with its quartiles. A mean would follow the one round that a neighbour disturbed.
 */
import assert from 'node:assert/strict'

/** The middle of some measurements, and between what half of them lie. */
export interface Spread {
  readonly median: number
  /** The first quartile. */
  readonly low: number
  /** The third quartile. */
  readonly high: number
}

/** The value below which a fraction of the values lie, interpolated between neighbours. */
export function quantile(values: readonly number[], fraction: number): number {
  assert(values.length > 0, 'There is no quantile of nothing')
  const sorted = [...values].sort((a, b) => a - b)
  const place = (sorted.length - 1) * fraction
  const below = Math.floor(place)
  const low = sorted[below] as number
  const high = sorted[Math.min(below + 1, sorted.length - 1)] as number
  return low + (high - low) * (place - below)
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

export function spreadOf(values: readonly number[]): Spread {
  return {
    median: median(values),
    low: quantile(values, 0.25),
    high: quantile(values, 0.75),
  }
}

/** The spread of ours / theirs, round by round. */
export function ratioOf(ours: readonly number[], theirs: readonly number[]): Spread {
  assert.equal(ours.length, theirs.length, 'Both sides take part in every round')
  return spreadOf(ours.map((value, round) => value / (theirs[round] as number)))
}

/** The spread of ours - theirs, round by round. */
export function differenceOf(ours: readonly number[], theirs: readonly number[]): Spread {
  assert.equal(ours.length, theirs.length, 'Both sides take part in every round')
  return spreadOf(ours.map((value, round) => value - (theirs[round] as number)))
}

/** The index of the series with the greatest median. */
export function indexOfBest(series: readonly (readonly number[])[]): number {
  assert(series.length > 0, 'The best of nothing is nothing')
  const medians = series.map(median)
  return medians.indexOf(Math.max(...medians))
}
