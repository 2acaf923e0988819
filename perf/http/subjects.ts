/** How each server is asked to append, and what it says is there. */
import type { Found, RequestKind } from './ledger.ts'
import type { ServerKind } from './server-kinds.ts'

export interface Subject {
  readonly kind: ServerKind
  /** What a connection sends in turn. */
  readonly requests: readonly RequestKind[]
  /** Makes a log or stream, in which there is nothing yet. */
  create(url: string, name: string): Promise<void>
  delete(url: string, name: string): Promise<void>
  path(name: string, kind: RequestKind): string
  /** The number of the first record that a request appended, counted from 1. */
  firstOf(body: string, header: (name: string) => string | undefined): number
  read(url: string, name: string): AsyncIterable<Found>
}

const BYTES = { 'content-type': 'application/octet-stream' }

export const PLAIN: Subject = {
  kind: 'plain',
  requests: ['single', 'batch'],
  create: (url, name) => require2xx('PUT', `${url}/${name}`),
  delete: (url, name) => require2xx('DELETE', `${url}/${name}`),
  path: (name, kind) => (kind === 'batch' ? `/${name}/batch` : `/${name}`),
  firstOf: (body) => Number(body),
  read: (url, name) => readLines(`${url}/${name}`),
}

/** Each append is 100 bytes, so the byte offset tells the record's number. */
const RECORD_BYTES = 100
const STREAMS = '/v1/stream'

export const DURABLE_STREAMS: Subject = {
  kind: 'durable-streams',
  requests: ['single'],
  create: (url, name) => require2xx('PUT', `${url}${STREAMS}/${name}`),
  delete: (url, name) => require2xx('DELETE', `${url}${STREAMS}/${name}`),
  path: (name) => `${STREAMS}/${name}`,
  firstOf: (_body, header) => bytesBefore(header('stream-next-offset')) / RECORD_BYTES,
  read: (url, name) => readStream(`${url}${STREAMS}/${name}`),
}

async function require2xx(method: string, url: string): Promise<void> {
  const { ok, status } = await fetch(url, { method, headers: BYTES })
  if (!ok) throw new Error(`${method} ${url} was answered with ${status}`)
}

/** The second half of an offset: how many bytes stand before it. */
function bytesBefore(offset: string | undefined): number {
  return Number(offset?.split('_')[1] ?? Number.NaN)
}

/** Lines of a number and a body; a last line that was cut off is an error of the connection. */
async function* readLines(url: string): AsyncGenerator<Found> {
  const response = await fetch(url)
  if (!response.ok || response.body === null) {
    throw new Error(`${url} was answered with ${response.status}: ${await response.text()}`)
  }
  let rest = ''
  for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const space = line.indexOf(' ')
      yield { number: Number(line.slice(0, space)), body: line.slice(space + 1) }
    }
  }
}

async function* readStream(url: string): AsyncGenerator<Found> {
  let number = 0
  for (let offset: string | null = '-1'; offset !== null;) {
    const response: Response = await fetch(`${url}?offset=${offset}`)
    if (!response.ok) throw new Error(`${url} was answered with ${response.status}`)
    const text = await response.text()
    for (let start = 0; start < text.length; start += RECORD_BYTES) {
      yield { number: ++number, body: text.slice(start, start + RECORD_BYTES) }
    }
    const isUpToDate = response.headers.get('stream-up-to-date') === 'true'
    offset = isUpToDate ? null : response.headers.get('stream-next-offset')
  }
}
