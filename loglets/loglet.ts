/**
 * What every loglet does: one link of a log's chain, a store of records at offsets from 1. One
 * contract suite (test/contract) runs over every implementation.
 *
 *      trim point            release pointer  tail
 *           |                             |  |
 *     1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17
 *     └─trimmed─┘ └──────── readable ──────┘ └─ the next append
 *
 * A loglet knows offsets and encoded records, never LSNs, logs or chains.
 */
import type { LogError } from '../codec/errors.ts'
import type { Offset } from '../codec/offset.ts'
import type { Keys } from '../codec/record.ts'

/** What is durable now. A snapshot: later changes make a new object or are seen by reading again. */
export interface LogletState {
  /** The first unwritten offset; every record below it is durable. */
  readonly tail: Offset
  /** The last trimmed offset, inclusive; 0 if nothing was trimmed. */
  readonly trimPoint: Offset
  readonly sealed: boolean
  /** Why it was sealed, if the one who sealed it said so. */
  readonly reason: string | undefined
  /**
   * Set once nothing more can ever come and waiting is pointless: UNKNOWN_LOG after a delete,
   * CLOSED after a shutdown, STORE_FAILED after a failure. What is durable may still be readable.
   */
  readonly ended: LogError | undefined
}

/** A record to append: a payload, or an `EncodedRecord` made of one. */
export interface LogletRecord {
  readonly payload: unknown
  readonly keys: Keys | undefined
}

export interface LogletAppendOptions {
  /**
   * Append only if this is the tail; TAIL_MISMATCH (with an offset in `tail`) otherwise. May be 0,
   * which no tail is.
   */
  readonly expectedTail?: Offset | undefined
  /** What to do when the queue is full: wait in line, or fail with QUEUE_FULL. */
  readonly whenFull?: 'wait' | 'reject' | undefined
  /** Withdraws the append while it is not yet in a group: ABORTED. */
  readonly signal?: AbortSignal | undefined
}

/**
 * Told the outcome of an append, exactly once: at once when it is refused, or later. A listener
 * instead of a promise, because the layer above makes the only promise.
 */
export interface AppendListener {
  /** Everything is durable; `first` is the first record's offset, the others follow it. */
  committed(first: Offset): void
  failed(error: LogError): void
}

export interface LogletReadRequest {
  readonly from: Offset
  /** The last offset wanted, inclusive. */
  readonly to: Offset
  /** Stop soon after this many bytes of bodies were visited; at least one record is. */
  readonly maxBytes: number
  /**
   * Called for each record in order with its encoded body: `bytes` between `start` and `end`. The
   * bytes are only lent: copy what you keep. Return false to stop after this record. What it
   * throws rejects the read.
   */
  readonly visit: (offset: Offset, bytes: Uint8Array, start: number, end: number) => boolean
}

export type LogletReadOutcome =
  /** Records from `from` up to, not including, `next` were visited. */
  | { readonly kind: 'data'; readonly next: Offset }
  /** The records from `from` to `until`, inclusive, are gone. Nothing was visited. */
  | { readonly kind: 'trim-gap' | 'data-loss-gap'; readonly until: Offset }
  /** `from` is at or past the tail: nothing there yet. */
  | { readonly kind: 'tail' }
  /** `from` is at or past the tail of a sealed loglet: nothing will come. */
  | { readonly kind: 'end' }

export interface Loglet {
  /** The durable state now, without any I/O. */
  readonly state: LogletState

  /**
   * Appends one record. The payload and options are captured before it returns. Offsets are given
   * in call order. Refused at once: ENCODE_FAILED, RECORD_TOO_LARGE, BATCH_TOO_LARGE, QUEUE_FULL,
   * READ_ONLY, CLOSED. In queue order: TAIL_MISMATCH, SEALED, UNKNOWN_LOG (deleted), INVALID_LSN
   * (out of offsets). By the disk: WRITE_FAILED, STORE_FAILED.
   */
  append(
    payload: unknown,
    keys: Keys | undefined,
    options: LogletAppendOptions | undefined,
    listener: AppendListener,
  ): void

  /** Appends all the records, at consecutive offsets, or none. An empty batch is EMPTY_BATCH. */
  appendBatch(
    records: readonly LogletRecord[],
    options: LogletAppendOptions | undefined,
    listener: AppendListener,
  ): void

  /**
   * Trims up to `upTo`, inclusive, at most up to the last record; never moves back. Resolves with
   * the trim point then in force, once it is durable.
   */
  trim(upTo: Offset): Promise<Offset>

  /** Seals; the first reason wins. Resolves with the sealed state, once it is durable. */
  seal(reason: string | undefined): Promise<LogletState>

  /**
   * Reads what is durable from `from` on; never waits for more to come. Reads may overlap. Rejects
   * with READ_FAILED, CORRUPT (naming what is at stake), CLOSED or UNKNOWN_LOG. A read that raced a
   * trim returns a trim gap, never fewer records and silence.
   */
  read(request: LogletReadRequest): Promise<LogletReadOutcome>

  /**
   * Calls `listener` after every change of `state`, until the returned function is called. The
   * listener must not throw; it may read and append.
   */
  watch(listener: () => void): () => void
}
