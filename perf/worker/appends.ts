/** Tasks that append: for a while, or a number of records. */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Counters } from '../stores/store.ts'
import { Latencies } from '../support/latencies.ts'
import { load, loadCount, type Call } from './load.ts'
import type { Session } from './session.ts'

/** How the four records of a small invocation are appended; 'single' is one record at a time. */
export type Shape = 'single' | 'four' | 'batch' | 'stream'

const BURST_RECORDS = 4
const NANOS_PER_MS = 1e6

export interface AppendArguments {
  readonly callers: number
  readonly size: number
  readonly ms: number
  /** How long the callers run before anything is counted. */
  readonly leadMs: number
  readonly shape?: Shape | undefined
  /** Whether each call is timed, which costs some 100 ns of it. */
  readonly timed?: boolean | undefined
  /** Whether the delay of the event loop is watched. */
  readonly watched?: boolean | undefined
}

export interface AppendResult {
  readonly records: number
  readonly seconds: number
  /** HDR histogram of the calls, if they were timed. */
  readonly latencies: string | undefined
  /** What the store has counted meanwhile. */
  readonly counted: Counters | undefined
  /** In ms, if it was watched: what a timer of 1 ms came too late by, at the 99th percentile. */
  readonly loopDelayP99: number | undefined
  /** The share of the time in which the thread did something; it waited for the disk else. */
  readonly busy: number
  /** Of all threads of the process, per record. */
  readonly cpuMicros: number
}

export async function appends(session: Session, args: AppendArguments): Promise<AppendResult> {
  await session.renew()
  const call = callOf(session, args)
  await load(call, args.callers, args.leadMs)
  const latencies = args.timed === true ? new Latencies() : undefined
  const before = session.store.counters()
  const delay = watchLoop(args.watched === true)
  const cpu = watchCpu()
  const timed = latencies === undefined ? call : timing(call, latencies)
  const { calls, seconds } = await load(timed, args.callers, args.ms)
  const records = calls * recordsOf(args.shape)
  const result = {
    records,
    seconds,
    latencies: latencies?.encode(),
    counted: difference(session.store.counters(), before),
    loopDelayP99: delay(),
    ...cpu(records),
  }
  session.appended(records * args.size)
  return result
}

function recordsOf(shape: Shape | undefined): number {
  return shape === undefined || shape === 'single' ? 1 : BURST_RECORDS
}

function callOf(session: Session, { shape, size }: AppendArguments): Call {
  const payloads = session.payloadsOf(size)
  // The store may be replaced between rounds, but not within one.
  const { store } = session
  switch (shape ?? 'single') {
    case 'single':
      return () => store.append(session.nextLog(), payloads.next())
    case 'four':
      return () => {
        const log = session.nextLog()
        return Promise.all(payloads.take(BURST_RECORDS).map((one) => store.append(log, one)))
      }
    case 'batch':
      return () => session.bifrost.appendBatch(session.nextLog(), payloads.take(BURST_RECORDS))
    case 'stream':
      return () => session.bifrost.appendStream(session.nextLog(), payloads.take(BURST_RECORDS))
  }
}

function timing(call: Call, latencies: Latencies): Call {
  return async () => {
    const startedAt = performance.now()
    await call()
    latencies.record(performance.now() - startedAt)
  }
}

/** Watches what the process does until the returned function is called with the records it did. */
function watchCpu(): (records: number) => Pick<AppendResult, 'busy' | 'cpuMicros'> {
  const loop = performance.eventLoopUtilization()
  const cpu = process.cpuUsage()
  return (records) => {
    const { user, system } = process.cpuUsage(cpu)
    const { utilization } = performance.eventLoopUtilization(loop)
    return { busy: utilization, cpuMicros: (user + system) / records }
  }
}

/** Watches the event loop until the returned function is called. */
function watchLoop(isWanted: boolean): () => number | undefined {
  if (!isWanted) return () => undefined
  const histogram = monitorEventLoopDelay({ resolution: 1 })
  histogram.enable()
  return () => {
    histogram.disable()
    return histogram.percentile(99) / NANOS_PER_MS
  }
}

function difference(
  after: Counters | undefined,
  before: Counters | undefined,
): Counters | undefined {
  if (after === undefined || before === undefined) return undefined
  return { records: after.records - before.records, syncs: after.syncs - before.syncs }
}

export interface FillArguments {
  readonly records: number
  readonly size: number
  readonly callers: number
  /** Bifrost only: records in one `appendBatch`. Default 1, by `append`. */
  readonly batch?: number | undefined
}

/** Appends so many records, to each log in turn; resolves with the seconds that it took. */
export async function fill(session: Session, args: FillArguments): Promise<number> {
  const { records, size, callers, batch = 1 } = args
  const { store } = session
  const payloads = session.payloadsOf(size)
  const call: Call =
    batch === 1
      ? () => store.append(session.nextLog(), payloads.next())
      : () => session.bifrost.appendBatch(session.nextLog(), payloads.take(batch))
  const { seconds } = await loadCount(call, callers, Math.ceil(records / batch))
  return seconds
}
