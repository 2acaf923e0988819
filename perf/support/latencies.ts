/** Latencies in an HDR histogram: 3 significant digits from 1 ns to a minute, mergeable. */
import {
  build,
  decodeFromCompressedBase64,
  encodeIntoCompressedBase64,
  type Histogram,
} from 'hdr-histogram-js'

const NANOS_PER_MS = 1e6
const GREATEST_NANOS = 60_000 * NANOS_PER_MS
const SHAPE = {
  bitBucketSize: 64,
  lowestDiscernibleValue: 1,
  highestTrackableValue: GREATEST_NANOS,
  numberOfSignificantValueDigits: 3,
} as const

/** Percentiles in milliseconds. */
export interface Percentiles {
  readonly count: number
  readonly mean: number
  readonly p50: number
  readonly p99: number
  readonly p999: number
  readonly max: number
}

export class Latencies {
  readonly #histogram: Histogram = build(SHAPE)

  record(ms: number): void {
    const nanos = Math.round(ms * NANOS_PER_MS)
    this.#histogram.recordValue(Math.min(GREATEST_NANOS, Math.max(1, nanos)))
  }

  /** As text that every HDR library reads, in nanoseconds. */
  encode(): string {
    return encodeIntoCompressedBase64(this.#histogram)
  }

  /** Adds what another one recorded. */
  merge(encoded: string): void {
    this.#histogram.add(decodeFromCompressedBase64(encoded))
  }

  percentiles(): Percentiles {
    const at = (percentile: number): number =>
      this.#histogram.getValueAtPercentile(percentile) / NANOS_PER_MS
    return {
      count: this.#histogram.totalCount,
      mean: this.#histogram.mean / NANOS_PER_MS,
      p50: at(50),
      p99: at(99),
      p999: at(99.9),
      max: this.#histogram.maxValue / NANOS_PER_MS,
    }
  }
}

/** Everything that was recorded in several rounds. */
export function merged(encoded: readonly string[]): Latencies {
  const all = new Latencies()
  for (const one of encoded) all.merge(one)
  return all
}
