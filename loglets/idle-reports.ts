/** What a store reports while there is nothing to report. */
import { Histogram } from '../engine/histogram.ts'
import type { Metrics, RecoveryReport } from '../engine/metrics.ts'

/** The report of a provider that recovers nothing, or has not started. */
export const NOTHING_RECOVERED: RecoveryReport = Object.freeze({
  droppedBytes: 0,
  droppedFrames: 0,
  metadataRebuilt: false,
  durationMs: 0,
  findings: Object.freeze([]),
})

const NONE = Object.freeze(new Histogram().snapshot())

/** The metrics of a provider that has done nothing yet. */
export const IDLE_METRICS: Metrics = Object.freeze({
  bifrost_localloglet_appends_total: 0,
  bifrost_localloglet_append_duration_seconds: NONE,
  bifrost_localloglet_write_batch_count: NONE,
  bifrost_localloglet_write_batch_size_bytes: NONE,
  bifrost_localloglet_sync_duration_seconds: NONE,
  bifrost_localloglet_queue_bytes: 0,
  bifrost_localloglet_waiting_bytes: 0,
  bifrost_localloglet_trims_total: 0,
  bifrost_recovery_dropped_bytes_total: 0,
  bifrost_segments: 0,
  bifrost_disk_bytes: 0,
})
