/**
 * The HTTP face of a store: one handler to mount in any server. It makes no server and opens no
 * store; both are the caller's, and stay open when it is closed.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Bifrost } from '../index.ts'
import { BodyBudget } from './body-budget.ts'
import { FetchRequest, toResponse } from './fetch-adapter.ts'
import type { HandlerParts } from './handler-parts.ts'
import { LiveReaders } from './live-readers.ts'
import { NodeRequest, sendNode } from './node-adapter.ts'
import { resolveLimits, SILENT, type HandlerOptions } from './options.ts'
import { Router } from './router.ts'
import { StreamDirectory } from './stream-directory.ts'

/** Answers requests of the Durable Streams protocol. `handle` and `fetch` need no `this`. */
export interface BifrostHandler {
  /** For node:http, and for what is built on it. */
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void
  /** For whatever speaks the Fetch standard. */
  readonly fetch: (request: Request) => Promise<Response>
  /** Ends those who wait for data, properly, and refuses everything that comes later. */
  close(): Promise<void>
}

/** The stores that have a handler: two would not know of each other's streams. */
const inUse = new WeakSet<Bifrost>()

/**
 * Makes the handler of a store. Its streams are logs of the store whose names start with `http:`.
 * A store has one handler at a time.
 *
 * @example
 * ```ts
 * const bifrost = await Bifrost.open({ dir: './data' })
 * const { handle } = await createHandler(bifrost)
 * createServer(handle).listen(4437, '127.0.0.1')
 * ```
 */
export async function createHandler(
  bifrost: Bifrost,
  options: HandlerOptions = {},
): Promise<BifrostHandler> {
  const limits = resolveLimits(options)
  if (inUse.has(bifrost)) throw new TypeError('The store has a handler already')
  inUse.add(bifrost)
  try {
    const logger = options.logger ?? SILENT
    const streams = await StreamDirectory.open(bifrost, limits, logger)
    const liveReaders = new LiveReaders(limits.maxLiveReaders)
    const isPrivate = options.authorize !== undefined
    const parts = { bifrost, limits, logger, streams, liveReaders, isPrivate }
    return new Handler(parts, options)
  } catch (error) {
    inUse.delete(bifrost)
    throw error
  }
}

class Handler implements BifrostHandler {
  readonly #parts: HandlerParts
  readonly #router: Router
  readonly #budget: BodyBudget

  constructor(parts: HandlerParts, { authorize }: HandlerOptions) {
    this.#parts = parts
    this.#router = new Router(parts, new Map(), authorize)
    this.#budget = new BodyBudget(parts.limits.maxBufferedBytes)
  }

  readonly handle = (incoming: IncomingMessage, response: ServerResponse): void => {
    void this.#handle(new NodeRequest(incoming, response, this.#budget), response)
  }

  async #handle(request: NodeRequest, response: ServerResponse): Promise<void> {
    const reply = await this.#router.reply(request)
    request.release()
    sendNode(response, reply, this.#parts.limits.stallMs)
  }

  readonly fetch = async (incoming: Request): Promise<Response> => {
    const request = new FetchRequest(incoming, this.#budget)
    const reply = await this.#router.reply(request)
    request.release()
    return toResponse(reply, request.method)
  }

  async close(): Promise<void> {
    this.#router.shutDown()
    this.#parts.liveReaders.shutDown()
    await this.#parts.streams.close()
    inUse.delete(this.#parts.bifrost)
  }
}
