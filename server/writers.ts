/**
 * Who has written to a stream: for each idempotent producer its epoch and last sequence number, and
 * the last Stream-Seq. Verdicts are pure; only `accept` changes anything.
 *
 * Invariant: replaying the stamps of a stream's records in order over the snapshot at its mark
 * gives this state again.
 */
import type { ProducerStamp, WriterStamp, WritersSnapshot } from './stream-record.ts'

interface ProducerState {
  epoch: number
  seq: number
  seenAtMs: number
}

export type ProducerVerdict =
  | { readonly kind: 'next' }
  | { readonly kind: 'duplicate'; readonly seq: number }
  | { readonly kind: 'stale'; readonly epoch: number }
  /** A new epoch has to start at 0. */
  | { readonly kind: 'bad-start' }
  | { readonly kind: 'gap'; readonly expected: number }
  | { readonly kind: 'full' }

/** A producer that was silent for this long makes room for another, when there is no other room. */
export const PRODUCER_IDLE_MS: number = 7 * 24 * 3600 * 1000

export class Writers {
  readonly #maxProducers: number
  readonly #producers = new Map<string, ProducerState>()
  #streamSeq: string | undefined

  constructor(maxProducers: number) {
    this.#maxProducers = maxProducers
  }

  get isEmpty(): boolean {
    return this.#producers.size === 0 && this.#streamSeq === undefined
  }

  get count(): number {
    return this.#producers.size
  }

  /** What a producer's next request is. */
  judge({ id, epoch, seq }: ProducerStamp, nowMs: number): ProducerVerdict {
    const known = this.#producers.get(id)
    if (known === undefined) return this.#judgeNew(seq, nowMs)
    if (epoch < known.epoch) return { kind: 'stale', epoch: known.epoch }
    if (epoch > known.epoch) return seq === 0 ? { kind: 'next' } : { kind: 'bad-start' }
    if (seq <= known.seq) return { kind: 'duplicate', seq: known.seq }
    return seq === known.seq + 1 ? { kind: 'next' } : { kind: 'gap', expected: known.seq + 1 }
  }

  #judgeNew(seq: number, nowMs: number): ProducerVerdict {
    if (seq !== 0) return { kind: 'gap', expected: 0 }
    const isFull = this.#producers.size >= this.#maxProducers
    return isFull && this.#idle(nowMs) === undefined ? { kind: 'full' } : { kind: 'next' }
  }

  /** Whether a Stream-Seq comes after the last one, byte by byte. */
  follows(streamSeq: string): boolean {
    return this.#streamSeq === undefined || streamSeq > this.#streamSeq
  }

  /** A record with this stamp is in the log, or on its way there. */
  accept({ producer, streamSeq }: WriterStamp, nowMs: number): void {
    if (streamSeq !== undefined) this.#streamSeq = streamSeq
    if (producer === undefined) return
    const { id, epoch, seq } = producer
    const isNew = !this.#producers.has(id)
    const idle = isNew && this.#producers.size >= this.#maxProducers ? this.#idle(nowMs) : undefined
    if (idle !== undefined) this.#producers.delete(idle)
    // Whoever wrote last stands last, so the first is the one that has been silent longest.
    this.#producers.delete(id)
    this.#producers.set(id, { epoch, seq, seenAtMs: nowMs })
  }

  /** A producer that may be forgotten. */
  #idle(nowMs: number): string | undefined {
    const [oldest] = this.#producers
    if (oldest === undefined) return undefined
    const [id, { seenAtMs }] = oldest
    return nowMs - seenAtMs > PRODUCER_IDLE_MS ? id : undefined
  }

  snapshot(): WritersSnapshot {
    const producers = Array.from(this.#producers, ([id, state]) => ({ id, ...state }))
    return { producers, streamSeq: this.#streamSeq }
  }

  /** Goes back to the state that a snapshot holds. */
  restore({ producers, streamSeq }: WritersSnapshot): void {
    this.#producers.clear()
    for (const { id, epoch, seq, seenAtMs } of producers) {
      this.#producers.set(id, { epoch, seq, seenAtMs })
    }
    this.#streamSeq = streamSeq
  }
}
