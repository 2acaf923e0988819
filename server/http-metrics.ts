/** What the server counts of its requests, cheap enough to be counted always. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

/** Any other method is counted as OTHER: names that clients invent would fill the memory. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS'])
const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** What is asked of the handler when the metrics are collected. */
export interface HttpGauges {
  readonly streams: () => number
  readonly liveReaders: () => number
  readonly bodyBytes: () => number
}

export class HttpMetrics {
  readonly #requests: Counter<'method' | 'status'>
  readonly #durations: Histogram<'method'>
  /** Labels are looked up once. */
  readonly #counts = new Map<string, Counter.Internal>()
  readonly #timings = new Map<string, Histogram.Internal<'method'>>()

  constructor(registry: Registry, gauges: HttpGauges) {
    const registers = [registry]
    this.#requests = new Counter({
      name: 'bifrost_http_requests_total',
      help: 'Requests that were answered',
      labelNames: ['method', 'status'],
      registers,
    })
    this.#durations = new Histogram({
      name: 'bifrost_http_request_duration_seconds',
      help: 'From a request to its reply; long-polls wait, and event streams are not in here',
      labelNames: ['method'],
      buckets: SECONDS,
      registers,
    })
    const gauge = (name: string, help: string, read: () => number): void => {
      new Gauge({
        name,
        help,
        registers,
        collect(): void {
          this.set(read())
        },
      })
    }
    gauge('bifrost_http_streams', 'Streams', gauges.streams)
    gauge('bifrost_http_live_readers', 'Clients that wait for data', gauges.liveReaders)
    gauge('bifrost_http_body_bytes', 'Bytes of request bodies in memory', gauges.bodyBytes)
  }

  /** A request was answered, `ms` after it came. */
  answered(method: string, status: number, ms: number): void {
    const known = METHODS.has(method) ? method : 'OTHER'
    this.#count(known, String(status)).inc()
    this.#timing(known).observe(ms / 1000)
  }

  #count(method: string, status: string): Counter.Internal {
    const key = `${method} ${status}`
    let count = this.#counts.get(key)
    if (count === undefined) this.#counts.set(key, (count = this.#requests.labels(method, status)))
    return count
  }

  #timing(method: string): Histogram.Internal<'method'> {
    let timing = this.#timings.get(method)
    if (timing === undefined) this.#timings.set(method, (timing = this.#durations.labels(method)))
    return timing
  }
}
