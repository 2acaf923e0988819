/** How much of all requests' bodies is in memory, and the limit on that. */
import { HttpError, unavailable } from './http-error.ts'

export class BodyBudget {
  readonly #maxBytes: number
  #usedBytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  get usedBytes(): number {
    return this.#usedBytes
  }

  /** Throws 503 if there is no room; a body alone always has some. */
  take(bytes: number): void {
    if (this.#usedBytes > 0 && this.#usedBytes + bytes > this.#maxBytes) {
      throw unavailable('BUSY', 'Too many bodies are being received')
    }
    this.#usedBytes += bytes
  }

  give(bytes: number): void {
    this.#usedBytes -= bytes
  }
}

export function bodyTooLarge(maxBytes: number): HttpError {
  return new HttpError(413, 'BODY_TOO_LARGE', `A body has at most ${maxBytes} bytes`, {
    headers: { connection: 'close' },
  })
}
