/**
 * Requests and replies of node:http, and of what is built on it (Express, Fastify). A reply that a
 * client doesn't take is not waited for for ever, and a body that is too large is not received.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { bodyTooLarge, type BodyBudget } from './body-budget.ts'
import type { HttpReply, HttpRequest, LiveConnection } from './exchange.ts'
import { COMMON_HEADERS } from './headers.ts'
import { badRequest } from './http-error.ts'

const EMPTY = new Uint8Array(0)
const COMMON_LIST: readonly string[] = Object.entries(COMMON_HEADERS).flat()
/** What is still taken of a refused body, so that its sender gets to read the refusal. */
const MAX_DISCARDED_BYTES = 64 * 1024 * 1024
const DISCARD_MS = 5000

/** What frameworks add: Express keeps the whole URL when it takes a mount's part off. */
type Incoming = IncomingMessage & { readonly originalUrl?: string; readonly body?: unknown }

export class NodeRequest implements HttpRequest {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly #incoming: Incoming
  readonly #response: ServerResponse
  readonly #budget: BodyBudget
  #takenBytes = 0

  constructor(incoming: IncomingMessage, response: ServerResponse, budget: BodyBudget) {
    const url = incoming.url ?? '/'
    const mark = url.indexOf('?')
    this.method = incoming.method ?? 'GET'
    this.path = mark === -1 ? url : url.slice(0, mark)
    this.query = mark === -1 ? '' : url.slice(mark + 1)
    this.#incoming = incoming
    this.#response = response
    this.#budget = budget
  }

  get root(): string {
    const { originalUrl = '', headers, socket } = this.#incoming
    const end = originalUrl.indexOf(this.path)
    const scheme = 'encrypted' in socket ? 'https' : 'http'
    return `${scheme}://${hostOf(headers.host)}${end > 0 ? originalUrl.slice(0, end) : ''}`
  }

  header(name: string): string | undefined {
    const value = this.#incoming.headers[name]
    return Array.isArray(value) ? value.join(', ') : value
  }

  onClose(callback: () => void): void {
    this.#response.once('close', callback)
  }

  /** The body's bytes no longer count. */
  release(): void {
    this.#budget.give(this.#takenBytes)
    this.#takenBytes = 0
  }

  async body(maxBytes: number): Promise<Uint8Array> {
    const { headers } = this.#incoming
    const length = headers['content-length']
    if (length === undefined && headers['transfer-encoding'] === undefined) return EMPTY
    if (length === '0') return EMPTY
    if (this.#incoming.readableEnded) return this.#parsedBody()
    try {
      if (Number(length) > maxBytes) throw bodyTooLarge(maxBytes)
      return await this.#receive(maxBytes)
    } catch (error) {
      await this.#discardRest()
      throw error
    }
  }

  /** A body parser came first. */
  #parsedBody(): Uint8Array {
    const { body } = this.#incoming
    if (body instanceof Uint8Array) return body
    throw new Error('The body was read before: mount the handler before body parsers')
  }

  #receive(maxBytes: number): Promise<Uint8Array> {
    const incoming = this.#incoming
    return new Promise((resolve, reject) => {
      const chunks: Uint8Array[] = []
      let size = 0
      const take = (chunk: Uint8Array): void => {
        try {
          size += chunk.length
          this.#count(chunk.length, size, maxBytes)
          chunks.push(chunk)
        } catch (error) {
          incoming.off('data', take)
          reject(error)
        }
      }
      incoming.on('data', take)
      incoming.on('end', () => resolve(joined(chunks)))
      incoming.on('close', () => {
        if (!incoming.complete) reject(badRequest('The body was cut off'))
      })
    })
  }

  #count(bytes: number, size: number, maxBytes: number): void {
    if (size > maxBytes) throw bodyTooLarge(maxBytes)
    this.#budget.take(bytes)
    this.#takenBytes += bytes
  }

  /** Closing while the client still sends would reset the connection before it reads the reply. */
  #discardRest(): Promise<void> {
    const incoming = this.#incoming
    this.release()
    if (incoming.readableEnded || incoming.destroyed) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, DISCARD_MS)
      let left = MAX_DISCARDED_BYTES
      incoming.on('data', (chunk: Uint8Array) => {
        left -= chunk.length
        if (left < 0) resolve()
      })
      incoming.once('close', () => {
        clearTimeout(timer)
        resolve()
      })
      incoming.once('end', resolve)
    })
  }
}

/** A Host header that could not be in a URL is not repeated. */
function hostOf(host: string | undefined): string {
  return host !== undefined && /^[\w.:[\]-]+$/.test(host) ? host : 'localhost'
}

function joined(chunks: readonly Uint8Array[]): Uint8Array {
  const [first = EMPTY] = chunks
  return chunks.length > 1 ? Buffer.concat(chunks) : first
}

/** Sends a reply. */
export function sendNode(response: ServerResponse, reply: HttpReply, stallMs: number): void {
  if (response.destroyed) return
  const { status, headers, body, live } = reply
  // Names and values in one flat list is what node:http takes with the least ado.
  const list = [...COMMON_LIST]
  for (const name in headers) list.push(name, headers[name] as string)
  if (live !== undefined) {
    response.writeHead(status, list)
    response.flushHeaders()
    live.start(new NodeConnection(response))
    return
  }
  if (status !== 204 && status !== 304) {
    list.push('content-length', String(body === undefined ? 0 : Buffer.byteLength(body)))
  }
  response.writeHead(status, list)
  response.end(body)
  if (response.writableLength > 0) cutOffWhenStalled(response, stallMs)
}

function cutOffWhenStalled(response: ServerResponse, stallMs: number): void {
  const timer = setTimeout(() => response.destroy(), stallMs).unref()
  response.once('close', () => clearTimeout(timer))
}

class NodeConnection implements LiveConnection {
  readonly #response: ServerResponse

  constructor(response: ServerResponse) {
    this.#response = response
  }

  write(bytes: Uint8Array): boolean {
    return this.#response.write(bytes)
  }

  onChange(drained: () => void, closed: () => void): void {
    this.#response.on('drain', drained)
    this.#response.once('close', closed)
  }

  end(): void {
    this.#response.end()
  }

  destroy(): void {
    this.#response.destroy()
  }
}
