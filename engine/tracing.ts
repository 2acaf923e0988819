/**
 * The tracing channels of node:diagnostics_channel: `bifrost:append` and `bifrost:commit`. While
 * nobody listens they cost a look at a flag. `start` and `end` stand around the call, `asyncStart`
 * and `asyncEnd` around the outcome, `error` comes before them if there is one.
 */
import { tracingChannel, type TracingChannel } from 'node:diagnostics_channel'

/** What a message on `bifrost:append` carries; `first` is there once it is durable. */
export interface AppendTrace {
  readonly logId: string
  readonly records: number
  first?: number
  error?: unknown
}

/** What a message on `bifrost:commit` carries. */
export interface CommitTrace {
  readonly group: number
  readonly segment: number
  readonly records: number
  readonly bytes: number
  error?: unknown
}

const appends: TracingChannel<unknown, AppendTrace> = tracingChannel('bifrost:append')
const commits: TracingChannel<unknown, CommitTrace> = tracingChannel('bifrost:commit')

/** Whether anybody listens to a channel at all. */
function isWatched(channel: TracingChannel<unknown, object>): boolean {
  const { start, end, asyncStart, asyncEnd, error } = channel
  return (
    start.hasSubscribers ||
    asyncEnd.hasSubscribers ||
    error.hasSubscribers ||
    end.hasSubscribers ||
    asyncStart.hasSubscribers
  )
}

function begin<T extends object>(channel: TracingChannel<unknown, T>, trace: T): T | undefined {
  if (!isWatched(channel)) return undefined
  channel.start.publish(trace)
  channel.end.publish(trace)
  return trace
}

function finish<T extends { error?: unknown }>(
  channel: TracingChannel<unknown, T>,
  trace: T,
  error: unknown,
): void {
  if (error !== undefined) {
    trace.error = error
    channel.error.publish(trace)
  }
  channel.asyncStart.publish(trace)
  channel.asyncEnd.publish(trace)
}

/** An append was called; undefined if nobody listens. */
export function beginAppend(logId: string, records: number): AppendTrace | undefined {
  return begin(appends, { logId, records })
}

/** The append's outcome: the first offset, or an error. */
export function finishAppend(trace: AppendTrace, first: number | undefined, error: unknown): void {
  if (first !== undefined) trace.first = first
  finish(appends, trace, error)
}

/** A group is about to be written; undefined if nobody listens. */
export function beginCommit(trace: CommitTrace): CommitTrace | undefined {
  return begin(commits, trace)
}

/** The group's outcome: durable, or an error. */
export function finishCommit(trace: CommitTrace, error: unknown): void {
  finish(commits, trace, error)
}
