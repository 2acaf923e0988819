/** POST: appends, closes, or trims. */
import { essenceOf, requireContentType } from './content-type.ts'
import type { HttpReply, HttpRequest } from './exchange.ts'
import type { HandlerParts } from './handler-parts.ts'
import { badRequest } from './http-error.ts'
import { messagesOf } from './messages.ts'
import { formatOffset } from './offset.ts'
import { closesStream, offsetHeader, producerStamp, streamSeq } from './request-headers.ts'
import { streamPath } from './stream-path.ts'
import type { Append, AppendOutcome } from './stream-writer.ts'
import type { Stream } from './stream.ts'

export async function appendToStream(
  parts: HandlerParts,
  request: HttpRequest,
): Promise<HttpReply> {
  const path = streamPath(request.path)
  const trimBefore = offsetHeader(request, 'Stream-Trim-Before')
  const terms = appendTerms(request)
  const body = await request.body(parts.limits.maxBodyBytes)
  const stream = await parts.streams.find(path)
  stream.touch()
  const writer = parts.streams.writer(stream)
  if (trimBefore === undefined) {
    return replyTo(terms, body, await writer.append(appendOf(parts, stream, terms, body)))
  }
  if (body.length > 0 || terms.closes) throw badRequest('A trim has no body and closes nothing')
  const earliest = await writer.trim(trimBefore)
  return { status: 204, headers: { 'stream-earliest-offset': formatOffset(earliest) } }
}

type Terms = Omit<Append, 'messages'>

function appendTerms(request: HttpRequest): Terms {
  return {
    contentType: request.header('content-type'),
    closes: closesStream(request),
    producer: producerStamp(request),
    streamSeq: streamSeq(request),
    expected: offsetHeader(request, 'Stream-Expected-Offset'),
  }
}

function appendOf(parts: HandlerParts, stream: Stream, terms: Terms, body: Uint8Array): Append {
  if (body.length === 0) {
    if (terms.closes) return { ...terms, messages: [] }
    throw badRequest('An append has a body, unless it only closes the stream')
  }
  if (terms.contentType === undefined) throw badRequest('An append has a Content-Type')
  const { contentType } = stream.entry
  // A body of another type is refused for that, and not for what is in it.
  const isOfType = essenceOf(requireContentType(terms.contentType)) === essenceOf(contentType)
  const messages = isOfType ? messagesOf(body, contentType, parts.limits.maxMessages) : [body]
  if (messages.length === 0) throw badRequest('An empty array appends nothing')
  return { ...terms, messages }
}

function replyTo(
  { producer }: Terms,
  body: Uint8Array,
  { isDuplicate, offset, isClosed, seq }: AppendOutcome,
): HttpReply {
  const headers: Record<string, string> = { 'stream-next-offset': formatOffset(offset) }
  if (isClosed) headers['stream-closed'] = 'true'
  if (producer !== undefined && seq !== undefined) {
    headers['producer-epoch'] = String(producer.epoch)
    headers['producer-seq'] = String(seq)
  }
  const isNewData = producer !== undefined && !isDuplicate && body.length > 0
  return { status: isNewData ? 200 : 204, headers }
}
