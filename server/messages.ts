/** Makes messages of a body: one of all its bytes, or those that the JSON in it holds. */
import { isUtf8 } from 'node:buffer'
import { isJson } from './content-type.ts'
import { badRequest, HttpError } from './http-error.ts'
import { jsonMessages, JsonSyntaxError } from './json-scanner.ts'

const LINE_FEED = 0x0a
const RETURN = 0x0d
const SPACE = 0x20

/** Throws 400 for what is not JSON, and 413 for too many messages. */
export function messagesOf(
  body: Uint8Array,
  contentType: string,
  maxMessages: number,
): readonly Uint8Array[] {
  if (body.length === 0) return []
  if (!isJson(contentType)) return [body]
  if (!isUtf8(body)) throw badRequest('The body is not JSON: it is not UTF-8')
  try {
    return jsonMessages(body, maxMessages).map(onOneLine)
  } catch (error) {
    if (error instanceof JsonSyntaxError) throw badRequest(error.message, error)
    if (error instanceof RangeError) throw new HttpError(413, 'TOO_MANY_MESSAGES', error.message)
    throw error
  }
}

/** In JSON a line end is white space, which may be a space as well: so a message is one line. */
function onOneLine(json: Uint8Array): Uint8Array {
  if (!json.includes(LINE_FEED) && !json.includes(RETURN)) return json
  return json.map((byte) => (byte === LINE_FEED || byte === RETURN ? SPACE : byte))
}
