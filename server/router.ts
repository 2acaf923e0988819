/**
 * Finds what a request is for and answers it, whatever happens: each request gets one reply, and
 * what is thrown on the way becomes one.
 */
import { appendToStream } from './append-operation.ts'
import { requireAllowed, type Authorize } from './authorize.ts'
import { createStream } from './create-operation.ts'
import { deleteStream } from './delete-operation.ts'
import type { HttpReply, HttpRequest } from './exchange.ts'
import { forkedFrom } from './fork.ts'
import type { HandlerParts } from './handler-parts.ts'
import { METHODS, PREFLIGHT_HEADERS } from './headers.ts'
import { asHttpError, HttpError, unavailable } from './http-error.ts'
import { headStream, readStream } from './read-operation.ts'
import { streamPath } from './stream-path.ts'

export type Operation = (parts: HandlerParts, request: HttpRequest) => Promise<HttpReply>

const OPERATIONS: Readonly<Record<string, Operation>> = {
  GET: readStream,
  HEAD: headStream,
  POST: appendToStream,
  PUT: createStream,
  DELETE: deleteStream,
}

/** Paths below this are the protocol's own, for subscriptions. */
const PROTOCOL_RESERVED = /^\/__ds(?:\/|$)/
/** Paths below this are ours. */
const OWN_RESERVED = /^\/__bifrost(?:\/|$)/

export class Router {
  readonly #parts: HandlerParts
  readonly #pages: ReadonlyMap<string, Operation>
  readonly #authorize: Authorize | undefined
  #isShutDown = false

  /** `pages` are the paths that are no streams. */
  constructor(
    parts: HandlerParts,
    pages: ReadonlyMap<string, Operation>,
    authorize: Authorize | undefined,
  ) {
    this.#parts = parts
    this.#pages = pages
    this.#authorize = authorize
  }

  /** From now on everything is refused. */
  shutDown(): void {
    this.#isShutDown = true
  }

  /** Never rejects. */
  async reply(request: HttpRequest): Promise<HttpReply> {
    try {
      return await this.#answer(request)
    } catch (error) {
      return this.#refusal(request, error)
    }
  }

  async #answer(request: HttpRequest): Promise<HttpReply> {
    if (request.method === 'OPTIONS') return { status: 204, headers: PREFLIGHT_HEADERS }
    if (this.#isShutDown) throw unavailable('SHUTTING_DOWN', 'The server is going down')
    const path = this.#nameOf(request.path)
    if (this.#authorize !== undefined) await this.#requireAllowed(this.#authorize, request, path)
    return this.#operation(request.method, path)(this.#parts, request)
  }

  /** The one spelling of a path. Whoever judges by paths must not be led astray by another. */
  #nameOf(path: string): string {
    return path === '/' || this.#pages.has(path) ? path : streamPath(path)
  }

  async #requireAllowed(authorize: Authorize, request: HttpRequest, path: string): Promise<void> {
    const header = (name: string): string | undefined => request.header(name)
    const { method } = request
    await requireAllowed(authorize, { method, path, header })
    const source = method === 'PUT' ? forkedFrom(request) : undefined
    if (source === undefined) return
    await requireAllowed(authorize, { method: 'GET', path: source, header })
  }

  #operation(method: string, path: string): Operation {
    const page = this.#pages.get(path)
    if (page !== undefined && (method === 'GET' || method === 'HEAD')) return page
    if (PROTOCOL_RESERVED.test(path)) {
      throw new HttpError(501, 'NOT_IMPLEMENTED', 'There are no subscriptions here')
    }
    const operation = Object.hasOwn(OPERATIONS, method) ? OPERATIONS[method] : undefined
    if (operation === undefined || page !== undefined || path === '/' || OWN_RESERVED.test(path)) {
      throw new HttpError(405, 'METHOD_NOT_ALLOWED', 'This can not be done here', {
        headers: { allow: METHODS },
      })
    }
    return operation
  }

  #refusal(request: HttpRequest, error: unknown): HttpReply {
    const { status, code, message, headers } = asHttpError(error)
    if (status === 500) {
      const { method, path } = request
      this.#parts.logger.error({ error, method, path }, 'a request failed')
    }
    return {
      status,
      headers: { 'cache-control': 'no-store', 'content-type': 'application/json', ...headers },
      body: `${JSON.stringify({ code, message })}\n`,
    }
  }
}
