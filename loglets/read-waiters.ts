/** Those who wait for a reader: each wants what was read in a shape of its own. */
import type { LogRecord } from './log-record.ts'

/** What is buffered, and at least one record is. */
export interface ReadBuffer {
  takeRecord(): LogRecord
  takeChunk(): readonly LogRecord[]
}

export interface Waiter {
  /** Whether it waits at the tail for more to come. */
  readonly isPatient: boolean
  serve(buffer: ReadBuffer): void
  /** There is nothing, or nothing any more. */
  end(): void
  fail(error: unknown): void
}

type Resolve<T> = (value: T) => void
type Reject = (error: unknown) => void

const DONE: IteratorReturnResult<undefined> = Object.freeze({ value: undefined, done: true })

export class RecordWaiter implements Waiter {
  readonly isPatient: boolean
  readonly #resolve: Resolve<LogRecord | undefined>
  readonly #reject: Reject

  constructor(resolve: Resolve<LogRecord | undefined>, reject: Reject, isPatient: boolean) {
    this.#resolve = resolve
    this.#reject = reject
    this.isPatient = isPatient
  }

  serve(buffer: ReadBuffer): void {
    this.#resolve(buffer.takeRecord())
  }

  end(): void {
    this.#resolve(undefined)
  }

  fail(error: unknown): void {
    this.#reject(error)
  }
}

/** Waits for one step of an iterator: whatever `take` takes of the buffer. */
export class StepWaiter<T> implements Waiter {
  readonly isPatient: boolean = true
  readonly #resolve: Resolve<IteratorResult<T, undefined>>
  readonly #reject: Reject
  readonly #take: (buffer: ReadBuffer) => T

  constructor(
    resolve: Resolve<IteratorResult<T, undefined>>,
    reject: Reject,
    take: (buffer: ReadBuffer) => T,
  ) {
    this.#resolve = resolve
    this.#reject = reject
    this.#take = take
  }

  serve(buffer: ReadBuffer): void {
    this.#resolve({ value: this.#take(buffer), done: false })
  }

  end(): void {
    this.#resolve(DONE)
  }

  fail(error: unknown): void {
    this.#reject(error)
  }
}

export const takeRecord = (buffer: ReadBuffer): LogRecord => buffer.takeRecord()
export const takeChunk = (buffer: ReadBuffer): readonly LogRecord[] => buffer.takeChunk()
