/**
 * The HTTP face of a store: one handler to mount in any server. It makes no server and opens no
 * store; both are the caller's, and stay open when it is closed.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Registry } from 'prom-client'
import type { Bifrost } from '../index.ts'
import { BodyBudget } from './body-budget.ts'
import { CommitWatch } from './commit-watch.ts'
import type { HttpReply } from './exchange.ts'
import { FetchRequest, toResponse } from './fetch-adapter.ts'
import type { HandlerParts } from './handler-parts.ts'
import { HttpMetrics } from './http-metrics.ts'
import { LiveReaders } from './live-readers.ts'
import { registerMetrics } from './metrics.ts'
import { NodeRequest, sendNode } from './node-adapter.ts'
import { resolveLimits, SILENT, type HandlerOptions } from './options.ts'
import { makePages } from './pages.ts'
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
  readonly #budget: BodyBudget
  readonly #commits: CommitWatch | undefined
  readonly #metrics: HttpMetrics
  readonly #router: Router

  constructor(parts: HandlerParts, options: HandlerOptions) {
    const { registry = ownRegistry(parts.bifrost), pages = true, authorize } = options
    this.#parts = parts
    this.#budget = new BodyBudget(parts.limits.maxBufferedBytes)
    this.#commits = pages ? new CommitWatch() : undefined
    this.#metrics = new HttpMetrics(registry, {
      streams: () => parts.streams.size,
      liveReaders: () => parts.liveReaders.size,
      bodyBytes: () => this.#budget.usedBytes,
    })
    const others = this.#commits ? makePages(registry, this.#commits) : new Map()
    this.#router = new Router(parts, others, authorize)
  }

  readonly handle = (incoming: IncomingMessage, response: ServerResponse): void => {
    void this.#handle(new NodeRequest(incoming, response, this.#budget), response)
  }

  async #handle(request: NodeRequest, response: ServerResponse): Promise<void> {
    const reply = await this.#reply(request)
    sendNode(response, reply, this.#parts.limits.stallMs)
  }

  readonly fetch = async (incoming: Request): Promise<Response> => {
    const request = new FetchRequest(incoming, this.#budget)
    return toResponse(await this.#reply(request), request.method)
  }

  async #reply(request: NodeRequest | FetchRequest): Promise<HttpReply> {
    const startedAtMs = performance.now()
    const reply = await this.#router.reply(request)
    request.release()
    const ms = performance.now() - startedAtMs
    this.#metrics.answered(request.method, reply.status, ms)
    return reply
  }

  async close(): Promise<void> {
    this.#router.shutDown()
    this.#parts.liveReaders.shutDown()
    this.#commits?.close()
    await this.#parts.streams.close()
    inUse.delete(this.#parts.bifrost)
  }
}

function ownRegistry(bifrost: Bifrost): Registry {
  const registry = new Registry()
  registerMetrics(registry, bifrost)
  return registry
}
