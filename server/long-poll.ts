/** A client that waits, by long-poll, for the next messages of a stream. It is told once. */
import type { LiveReader, LiveReaders } from './live-readers.ts'
import type { Stream } from './stream.ts'
import type { TailWaiter } from './tail-hub.ts'
import type { TailNews } from './tail-news.ts'

export type LongPollOutcome =
  | { readonly kind: 'news'; readonly news: TailNews }
  /** The hub is ahead: what it has can be read. */
  | { readonly kind: 'behind' }
  /** Nothing came in time, or will come any more. */
  | { readonly kind: 'nothing' }
  | { readonly kind: 'failed'; readonly error: unknown }

export class LongPoll implements LiveReader, TailWaiter {
  readonly #stream: Stream
  readonly #readers: LiveReaders
  readonly #settle: (outcome: LongPollOutcome) => void
  #timer: NodeJS.Timeout | undefined
  #lsn: number

  private constructor(
    stream: Stream,
    readers: LiveReaders,
    lsn: number,
    settle: (outcome: LongPollOutcome) => void,
  ) {
    this.#stream = stream
    this.#readers = readers
    this.#lsn = lsn
    this.#settle = settle
  }

  /**
   * Waits behind a place, given as an LSN, up to which everything was read. `onClose` is to call
   * back when the client is gone. Rejects with 503 if too many wait.
   */
  static wait(
    stream: Stream,
    readers: LiveReaders,
    lsn: number,
    onClose: (callback: () => void) => void,
  ): Promise<LongPollOutcome> {
    return new Promise((resolve) => {
      const poll = new LongPoll(stream, readers, lsn, resolve)
      readers.add(poll)
      poll.#timer = setTimeout(() => poll.end(), stream.limits.longPollMs)
      onClose(() => poll.end())
      if (!stream.hub.join(poll)) poll.#finish({ kind: 'behind' })
    })
  }

  get lsn(): number {
    return this.#lsn
  }

  tell(news: TailNews): void {
    this.#lsn = news.lsn
    if (news.end !== undefined) this.#finish({ kind: 'news', news })
  }

  end(): void {
    this.#finish({ kind: 'nothing' })
  }

  fail(error: unknown): void {
    this.#finish(error === undefined ? { kind: 'nothing' } : { kind: 'failed', error })
  }

  shutDown(): void {
    this.end()
  }

  tick(): void {
    // Its own timer ends it: a long-poll may be shorter than a tick.
  }

  #finish(outcome: LongPollOutcome): void {
    clearTimeout(this.#timer)
    this.#stream.hub.leave(this)
    this.#readers.remove(this)
    this.#settle(outcome)
  }
}
