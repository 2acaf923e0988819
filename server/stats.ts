/** What the page shows, as JSON: the store's measures, and its logs with tails and trim points. */
import type { Bifrost } from '../index.ts'
import type { CommitWatch } from './commit-watch.ts'
import type { HttpReply, HttpRequest } from './exchange.ts'
import type { HandlerParts } from './handler-parts.ts'
import { LOG_PREFIX } from './stream-entry.ts'
import type { Stream } from './stream.ts'

/** Logs in one answer, the newest first; `match` finds others. */
const MAX_LOGS = 200
const MAX_MATCH_LENGTH = 256

interface LogStats {
  readonly name: string
  readonly tail: number
  readonly trimPoint: number
  readonly sealed: boolean
  /** For the log of a stream. */
  readonly stream?: { readonly contentType: string; readonly closed: boolean } | undefined
}

export async function statsReply(
  { bifrost, streams, liveReaders }: HandlerParts,
  commits: CommitWatch,
  request: HttpRequest,
): Promise<HttpReply> {
  const match = new URLSearchParams(request.query).get('match')?.slice(0, MAX_MATCH_LENGTH) ?? ''
  const byLog = new Map(Array.from(streams.streams(), (stream) => [stream.logId, stream]))
  const logIds = bifrost.logIds()
  const matching = match === '' ? logIds : logIds.filter((logId) => logId.includes(match))
  const shown = matching.slice(-MAX_LOGS).reverse()
  const logs = await Promise.all(shown.map((logId) => logStats(bifrost, logId, byLog.get(logId))))
  const { status, failure, recovery } = bifrost
  const stats = {
    status,
    failure: failure?.code,
    recovery,
    uptimeSeconds: Math.round(process.uptime()),
    metrics: bifrost.metrics(),
    commits: commits.histograms(),
    streams: streams.size,
    liveReaders: liveReaders.size,
    logCount: logIds.length,
    matchCount: matching.length,
    logs: logs.filter((log) => log !== undefined),
  }
  const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' }
  return { status: 200, headers, body: JSON.stringify(stats) }
}

/** Undefined for a log that was deleted meanwhile. */
async function logStats(
  bifrost: Bifrost,
  logId: string,
  stream: Stream | undefined,
): Promise<LogStats | undefined> {
  try {
    const [tail, trimPoint] = await Promise.all([
      bifrost.findTail(logId),
      bifrost.getTrimPoint(logId),
    ])
    const { contentType, isClosed: closed } = stream?.entry ?? {}
    return {
      name: stream === undefined ? logId : logId.slice(LOG_PREFIX.length + 1),
      tail: tail.lsn,
      trimPoint,
      sealed: tail.sealed,
      stream: contentType === undefined ? undefined : { contentType, closed: closed === true },
    }
  } catch {
    return undefined
  }
}
