/** GET and HEAD: reads a stretch, waits for the next, follows as events, or tells what there is. */
import { isText } from './content-type.ts'
import { formatCursor, leastCursor } from './cursor.ts'
import { EventStream } from './event-stream.ts'
import { EVENT_STREAM_TYPE } from './events.ts'
import type { HttpReply, HttpRequest } from './exchange.ts'
import type { HandlerParts } from './handler-parts.ts'
import { badRequest, HttpError } from './http-error.ts'
import { LongPoll } from './long-poll.ts'
import { formatOffset, type StreamOffset } from './offset.ts'
import { bodyForm, encodeBody, NDJSON_TYPE, type BodyForm } from './read-body.ts'
import { readQuery, type ReadQuery } from './read-query.ts'
import { streamPath } from './stream-path.ts'
import { GoneError, type Stretch } from './stream-reader.ts'
import type { Stream } from './stream.ts'

/** Whole stretches never change, so caches may keep them; what ends at the tail they must ask for. */
const CACHE_WHOLE = 'max-age=60, stale-while-revalidate=300'
const CACHE_NONE = 'no-store'

export async function readStream(parts: HandlerParts, request: HttpRequest): Promise<HttpReply> {
  const query = readQuery(request.query)
  const stream = await parts.streams.find(streamPath(request.path))
  stream.touch()
  try {
    return await new Reading(parts, request, query, stream).reply()
  } catch (error) {
    if (!(error instanceof GoneError)) throw error
    throw await withResumeOffset(stream, error)
  }
}

/** Tells from where on the stream can be read. */
async function withResumeOffset(stream: Stream, error: GoneError): Promise<HttpError> {
  const place = await stream.placeAfter(error.resumeAfter)
  return gone(error.code, error.message, place)
}

function gone(code: string, message: string, earliest: StreamOffset): HttpError {
  const headers = { 'stream-earliest-offset': formatOffset(earliest) }
  return new HttpError(410, code, message, { headers })
}

export async function headStream(
  { streams }: HandlerParts,
  request: HttpRequest,
): Promise<HttpReply> {
  const stream = await streams.find(streamPath(request.path))
  const { offset } = await stream.tail()
  const earliest = await stream.earliest()
  const { contentType, ttlSeconds, expiresAtMs, isClosed } = stream.entry
  const headers: Record<string, string> = {
    'content-type': contentType,
    'stream-next-offset': formatOffset(offset),
    'cache-control': CACHE_NONE,
  }
  if (ttlSeconds !== undefined) headers['stream-ttl'] = String(ttlSeconds)
  if (expiresAtMs !== undefined) headers['stream-expires-at'] = new Date(expiresAtMs).toISOString()
  if (isClosed) headers['stream-closed'] = 'true'
  if (earliest.lsn > 0) headers['stream-earliest-offset'] = formatOffset(earliest)
  return { status: 200, headers }
}

/** One GET of one stream. */
class Reading {
  readonly #parts: HandlerParts
  readonly #request: HttpRequest
  readonly #query: ReadQuery
  readonly #stream: Stream
  readonly #form: BodyForm

  constructor(parts: HandlerParts, request: HttpRequest, query: ReadQuery, stream: Stream) {
    this.#parts = parts
    this.#request = request
    this.#query = query
    this.#stream = stream
    this.#form = bodyForm(stream.entry.contentType, request.header('accept'))
  }

  async reply(): Promise<HttpReply> {
    const from = await this.#start()
    switch (this.#query.live) {
      case 'sse':
        return this.#follow(from)
      case 'long-poll':
        return this.#poll(from)
      default:
        return this.#query.offset === 'now' ? this.#atTail(from) : this.#catchUp(from)
    }
  }

  /** Where to read from. Throws 400 past the end, and 410 for what was trimmed. */
  async #start(): Promise<StreamOffset> {
    const { offset } = this.#query
    const { offset: tail } = await this.#stream.tail()
    if (offset === 'now') return tail
    const earliest = await this.#stream.earliest()
    if (offset === 'start') return earliest
    if (offset.lsn > tail.lsn) throw badRequest('The offset is past the end of the stream')
    if (offset.lsn < earliest.lsn) throw gone('TRIMMED', 'The offset was trimmed', earliest)
    return offset
  }

  #read(from: StreamOffset): Promise<Stretch> {
    return this.#stream.read(from.lsn)
  }

  async #catchUp(from: StreamOffset): Promise<HttpReply> {
    if (this.#stream.isUpToDate(from.lsn)) return this.#data(from, from, encodeBody([], this.#form))
    const { messages, end = from } = await this.#read(from)
    return this.#data(from, end, encodeBody(messages, this.#form))
  }

  #atTail(tail: StreamOffset): HttpReply {
    const headers = { ...this.#headersAt(tail), 'cache-control': CACHE_NONE }
    return { status: 200, headers, body: encodeBody([], this.#form) }
  }

  async #poll(from: StreamOffset): Promise<HttpReply> {
    for (;;) {
      if (!this.#stream.isUpToDate(from.lsn)) {
        const { messages, end } = await this.#read(from)
        if (end !== undefined) return this.#data(from, end, encodeBody(messages, this.#form))
      }
      if (this.#stream.isEnd(from.lsn)) return this.#nothing(from)
      const outcome = await this.#wait(from)
      if (outcome.kind === 'nothing') return this.#nothing(from)
      if (outcome.kind === 'failed') throw outcome.error
      if (outcome.kind === 'news') {
        const { news } = outcome
        return this.#data(from, news.end ?? from, news.body(this.#form))
      }
    }
  }

  async #wait(from: StreamOffset): ReturnType<typeof LongPoll.wait> {
    const { next } = await this.#stream.tail()
    // Behind the last data there may be notes, which have nothing for readers.
    const lsn = Math.max(from.lsn, this.#stream.base.lsn + next - 1)
    return LongPoll.wait(this.#stream, this.#parts.liveReaders, lsn, (callback) => {
      this.#request.onClose(callback)
    })
  }

  #nothing(from: StreamOffset): HttpReply {
    const headers = { ...this.#headersAt(from), 'cache-control': CACHE_NONE }
    delete (headers as Record<string, string>)['content-type']
    return { status: 204, headers }
  }

  async #follow(from: StreamOffset): Promise<HttpReply> {
    const { contentType } = this.#stream.entry
    const first = this.#stream.isUpToDate(from.lsn) ? undefined : await this.#read(from)
    const { liveReaders, logger } = this.#parts
    const { cursor } = this.#query
    const live = new EventStream(this.#stream, liveReaders, logger, { from, first, cursor })
    const headers: Record<string, string> = {
      'content-type': EVENT_STREAM_TYPE,
      'cache-control': 'no-cache',
    }
    if (!isText(contentType)) headers['stream-sse-data-encoding'] = 'base64'
    return { status: 200, headers, live }
  }

  #data(from: StreamOffset, end: StreamOffset, body: Uint8Array): HttpReply {
    const etag = this.#etag(from, end)
    const headers: Record<string, string> = {
      ...this.#headersAt(end),
      etag,
      'cache-control': this.#cacheControl(end),
    }
    if (this.#form !== 'bytes') headers['vary'] = 'accept'
    if (isSameTag(this.#request.header('if-none-match'), etag)) return { status: 304, headers }
    return { status: 200, headers, body }
  }

  #headersAt(offset: StreamOffset): Record<string, string> {
    const stream = this.#stream
    const isNdjson = this.#form === 'ndjson'
    const headers: Record<string, string> = {
      'content-type': isNdjson ? NDJSON_TYPE : stream.entry.contentType,
      'stream-next-offset': formatOffset(offset),
    }
    const isEnd = stream.isEnd(offset.lsn)
    if (isEnd) headers['stream-closed'] = 'true'
    if (stream.isUpToDate(offset.lsn)) headers['stream-up-to-date'] = 'true'
    if (this.#query.live !== undefined && !isEnd) {
      headers['stream-cursor'] = formatCursor(leastCursor(this.#query.cursor))
    }
    return headers
  }

  #cacheControl(end: StreamOffset): string {
    const isAtTail = this.#stream.isUpToDate(end.lsn)
    if (isAtTail && this.#query.live === undefined) return 'no-cache'
    return `${this.#parts.isPrivate ? 'private' : 'public'}, ${CACHE_WHOLE}`
  }

  #etag(from: StreamOffset, end: StreamOffset): string {
    const { incarnation } = this.#stream.entry
    const closed = this.#stream.isEnd(end.lsn) ? ':c' : ''
    const form = this.#form === 'ndjson' ? ':n' : ''
    return `"${incarnation}:${from.lsn}:${end.lsn}${closed}${form}"`
  }
}

function isSameTag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  const tags = ifNoneMatch.split(',', 32).map((tag) => tag.trim().replace(/^W\//, ''))
  return tags.includes(etag) || tags.includes('*')
}
