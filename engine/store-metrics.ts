/** What a store counts. Durations are recorded as whole nanoseconds and reported in seconds. */
import { Histogram } from './histogram.ts'
import type { Metrics } from './metrics.ts'

const NANOS_PER_MS = 1e6
const SECONDS_PER_NANO = 1e-9

/** What is asked of the store when metrics are read. */
export interface Gauges {
  readonly queueBytes: number
  readonly waitingBytes: number
  readonly segments: number
  readonly diskBytes: number
}

export class StoreMetrics {
  readonly #appendDuration = new Histogram()
  readonly #batchCount = new Histogram()
  readonly #batchBytes = new Histogram()
  readonly #syncDuration = new Histogram()
  #appends = 0
  #trims = 0
  readonly #droppedBytes: number

  constructor(droppedBytes: number) {
    this.#droppedBytes = droppedBytes
  }

  /** An append of `records` was acknowledged, `ms` after its call. */
  appended(records: number, ms: number): void {
    this.#appends += records
    this.#appendDuration.record(Math.round(ms * NANOS_PER_MS))
  }

  /** A group became durable. Groups of state updates only are no batches of records. */
  committed(records: number, bytes: number, syncMs: number): void {
    if (records > 0) this.#batchCount.record(records)
    this.#batchBytes.record(bytes)
    this.#syncDuration.record(Math.round(syncMs * NANOS_PER_MS))
  }

  /** A trim moved a trim point. */
  trimmed(): void {
    this.#trims++
  }

  snapshot(gauges: Gauges): Metrics {
    return {
      bifrost_localloglet_appends_total: this.#appends,
      bifrost_localloglet_append_duration_seconds: this.#appendDuration.snapshot(SECONDS_PER_NANO),
      bifrost_localloglet_write_batch_count: this.#batchCount.snapshot(),
      bifrost_localloglet_write_batch_size_bytes: this.#batchBytes.snapshot(),
      bifrost_localloglet_sync_duration_seconds: this.#syncDuration.snapshot(SECONDS_PER_NANO),
      bifrost_localloglet_queue_bytes: gauges.queueBytes,
      bifrost_localloglet_waiting_bytes: gauges.waitingBytes,
      bifrost_localloglet_trims_total: this.#trims,
      bifrost_recovery_dropped_bytes_total: this.#droppedBytes,
      bifrost_segments: gauges.segments,
      bifrost_disk_bytes: gauges.diskBytes,
    }
  }
}
