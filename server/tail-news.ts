/** What came to a stream's end: messages, in each form that readers want, made once for all. */
import { eventData } from './events.ts'
import type { StreamOffset } from './offset.ts'
import { encodeBody, type BodyForm } from './read-body.ts'
import type { Message } from './stream-reader.ts'

export class TailNews {
  /** Up to this LSN of the stream everything was there before. */
  readonly after: number
  /** Up to this LSN everything is there now. */
  readonly lsn: number
  readonly messages: readonly Message[]
  /** The place after the last message; undefined if there is none, only notes. */
  readonly end: StreamOffset | undefined
  readonly #bodies = new Map<BodyForm, Uint8Array>()
  #event: Uint8Array | undefined

  constructor(
    after: number,
    lsn: number,
    messages: readonly Message[],
    end: StreamOffset | undefined,
  ) {
    this.after = after
    this.lsn = lsn
    this.messages = messages
    this.end = end
  }

  /** The news for who knows everything up to an LSN. */
  since(lsn: number): TailNews {
    if (lsn <= this.after) return this
    const messages = this.messages.filter((message) => message.lsn > lsn)
    return new TailNews(lsn, this.lsn, messages, messages.length > 0 ? this.end : undefined)
  }

  body(form: BodyForm): Uint8Array {
    const made = this.#bodies.get(form)
    if (made !== undefined) return made
    const body = encodeBody(this.messages, form)
    this.#bodies.set(form, body)
    return body
  }

  /** The event that carries the messages. A stream has one type, so there is one form of it. */
  event(contentType: string): Uint8Array {
    this.#event ??= eventData(this.messages, contentType)
    return this.#event
  }
}
