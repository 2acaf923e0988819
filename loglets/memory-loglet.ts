/**
 * A loglet without a disk: the same promises as the durable one while the process lives. It keeps
 * encoded bodies, so that what comes back went through the same codec, and frees what is trimmed.
 *
 * Invariants: `#bodies[#head]` is the record at `#trimPoint + 1`; what the state says was settled
 * by the writer, which alone calls the methods that begin with "apply".
 */
import assert from 'node:assert/strict'
import { LogError, logError, sealed, tailMismatch } from '../codec/errors.ts'
import { FRAME_HEADER_BYTES } from '../codec/format.ts'
import { MAX_POSITION, OLDEST_POSITION, type Offset } from '../codec/offset.ts'
import { EncodedRecord, type Keys, type RecordEncoder } from '../codec/record.ts'
import { batchTooLarge, emptyBatch } from './errors.ts'
import type {
  AppendListener,
  Loglet,
  LogletAppendOptions,
  LogletReadOutcome,
  LogletReadRequest,
  LogletRecord,
  LogletState,
} from './loglet.ts'
import { MemoryCommand, type MemoryWriter } from './memory-writer.ts'

/** What the loglets of one in-memory store share. */
export interface MemoryStore {
  readonly writer: MemoryWriter
  readonly encoder: RecordEncoder
  readonly maxBatchBytes: number
  /** Milliseconds since the epoch; may be set back. */
  readonly now: () => number
  /** Why nothing new is taken: CLOSED. */
  refusal: LogError | undefined
}

/** The trimmed prefix is cut off once it is this long and half of what is kept. */
const MIN_CUT = 1024

export class MemoryLoglet implements Loglet {
  readonly #store: MemoryStore
  readonly #maxOffset: Offset
  #bodies: (Uint8Array | undefined)[] = []
  #head = 0
  #tail: Offset = OLDEST_POSITION
  #trimPoint: Offset = 0
  #seal: { readonly reason: string | undefined } | undefined
  #ended: LogError | undefined
  #createdAtMs = 0
  #state: LogletState
  readonly #watchers = new Set<() => void>()

  /** `maxOffset` is the greatest offset whose LSN is still a legal one. */
  constructor(store: MemoryStore, maxOffset: Offset = MAX_POSITION) {
    this.#store = store
    this.#maxOffset = maxOffset
    this.#state = this.#snapshot()
  }

  get state(): LogletState {
    return this.#state
  }

  append(
    payload: unknown,
    keys: Keys | undefined,
    options: LogletAppendOptions | undefined,
    listener: AppendListener,
  ): void {
    this.appendBatch([{ payload, keys }], options, listener)
  }

  appendBatch(
    records: readonly LogletRecord[],
    options: LogletAppendOptions | undefined,
    listener: AppendListener,
  ): void {
    let bodies: EncodedRecord[]
    try {
      bodies = encodeAll(this.#store, records)
    } catch (error) {
      if (!(error instanceof LogError)) throw error
      listener.failed(error)
      return
    }
    const command = new AppendCommand(this, bodies, options?.expectedTail, listener)
    this.#store.writer.submit(command, options?.whenFull, options?.signal)
  }

  async trim(upTo: Offset): Promise<Offset> {
    this.#requireOpen()
    const { writer } = this.#store
    return writer.perform(
      () => this.applyTrim(upTo),
      () => this.#trimPoint,
    )
  }

  async seal(reason: string | undefined): Promise<LogletState> {
    this.#requireOpen()
    const { writer } = this.#store
    return writer.perform(
      () => this.applySeal(reason),
      () => this.#state,
    )
  }

  async read(request: LogletReadRequest): Promise<LogletReadOutcome> {
    const { from, to, maxBytes, visit } = request
    assert.ok(from >= OLDEST_POSITION, 'reads start at an offset')
    if (this.#ended !== undefined) throw this.#ended
    if (from >= this.#tail) return { kind: this.#seal === undefined ? 'tail' : 'end' }
    if (from <= this.#trimPoint) return { kind: 'trim-gap', until: this.#trimPoint }
    let next = from
    let bytes = 0
    while (next < this.#tail && next <= to) {
      const body = this.#body(next)
      bytes += body.length
      if (!visit(next++, body, 0, body.length) || bytes >= maxBytes) break
    }
    // A long log is read turn by turn, so that a reader leaves room for others as one of files does.
    if (bytes >= maxBytes) await new Promise(setImmediate)
    return { kind: 'data', next }
  }

  #body(offset: Offset): Uint8Array {
    const body = this.#bodies[this.#head + offset - this.#trimPoint - 1]
    assert.ok(body !== undefined, 'every offset between trim point and tail has a body')
    return body
  }

  watch(listener: () => void): () => void {
    // A wrapper, so that watching twice with one function is two watches.
    const watcher = (): void => {
      listener()
    }
    this.#watchers.add(watcher)
    return () => {
      this.#watchers.delete(watcher)
    }
  }

  #requireOpen(): void {
    if (this.#store.refusal !== undefined) throw this.#store.refusal
  }

  /** Why `count` records can't be appended at `tail`, where this loglet's own records end. */
  refusal(tail: Offset, count: number, expectedTail: Offset | undefined): LogError | undefined {
    if (this.#ended !== undefined) return this.#ended
    if (this.#seal !== undefined) return sealed(this.#tail, this.#seal.reason)
    if (expectedTail !== undefined && expectedTail !== tail) {
      return tailMismatch(expectedTail, this.#tail)
    }
    if (tail + count - 1 <= this.#maxOffset) return undefined
    return logError('INVALID_LSN', 'There are no offsets left in this loglet')
  }

  /** The first offset that is not given out, in queue order. */
  get nextOffset(): Offset {
    return this.#tail
  }

  applyAppend(record: EncodedRecord): Offset {
    this.#createdAtMs = Math.max(this.#createdAtMs, this.#store.now())
    const { encoder } = this.#store
    encoder.prepare(record, undefined)
    // The body is our own copy: only the time in it changes.
    encoder.write(record.body, 0, this.#createdAtMs)
    this.#bodies.push(record.body)
    this.#changed()
    return this.#tail++
  }

  applyTrim(upTo: Offset): LogError | undefined {
    if (this.#ended !== undefined) return this.#ended
    const trimPoint = Math.min(upTo, this.#tail - 1)
    if (trimPoint <= this.#trimPoint) return undefined
    const count = trimPoint - this.#trimPoint
    this.#bodies.fill(undefined, this.#head, this.#head + count)
    this.#head += count
    this.#trimPoint = trimPoint
    if (this.#head >= MIN_CUT && this.#head * 2 >= this.#bodies.length) this.#cut()
    this.#store.writer.countTrim()
    this.#changed()
    return undefined
  }

  #cut(): void {
    this.#bodies = this.#bodies.slice(this.#head)
    this.#head = 0
  }

  applySeal(reason: string | undefined): LogError | undefined {
    if (this.#ended !== undefined) return this.#ended
    this.#seal ??= { reason }
    this.#changed()
    return undefined
  }

  /** Nothing more will come, and nothing can be read any more. */
  applyEnd(error: LogError): void {
    this.#ended = error
    this.#bodies = []
    this.#changed()
  }

  #changed(): void {
    this.#store.writer.changed(this.#release)
  }

  /** Shows the new state, and tells those who watch. */
  readonly #release = (): void => {
    this.#state = this.#snapshot()
    for (const watcher of [...this.#watchers]) watcher()
  }

  #snapshot(): LogletState {
    return {
      tail: this.#tail,
      trimPoint: this.#trimPoint,
      sealed: this.#seal !== undefined,
      reason: this.#seal?.reason,
      ended: this.#ended,
    }
  }
}

/** Encodes records into bodies of our own. Throws what makes an append be refused at once. */
export function encodeAll(store: MemoryStore, records: readonly LogletRecord[]): EncodedRecord[] {
  if (store.refusal !== undefined) throw store.refusal
  if (records.length === 0) throw emptyBatch()
  const bodies = records.map(({ payload, keys }) => encodeOwn(store.encoder, payload, keys))
  const bytes = sizeOf(bodies)
  if (bytes <= store.maxBatchBytes) return bodies
  throw batchTooLarge(store.maxBatchBytes)
}

function encodeOwn(
  encoder: RecordEncoder,
  payload: unknown,
  keys: Keys | undefined,
): EncodedRecord {
  const body = new Uint8Array(encoder.prepare(payload, keys))
  encoder.write(body, 0, 0)
  return new EncodedRecord(body)
}

/** The bytes that the records' frames would take, as the durable store counts them. */
export function sizeOf(records: readonly EncodedRecord[]): number {
  return records.reduce((sum, { body }) => sum + FRAME_HEADER_BYTES + body.length, 0)
}

/** One or more records of one loglet. */
class AppendCommand extends MemoryCommand {
  readonly #loglet: MemoryLoglet
  readonly #bodies: readonly EncodedRecord[]
  readonly #expectedTail: Offset | undefined
  readonly #listener: AppendListener
  #first: Offset = 0

  constructor(
    loglet: MemoryLoglet,
    bodies: readonly EncodedRecord[],
    expectedTail: Offset | undefined,
    listener: AppendListener,
  ) {
    super(sizeOf(bodies), bodies.length)
    this.#loglet = loglet
    this.#bodies = bodies
    this.#expectedTail = expectedTail
    this.#listener = listener
  }

  apply(): LogError | undefined {
    this.#first = this.#loglet.nextOffset
    const refusal = this.#loglet.refusal(this.#first, this.records, this.#expectedTail)
    if (refusal !== undefined) return refusal
    for (const body of this.#bodies) this.#loglet.applyAppend(body)
    return undefined
  }

  protected succeed(): void {
    this.#listener.committed(this.#first)
  }

  protected reject(error: LogError): void {
    this.#listener.failed(error)
  }
}
