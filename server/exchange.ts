/**
 * A request and its reply as the server sees them, whichever way they come: node:http or fetch. The
 * adapters make the one and send the other; nothing else knows either.
 */
import type { ReplyHeaders } from './http-error.ts'

export interface HttpRequest {
  readonly method: string
  /** The path as it was sent, below the place where the handler is mounted. */
  readonly path: string
  /** What comes before the path in a URL of the server: `http://host`, and the place. */
  readonly root: string
  /** What follows the question mark; empty without one. */
  readonly query: string
  /** A header's value, by its name in lower case. */
  header(name: string): string | undefined
  /** The body, all of it. Throws 413 over `maxBytes`. */
  body(maxBytes: number): Promise<Uint8Array>
  /** Calls back when the client is gone, or the reply was sent. */
  onClose(callback: () => void): void
}

/** Where a reply that goes on is written to. */
export interface LiveConnection {
  /** False when no more should be written before the connection has drained. */
  write(bytes: Uint8Array): boolean
  /** Called each time the connection has drained, and once when it is closed. */
  onChange(drained: () => void, closed: () => void): void
  /** Ends the reply properly. */
  end(): void
  /** Cuts the client off. */
  destroy(): void
}

/** A reply's body that goes on: it is started once, when the headers were sent. */
export interface LiveBody {
  start(connection: LiveConnection): void
}

export interface HttpReply {
  readonly status: number
  readonly headers: ReplyHeaders
  readonly body?: Uint8Array | string | undefined
  readonly live?: LiveBody | undefined
}
