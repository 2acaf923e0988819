/** A server for tests: a store, a listener on a free port, and short ways to ask it. */
import type { TestContext } from 'node:test'
import { Bifrost, type Logger } from '../../index.ts'
import { serve, type BifrostServer, type ServeOptions } from '../../server/index.ts'

export interface Web {
  readonly bifrost: Bifrost
  readonly server: BifrostServer
  readonly url: string
  /** What the server had to say, as `level message`. */
  readonly said: readonly string[]
  fetch(path: string, init?: RequestInit): Promise<Response>
}

export interface WebOptions extends ServeOptions {
  /** Where the store is; in memory without it. */
  readonly dir?: string
  /** A store that is open already. */
  readonly bifrost?: Bifrost
}

/** Starts a server, and stops it after the test. */
export async function startWeb(t: TestContext, options: WebOptions = {}): Promise<Web> {
  const { dir, bifrost: given, ...serveOptions } = options
  const bifrost =
    given ?? (await Bifrost.open(dir === undefined ? { provider: 'memory' } : { dir }))
  const said: string[] = []
  const logger = recordingLogger(said)
  const server = await serve(bifrost, { port: 0, logger, ...serveOptions })
  t.after(async () => {
    await server.close()
    await bifrost.close()
  })
  const ask = (path: string, init?: RequestInit): Promise<Response> =>
    fetch(server.url + path, init)
  return { bifrost, server, url: server.url, said, fetch: ask }
}

function recordingLogger(said: string[]): Logger {
  const say =
    (level: string) =>
    (_fields: object, message: string): void =>
      void said.push(`${level} ${message}`)
  return { info: say('info'), warn: say('warn'), error: say('error') }
}

export const TEXT = { 'content-type': 'text/plain' }
export const JSON_TYPE = { 'content-type': 'application/json' }

/** Creates a stream. */
export async function put(
  web: Web,
  path: string,
  headers: Record<string, string> = TEXT,
  body?: string | Uint8Array,
): Promise<Response> {
  return web.fetch(path, { method: 'PUT', headers, ...(body === undefined ? {} : { body }) })
}

/** Appends to a stream. */
export async function post(
  web: Web,
  path: string,
  body: string | Uint8Array,
  headers: Record<string, string> = TEXT,
): Promise<Response> {
  return web.fetch(path, { method: 'POST', headers, ...(body.length === 0 ? {} : { body }) })
}

/** The headers of an idempotent producer. */
export function producer(id: string, epoch: number, seq: number): Record<string, string> {
  return {
    ...TEXT,
    'producer-id': id,
    'producer-epoch': String(epoch),
    'producer-seq': String(seq),
  }
}

/** The offset in a reply. */
export function nextOffset(response: Response): string {
  return response.headers.get('stream-next-offset') ?? ''
}

/** The code in a refusal. */
export async function codeOf(response: Response): Promise<string> {
  return ((await response.json()) as { code: string }).code
}
