/**
 * Forks: where a stream that starts with another's data leaves it. The data is not copied; reading
 * goes through the source's log first. Only when a fork starts within a message does it get that
 * message's beginning as a record of its own.
 */
import { essenceOf, isJson } from './content-type.ts'
import type { HttpRequest } from './exchange.ts'
import type { HandlerParts } from './handler-parts.ts'
import { badRequest, HttpError } from './http-error.ts'
import { START, type StreamOffset } from './offset.ts'
import { offsetHeader, wholeNumber } from './request-headers.ts'
import type { ForkEntry } from './stream-entry.ts'
import { streamPath } from './stream-path.ts'
import { readStretch, type Message } from './stream-reader.ts'
import type { Stream } from './stream.ts'

export interface ForkPlan {
  readonly source: Stream
  readonly entry: ForkEntry
  /** What the fork's own log starts with. */
  readonly prefix: readonly Uint8Array[]
}

/** Where the fork leaves its source. */
interface Seam {
  readonly base: StreamOffset
  readonly prefix: readonly Uint8Array[]
}

/** The fork that a request asks for; undefined if it asks for none. Throws 400, 404 and 409. */
export async function planFork(
  parts: HandlerParts,
  request: HttpRequest,
  path: string,
  contentType: string | undefined,
): Promise<ForkPlan | undefined> {
  const sourcePath = forkedFrom(request)
  if (sourcePath === undefined) return undefined
  if (sourcePath === path) throw badRequest('A stream is no fork of itself')
  const requestedSubOffset = subOffset(request)
  const source = await findSource(parts, sourcePath)
  if (contentType !== undefined && essenceOf(contentType) !== essenceOf(source.entry.contentType)) {
    throw new HttpError(409, 'CONTENT_TYPE_MISMATCH', 'The source is of another Content-Type')
  }
  source.touch()
  const requested = offsetHeader(request, 'Stream-Fork-Offset')
  const { offset: tail } = await source.tail()
  const anchor = requested === undefined ? tail : await placeOf(source, requested, tail)
  const { base, prefix } = await findSeam(source, anchor, requestedSubOffset)
  const { incarnation } = source.entry
  const requestedOffset = request.header('stream-fork-offset')
  return {
    source,
    entry: { source: incarnation, sourcePath, requestedOffset, requestedSubOffset, base },
    prefix,
  }
}

/**
 * The name of the source, if a fork is asked for; the path may be given below or above the place of
 * the handler.
 */
export function forkedFrom(request: HttpRequest): string | undefined {
  const from = request.header('stream-forked-from')
  if (from !== undefined) {
    const place = new URL(request.root).pathname.replace(/\/$/, '')
    return streamPath(from.startsWith(`${place}/`) ? from.slice(place.length) : from)
  }
  if (request.header('stream-fork-sub-offset') === undefined) return undefined
  throw badRequest('Stream-Fork-Sub-Offset goes with Stream-Forked-From')
}

function subOffset(request: HttpRequest): number {
  const text = request.header('stream-fork-sub-offset')
  const value = text === undefined ? 0 : wholeNumber('Stream-Fork-Sub-Offset', text)
  if (value > 0 && request.header('stream-fork-offset') === undefined) {
    throw badRequest('Stream-Fork-Sub-Offset goes with Stream-Fork-Offset')
  }
  return value
}

async function findSource({ streams }: HandlerParts, path: string): Promise<Stream> {
  try {
    return await streams.find(path)
  } catch (error) {
    if (!(error instanceof HttpError) || error.status !== 410) throw error
    throw new HttpError(409, 'GONE', 'The source was deleted', { cause: error })
  }
}

/** A place as the source knows it: what a client says of the bytes before it is not believed. */
async function placeOf(
  source: Stream,
  requested: StreamOffset,
  tail: StreamOffset,
): Promise<StreamOffset> {
  if (requested.lsn > tail.lsn) throw badRequest('Stream-Fork-Offset is past the end')
  const earliest = await source.earliest()
  if (requested.lsn < earliest.lsn) throw new HttpError(410, 'TRIMMED', 'The offset was trimmed')
  if (requested.lsn === 0) return START
  if (requested.lsn === earliest.lsn) return earliest
  const [end] = await nextMessages(source, requested.lsn - 1, 1)
  if (end?.place.lsn === requested.lsn) return end.place
  throw badRequest('Stream-Fork-Offset is no offset of the source')
}

async function findSeam(source: Stream, anchor: StreamOffset, beyond: number): Promise<Seam> {
  if (beyond === 0) return { base: anchor, prefix: [] }
  const tooFar = badRequest('Stream-Fork-Sub-Offset goes past the next boundary of the data')
  if (isJson(source.entry.contentType)) {
    const end = (await nextMessages(source, anchor.lsn, beyond))[beyond - 1]
    if (end === undefined) throw tooFar
    return { base: end.place, prefix: [] }
  }
  const [next] = await nextMessages(source, anchor.lsn, 1)
  if (next === undefined || next.data.length < beyond) throw tooFar
  if (next.data.length === beyond) return { base: next.place, prefix: [] }
  return { base: anchor, prefix: [next.data.subarray(0, beyond)] }
}

/** Messages behind an LSN, each with the place after it. */
async function nextMessages(
  source: Stream,
  after: number,
  count: number,
): Promise<(Message & { readonly place: StreamOffset })[]> {
  const limits = { maxBytes: Number.POSITIVE_INFINITY, maxMessages: Math.min(count, 1e5) }
  const spans = source.spans(after, undefined)
  const { messages, end } = await readStretch(source.bifrost, spans, limits)
  let bytes = (end?.bytes ?? 0) - messages.reduce((sum, { data }) => sum + data.length, 0)
  return messages.map((message) => {
    bytes += message.data.length
    return { ...message, place: { lsn: message.lsn, bytes } }
  })
}
