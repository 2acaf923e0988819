/** DELETE: the stream, and everything that it held. */
import type { HttpReply, HttpRequest } from './exchange.ts'
import type { HandlerParts } from './handler-parts.ts'
import { streamPath } from './stream-path.ts'

export async function deleteStream(
  { streams }: HandlerParts,
  request: HttpRequest,
): Promise<HttpReply> {
  await streams.delete(await streams.find(streamPath(request.path)))
  return { status: 204, headers: {} }
}
