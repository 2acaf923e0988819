/** Puts what a store measures into a prom-client registry, under the names that the store gives. */
import { Counter, Gauge, Summary, type Registry } from 'prom-client'
import type { Bifrost, HistogramSnapshot, Metrics } from '../index.ts'

type NamesOf<T> = { [Name in keyof Metrics]: Metrics[Name] extends T ? Name : never }[keyof Metrics]
type NumberName = NamesOf<number>
type HistogramName = NamesOf<HistogramSnapshot>

const COUNTERS = {
  bifrost_localloglet_appends_total: 'Appended records that were acknowledged',
  bifrost_localloglet_trims_total: 'Trims that moved a trim point',
  bifrost_recovery_dropped_bytes_total: 'Torn bytes that recovery dropped at open',
} satisfies Partial<Record<NumberName, string>>

const GAUGES = {
  bifrost_localloglet_queue_bytes: 'Bytes admitted and not yet in a group commit',
  bifrost_localloglet_waiting_bytes: 'Bytes of appends that wait for room in the queue',
  bifrost_segments: 'Segment files',
  bifrost_disk_bytes: 'Bytes of all files of the store',
} satisfies Record<Exclude<NumberName, keyof typeof COUNTERS>, string>

const SUMMARIES = {
  bifrost_localloglet_append_duration_seconds: 'From an append to its acknowledgement',
  bifrost_localloglet_write_batch_count: 'Records per group commit',
  bifrost_localloglet_write_batch_size_bytes: 'Bytes per group commit',
  bifrost_localloglet_sync_duration_seconds: 'The write and sync of a group commit',
} satisfies Record<HistogramName, string>

/**
 * Registers the metrics of `bifrost.metrics()`. They are read when they are collected, so this
 * costs appends nothing. Throws if the registry has a metric of one of the names.
 *
 * @example
 * ```ts
 * import { Registry } from 'prom-client'
 * const registry = new Registry()
 * registerMetrics(registry, bifrost)
 * console.log(await registry.metrics())
 * ```
 */
export function registerMetrics(registry: Registry, bifrost: Bifrost): void {
  const read = onceAtATime(() => bifrost.metrics())
  const registers = [registry]
  for (const [name, help] of entriesOf(COUNTERS)) {
    new Counter({
      name,
      help,
      registers,
      collect(): void {
        this.reset()
        this.inc(read()[name])
      },
    })
  }
  for (const [name, help] of entriesOf(GAUGES)) {
    new Gauge({
      name,
      help,
      registers,
      collect(): void {
        this.set(read()[name])
      },
    })
  }
  for (const [name, help] of entriesOf(SUMMARIES)) {
    new SnapshotSummary(registry, name, help, () => read()[name])
  }
}

function entriesOf<Name extends string>(help: Readonly<Record<Name, string>>): [Name, string][] {
  return Object.entries(help) as [Name, string][]
}

/** A scrape collects all metrics in one go: they share one reading. */
function onceAtATime<T extends object>(read: () => T): () => T {
  let reading: T | undefined
  return () => {
    if (reading === undefined) queueMicrotask(() => (reading = undefined))
    reading ??= read()
    return reading
  }
}

type SummaryValues = Awaited<ReturnType<Summary['get']>>

/** A summary whose quantiles, sum and count were measured elsewhere. */
class SnapshotSummary extends Summary {
  readonly #name: string
  readonly #read: () => HistogramSnapshot

  constructor(registry: Registry, name: string, help: string, read: () => HistogramSnapshot) {
    super({ name, help, registers: [registry] })
    this.#name = name
    this.#read = read
  }

  override async get(): Promise<SummaryValues> {
    const { p50, p90, p99, p999, sum, count } = this.#read()
    const quantiles = Object.entries({ 0.5: p50, 0.9: p90, 0.99: p99, 0.999: p999 })
    const values = [
      ...quantiles.map(([quantile, value]) => ({ labels: { quantile }, value })),
      { metricName: `${this.#name}_sum`, labels: {}, value: sum },
      { metricName: `${this.#name}_count`, labels: {}, value: count },
    ]
    return { ...(await super.get()), values }
  }
}
