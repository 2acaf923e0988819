/** PUT: makes sure that a stream is there, as it is wanted. */
import { DEFAULT_CONTENT_TYPE, essenceOf, requireContentType } from './content-type.ts'
import type { HttpReply, HttpRequest } from './exchange.ts'
import { planFork, type ForkPlan } from './fork.ts'
import type { HandlerParts } from './handler-parts.ts'
import { HttpError } from './http-error.ts'
import { messagesOf } from './messages.ts'
import { formatOffset } from './offset.ts'
import { closesStream, lifetime } from './request-headers.ts'
import type { StreamPlan } from './stream-directory.ts'
import { streamPath } from './stream-path.ts'
import type { StreamEntry } from './stream-entry.ts'

export async function createStream(parts: HandlerParts, request: HttpRequest): Promise<HttpReply> {
  const path = streamPath(request.path)
  const wanted = requestedConfig(request)
  const body = await request.body(parts.limits.maxBodyBytes)
  const fork = await planFork(parts, request, path, wanted.contentType)
  const plan = planOf(parts, path, wanted, fork, body)
  const { stream, isNew } = await parts.streams.ensure(path, () => plan)
  if (!isNew) requireSame(stream.entry, plan.entry)
  const { offset } = await stream.tail()
  const headers: Record<string, string> = {
    'content-type': stream.entry.contentType,
    'stream-next-offset': formatOffset(offset),
  }
  if (stream.entry.isClosed) headers['stream-closed'] = 'true'
  if (isNew) headers['location'] = `${request.root}${request.path}`
  return { status: isNew ? 201 : 200, headers }
}

interface RequestedConfig {
  readonly contentType: string | undefined
  readonly ttlSeconds: number | undefined
  readonly expiresAtMs: number | undefined
  readonly isClosed: boolean
}

function requestedConfig(request: HttpRequest): RequestedConfig {
  const type = request.header('content-type')
  return {
    contentType: type === undefined || type === '' ? undefined : requireContentType(type),
    ...lifetime(request),
    isClosed: closesStream(request),
  }
}

function planOf(
  parts: HandlerParts,
  path: string,
  wanted: RequestedConfig,
  fork: ForkPlan | undefined,
  body: Uint8Array,
): StreamPlan {
  const inherited = fork?.source.entry
  const contentType = wanted.contentType ?? inherited?.contentType ?? DEFAULT_CONTENT_TYPE
  const isMortal = wanted.ttlSeconds !== undefined || wanted.expiresAtMs !== undefined
  const { ttlSeconds, expiresAtMs } = isMortal ? wanted : (inherited ?? wanted)
  const messages = messagesOf(body, contentType, parts.limits.maxMessages)
  return {
    entry: {
      path,
      contentType,
      ttlSeconds,
      expiresAtMs,
      isClosed: wanted.isClosed,
      fork: fork?.entry,
    },
    source: fork?.source,
    messages: [...(fork?.prefix ?? []), ...messages],
  }
}

/** Whether the stream that is there is the one that was asked for. Throws 409. */
function requireSame(entry: StreamEntry, wanted: StreamPlan['entry']): void {
  const isSame =
    !entry.isGone &&
    essenceOf(entry.contentType) === essenceOf(wanted.contentType) &&
    entry.ttlSeconds === wanted.ttlSeconds &&
    entry.expiresAtMs === wanted.expiresAtMs &&
    entry.isClosed === wanted.isClosed &&
    entry.fork?.sourcePath === wanted.fork?.sourcePath &&
    entry.fork?.requestedOffset === wanted.fork?.requestedOffset &&
    entry.fork?.requestedSubOffset === wanted.fork?.requestedSubOffset
  if (isSame) return
  throw new HttpError(409, 'STREAM_EXISTS', 'There is another stream here', {
    headers: entry.isClosed ? { 'stream-closed': 'true' } : undefined,
  })
}
