/** Requests and replies of the Fetch standard: `Request` in, `Response` out. */
import { bodyTooLarge, type BodyBudget } from './body-budget.ts'
import { COMMON_HEADERS } from './headers.ts'
import type { HttpReply, HttpRequest, LiveBody, LiveConnection } from './exchange.ts'

const EMPTY = new Uint8Array(0)
/** How much of a live reply waits in its stream before the server holds back. */
const LIVE_BUFFER_BYTES = 64 * 1024

export class FetchRequest implements HttpRequest {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly root: string
  readonly #request: Request
  readonly #budget: BodyBudget
  #takenBytes = 0

  constructor(request: Request, budget: BodyBudget) {
    const { pathname, search, origin } = new URL(request.url)
    this.method = request.method
    this.path = pathname
    this.query = search.slice(1)
    this.root = origin
    this.#request = request
    this.#budget = budget
  }

  header(name: string): string | undefined {
    return this.#request.headers.get(name) ?? undefined
  }

  onClose(callback: () => void): void {
    this.#request.signal.addEventListener('abort', callback, { once: true })
  }

  /** The body's bytes no longer count. */
  release(): void {
    this.#budget.give(this.#takenBytes)
    this.#takenBytes = 0
  }

  async body(maxBytes: number): Promise<Uint8Array> {
    const { body } = this.#request
    if (body === null) return EMPTY
    const chunks: Uint8Array[] = []
    let size = 0
    for await (const chunk of body as AsyncIterable<Uint8Array>) {
      size += chunk.length
      if (size > maxBytes) throw bodyTooLarge(maxBytes)
      this.#budget.take(chunk.length)
      this.#takenBytes += chunk.length
      chunks.push(chunk)
    }
    return chunks.length === 1 ? (chunks[0] ?? EMPTY) : Buffer.concat(chunks)
  }
}

/** The reply as a Response. */
export function toResponse(reply: HttpReply, method: string): Response {
  const { status, headers, body, live } = reply
  const hasNone = method === 'HEAD' || status === 204 || status === 304
  return new Response(hasNone ? null : live ? liveStream(live) : (body ?? null), {
    status,
    headers: { ...COMMON_HEADERS, ...headers },
  })
}

function liveStream(live: LiveBody): ReadableStream<Uint8Array> {
  const connection = new FetchConnection()
  return new ReadableStream<Uint8Array>(
    {
      start: (controller) => {
        connection.open(controller)
        live.start(connection)
      },
      pull: () => connection.pulled(),
      cancel: () => connection.cancelled(),
    },
    new ByteLengthQueuingStrategy({ highWaterMark: LIVE_BUFFER_BYTES }),
  )
}

class FetchConnection implements LiveConnection {
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined
  #drained: () => void = () => undefined
  #closed: () => void = () => undefined
  #isFull = false

  open(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#controller = controller
  }

  write(bytes: Uint8Array): boolean {
    this.#controller?.enqueue(bytes)
    this.#isFull = (this.#controller?.desiredSize ?? 0) <= 0
    return !this.#isFull
  }

  onChange(drained: () => void, closed: () => void): void {
    this.#drained = drained
    this.#closed = closed
  }

  /** The reader wants more. */
  pulled(): void {
    if (!this.#isFull) return
    this.#isFull = false
    this.#drained()
  }

  cancelled(): void {
    this.#controller = undefined
    this.#closed()
  }

  end(): void {
    this.#controller?.close()
    this.#controller = undefined
  }

  destroy(): void {
    this.#controller?.error(new Error('The client took nothing for too long'))
    this.#controller = undefined
  }
}
