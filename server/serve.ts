/** A server of its own for a store: what `bifrost serve` starts. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Bifrost } from '../index.ts'
import { createHandler, type BifrostHandler } from './handler.ts'
import type { HandlerOptions } from './options.ts'

export interface ServeOptions extends HandlerOptions {
  /** Default 4437, the protocol's; 0 for any that is free. */
  readonly port?: number | undefined
  /** Default 127.0.0.1: nobody but this machine. */
  readonly host?: string | undefined
  /** Connections at the same time. Default 20,000. */
  readonly maxConnections?: number | undefined
  /** A connection whose headers take longer than this is closed. Default 10,000 ms. */
  readonly headersTimeoutMs?: number | undefined
  /** A request that takes longer than this to come is closed. Default 60,000 ms. */
  readonly requestTimeoutMs?: number | undefined
}

export interface BifrostServer {
  /** Where it listens, as `http://host:port`. */
  readonly url: string
  /** Ends streams and connections, within 5 s; the store stays open. */
  close(): Promise<void>
}

export const DEFAULT_PORT = 4437
const DEFAULT_HOST = '127.0.0.1'
const MAX_CONNECTIONS = 20_000
const CLOSE_GRACE_MS = 5000
const SWEEP_MS = 20

const HEADERS_TIMEOUT_MS = 10_000
const REQUEST_TIMEOUT_MS = 60_000
const SERVER_LIMITS = {
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 1000,
  maxHeaderSize: 16 * 1024,
}
const MAX_HEADERS = 100

/**
 * Serves a store over HTTP; resolves when it listens.
 *
 * @example
 * ```ts
 * const bifrost = await Bifrost.open({ dir: './data' })
 * const server = await serve(bifrost, { port: 4437 })
 * console.log('listening on', server.url)
 * ```
 */
export async function serve(bifrost: Bifrost, options: ServeOptions = {}): Promise<BifrostServer> {
  const { port = DEFAULT_PORT, host = DEFAULT_HOST, maxConnections, ...others } = options
  const { headersTimeoutMs, requestTimeoutMs, ...handlerOptions } = others
  const handler = await createHandler(bifrost, handlerOptions)
  // Slow senders hold a connection for no longer than this.
  const headersTimeout = headersTimeoutMs ?? HEADERS_TIMEOUT_MS
  const requestTimeout = requestTimeoutMs ?? REQUEST_TIMEOUT_MS
  const limits = { ...SERVER_LIMITS, headersTimeout, requestTimeout }
  const server = createServer(limits, handler.handle)
  server.maxHeadersCount = MAX_HEADERS
  server.maxConnections = maxConnections ?? MAX_CONNECTIONS
  try {
    await listen(server, port, host)
  } catch (error) {
    await handler.close()
    throw error
  }
  const address = server.address() as AddressInfo
  const name = address.family === 'IPv6' ? `[${address.address}]` : address.address
  return { url: `http://${name}:${address.port}`, close: () => close(server, handler) }
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ port, host, backlog: 4096 }, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

async function close(server: Server, handler: BifrostHandler): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  await handler.close()
  // A connection is idle once its last answer is sent, which is later for some than for others.
  const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_MS)
  const timer = setTimeout(() => server.closeAllConnections(), CLOSE_GRACE_MS)
  await closed
  clearInterval(sweep)
  clearTimeout(timer)
}
