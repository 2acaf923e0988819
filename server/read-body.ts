/** Puts messages into the body of an answer. */
import { isJson } from './content-type.ts'
import type { Message } from './stream-reader.ts'

/** Bytes one after the other, one JSON array, or one JSON text a line. */
export type BodyForm = 'bytes' | 'json' | 'ndjson'

export const NDJSON_TYPE = 'application/x-ndjson'
const NDJSON_TYPES = /(?:^|[\s,])application\/(?:x-)?ndjson(?:[\s,;]|$)/i

const EMPTY = new Uint8Array(0)
const OPEN = Buffer.from('[')
const CLOSE = Buffer.from(']')
const COMMA = Buffer.from(',')
const LINE_END = Buffer.from('\n')

/** The form that a request wants. Lines are for those who ask for them, of streams of JSON. */
export function bodyForm(contentType: string, accept: string | undefined): BodyForm {
  if (!isJson(contentType)) return 'bytes'
  return accept !== undefined && NDJSON_TYPES.test(accept) ? 'ndjson' : 'json'
}

export function encodeBody(messages: readonly Message[], form: BodyForm): Uint8Array {
  switch (form) {
    case 'bytes':
      return join(messages, EMPTY, EMPTY, EMPTY)
    case 'ndjson':
      return join(messages, EMPTY, LINE_END, messages.length > 0 ? LINE_END : EMPTY)
    case 'json':
      return join(messages, OPEN, COMMA, CLOSE)
  }
}

/** One copy into one buffer. */
function join(
  messages: readonly Message[],
  open: Uint8Array,
  separator: Uint8Array,
  close: Uint8Array,
): Uint8Array {
  const [only] = messages
  if (messages.length === 1 && only && open.length + close.length === 0) return only.data
  let size = open.length + close.length + separator.length * Math.max(0, messages.length - 1)
  for (const { data } of messages) size += data.length
  const body = Buffer.allocUnsafe(size)
  body.set(open, 0)
  let at = open.length
  for (const [i, { data }] of messages.entries()) {
    if (i > 0) body.set(separator, at)
    if (i > 0) at += separator.length
    body.set(data, at)
    at += data.length
  }
  body.set(close, at)
  return body
}
