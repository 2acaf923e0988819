/**
 * Server-Sent Events. A payload can't end an event or start another: each of its line ends, of any
 * kind, starts a new `data:` line. No space follows the colon, because clients take one away.
 */
import { isJson, isText } from './content-type.ts'
import { encodeBody } from './read-body.ts'
import type { Message } from './stream-reader.ts'

export const EVENT_STREAM_TYPE = 'text/event-stream'
/** A line that says nothing, for those who would take a silent connection for dead. */
export const HEARTBEAT: Uint8Array = Buffer.from(':\n\n')

const LINE_FEED = 0x0a
const RETURN = 0x0d
const START = Buffer.from('event: data\ndata:')
const NEXT_LINE = Buffer.from('\ndata:')
const END = Buffer.from('\n\n')

export interface Control {
  readonly streamNextOffset: string
  readonly streamCursor?: string
  readonly upToDate?: true
  readonly streamClosed?: true
}

/** The event that follows each data event and says where the client is. */
export function eventControl(control: Control): Uint8Array {
  return Buffer.from(`event: control\ndata:${JSON.stringify(control)}\n\n`)
}

/** The event that carries messages of a stream of this type. */
export function eventData(messages: readonly Message[], contentType: string): Uint8Array {
  const bytes = encodeBody(messages, isJson(contentType) ? 'json' : 'bytes')
  if (isText(contentType)) return Buffer.concat([START, dataLines(bytes), END])
  const base64 = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64')
  return Buffer.concat([START, Buffer.from(base64, 'latin1'), END])
}

/** The bytes with a new `data:` line for each line end. Two passes, whatever the bytes are. */
function dataLines(bytes: Uint8Array): Uint8Array {
  const lineEnds = countLineEnds(bytes)
  if (lineEnds === 0) return bytes
  const lines = Buffer.allocUnsafe(bytes.length + lineEnds * NEXT_LINE.length)
  let to = 0
  for (let at = 0; at < bytes.length; at += lineEndBytes(bytes, at) || 1) {
    if (lineEndBytes(bytes, at) > 0) {
      lines.set(NEXT_LINE, to)
      to += NEXT_LINE.length
    } else {
      lines[to++] = bytes[at] as number
    }
  }
  return lines.subarray(0, to)
}

function countLineEnds(bytes: Uint8Array): number {
  let count = 0
  for (const byte of bytes) if (byte === LINE_FEED || byte === RETURN) count++
  return count
}

/** How long the line end at a place is: CR LF is one. */
function lineEndBytes(bytes: Uint8Array, at: number): number {
  if (bytes[at] === LINE_FEED) return 1
  if (bytes[at] !== RETURN) return 0
  return bytes[at + 1] === LINE_FEED ? 2 : 1
}
