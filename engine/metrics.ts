/** What a store counts and reports. Names and shapes are part of the public API. */

/** Seconds for durations, bytes and counts for the others. All zero while `count` is 0. */
export interface HistogramSnapshot {
  readonly count: number
  readonly sum: number
  readonly min: number
  readonly max: number
  readonly mean: number
  readonly p50: number
  readonly p90: number
  readonly p99: number
  readonly p999: number
}

export interface Metrics {
  /** Appended records that were acknowledged. */
  readonly bifrost_localloglet_appends_total: number
  /** From the call of an append to its acknowledgement. */
  readonly bifrost_localloglet_append_duration_seconds: HistogramSnapshot
  /** Records per group commit; state updates are not records. */
  readonly bifrost_localloglet_write_batch_count: HistogramSnapshot
  /** Bytes per group commit. */
  readonly bifrost_localloglet_write_batch_size_bytes: HistogramSnapshot
  readonly bifrost_localloglet_sync_duration_seconds: HistogramSnapshot
  /** Bytes admitted and not yet in a group. */
  readonly bifrost_localloglet_queue_bytes: number
  /** Bytes of appends that wait for room in the queue. */
  readonly bifrost_localloglet_waiting_bytes: number
  readonly bifrost_localloglet_trims_total: number
  /** Torn bytes that recovery dropped at open. */
  readonly bifrost_recovery_dropped_bytes_total: number
  readonly bifrost_segments: number
  /** Bytes of all files of the store. */
  readonly bifrost_disk_bytes: number
}

/** The rows of the recovery table (docs/durability.md). */
export type RecoveryLabel = 'R1' | 'R2' | 'R3' | 'R4' | 'R5' | 'R6' | 'R7' | 'R8' | 'R9'

export interface RecoveryFinding {
  readonly label: RecoveryLabel
  readonly file: string
  readonly position: number
  readonly message: string
}

/** What opening a store found and did. */
export interface RecoveryReport {
  readonly droppedBytes: number
  readonly droppedFrames: number
  readonly metadataRebuilt: boolean
  readonly durationMs: number
  readonly findings: readonly RecoveryFinding[]
}
