/**
 * Appends to one stream. A request is judged when it comes, on the state as it will be once all
 * that was accepted before is durable; what it adds is in the log's queue before the next one is
 * judged. So appends share group commits, and still each is judged behind the one before.
 *
 *     append ──▶ judge ──▶ records at the expected tail ──▶ the log's queue ──▶ durable ──▶ outcome
 *
 * A verdict is told only when everything that it rests on is durable. If an append fails, those
 * behind it miss the tail that they expect and fail too, and the state is read back from the log.
 *
 * Invariant: while `#state` is there, it is what the log will hold once all that is under way is
 * durable.
 */
import { LogError, type Bifrost, type Entry } from '../index.ts'
import { essenceOf } from './content-type.ts'
import { badRequest, HttpError, wasDeleted } from './http-error.ts'
import { formatOffset, type StreamOffset } from './offset.ts'
import type { Registry } from './registry.ts'
import type { Stream } from './stream.ts'
import {
  encodeRecord,
  type ProducerStamp,
  type StreamRecord,
  type WriterStamp,
  type WritersSnapshot,
} from './stream-record.ts'
import { readTail, replayWriters, type StreamTail } from './stream-tail.ts'
import type { Writers } from './writers.ts'

/** What a request wants to add. */
export interface Append {
  /** Empty for a request that only closes. */
  readonly messages: readonly Uint8Array[]
  readonly contentType: string | undefined
  readonly closes: boolean
  readonly producer: ProducerStamp | undefined
  readonly streamSeq: string | undefined
  /** The place that has to be the end. */
  readonly expected: StreamOffset | undefined
}

export interface AppendOutcome {
  /** Whether it was there before, so that nothing was added. */
  readonly isDuplicate: boolean
  readonly offset: StreamOffset
  readonly isClosed: boolean
  /** The last sequence number of the producer. */
  readonly seq: number | undefined
}

/** What would have to be replayed to rebuild the writers' state. */
interface Replay {
  replayRecords: number
  replayBytes: number
}

interface State extends Replay {
  tail: StreamTail
  isClosed: boolean
  readonly writers: Writers
}

/** What an append, or a note, does to a stream. */
interface Change {
  readonly records: readonly StreamRecord[]
  readonly stamp: WriterStamp | undefined
  readonly closes: boolean
}

/** The state of the writers is written down again after this much, or four times its own size. */
const REPLAY_RECORDS = 1024
const REPLAY_BYTES = 1024 * 1024
const BYTES_PER_PRODUCER = 64
const CONDITIONS: Readonly<{ whenFull: 'reject' }> = { whenFull: 'reject' }

export class StreamWriter {
  readonly #bifrost: Bifrost
  readonly #registry: Registry
  readonly #stream: Stream
  #state: State | undefined
  #loading: Promise<void> | undefined
  /** The last append that was given to the log; acknowledgements come in order. */
  #last: Promise<unknown> = Promise.resolve()
  /** All that were given to the log and have no outcome yet. A refusal may overtake those before it. */
  readonly #underWay = new Set<Promise<unknown>>()

  constructor(registry: Registry, stream: Stream) {
    this.#bifrost = stream.bifrost
    this.#registry = registry
    this.#stream = stream
  }

  /** Appends, closes, or both; resolves when that is durable. Throws what the client is told. */
  async append(append: Append): Promise<AppendOutcome> {
    const state = this.#state ?? (await this.#load())
    const { deleting, entry } = this.#stream
    if (deleting !== undefined) return this.#appendAfter(deleting, append)
    if (entry.isGone) throw wasDeleted()
    let known: AppendOutcome | undefined
    try {
      known = this.#judge(state, append)
    } catch (refusal) {
      await this.#settled()
      throw refusal
    }
    if (known === undefined) return this.#write(state, append)
    await this.#settled()
    return known
  }

  /** What a close puts into the registry must not undo what a delete has put there. */
  async #appendAfter(deleting: Promise<void>, append: Append): Promise<AppendOutcome> {
    await deleting.catch(() => undefined)
    return this.append(append)
  }

  /** Everything that was given to the log is durable. Throws if anything of it is not. */
  async #settled(): Promise<void> {
    if (this.#underWay.size > 0) await this.#last
  }

  /** Reads the state back from the log, once nothing is under way. */
  async #load(): Promise<State> {
    while (this.#state === undefined) {
      this.#loading ??= this.#readState().finally(() => (this.#loading = undefined))
      await this.#loading
    }
    return this.#state
  }

  async #readState(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay)
    const { logId, base, limits } = this.#stream
    const tail = await readTail(this.#bifrost, logId, base)
    const replayed = await replayWriters(this.#bifrost, logId, tail, limits.maxProducers)
    this.#stream.reached(tail)
    this.#state = {
      tail,
      isClosed: this.#stream.entry.isClosed,
      writers: replayed.writers,
      replayRecords: replayed.records,
      replayBytes: replayed.bytes,
    }
  }

  /** What is known to be the outcome already; undefined if there is something to write. */
  #judge(state: State, append: Append): AppendOutcome | undefined {
    const { producer, closes, messages } = append
    const verdict = producer && state.writers.judge(producer, Date.now())
    if (verdict?.kind === 'duplicate') return this.#known(state, verdict.seq)
    if (state.isClosed) {
      if (closes && messages.length === 0 && !producer) return this.#known(state, undefined)
      throw this.#closed(state)
    }
    this.#requireType(append)
    switch (verdict?.kind) {
      case 'stale':
        throw staleEpoch(verdict.epoch)
      case 'bad-start':
        throw badRequest('A new Producer-Epoch starts with the Producer-Seq 0')
      case 'gap':
        throw sequenceGap(verdict.expected, producer?.seq ?? 0)
      case 'full':
        throw new HttpError(429, 'TOO_MANY_PRODUCERS', 'The stream has too many producers')
      default:
    }
    this.#requireOrder(state, append)
    return undefined
  }

  #known({ tail, isClosed }: State, seq: number | undefined): AppendOutcome {
    return { isDuplicate: true, offset: tail.offset, isClosed, seq }
  }

  #requireType({ messages, contentType }: Append): void {
    if (messages.length === 0 || contentType === undefined) return
    if (essenceOf(contentType) === essenceOf(this.#stream.entry.contentType)) return
    throw new HttpError(409, 'CONTENT_TYPE_MISMATCH', 'The stream is of another Content-Type')
  }

  #requireOrder({ writers, tail }: State, { streamSeq, expected }: Append): void {
    if (streamSeq !== undefined && !writers.follows(streamSeq)) {
      throw new HttpError(409, 'SEQUENCE_CONFLICT', 'The Stream-Seq is not after the last one')
    }
    if (expected === undefined || expected.lsn === tail.offset.lsn) return
    throw new HttpError(412, 'TAIL_MISMATCH', 'The end of the stream is elsewhere', {
      headers: { 'stream-next-offset': formatOffset(tail.offset) },
    })
  }

  #closed({ tail }: State): HttpError {
    return new HttpError(409, 'STREAM_CLOSED', 'The stream is closed', {
      headers: { 'stream-closed': 'true', 'stream-next-offset': formatOffset(tail.offset) },
    })
  }

  async #write(state: State, append: Append): Promise<AppendOutcome> {
    const { messages, producer, streamSeq, closes } = append
    const isStamped = producer !== undefined || streamSeq !== undefined
    const stamp = isStamped ? { producer, streamSeq } : undefined
    const records = this.#records(state, messages, stamp)
    const { offset } = await this.#commit(state, { records, stamp, closes })
    return { isDuplicate: false, offset, isClosed: closes, seq: producer?.seq }
  }

  /** Takes effect on the state at once, and gives the records to the log in the same breath. */
  async #commit(state: State, change: Change): Promise<StreamTail> {
    const expectedTail = state.tail.next
    this.#advance(state, change)
    const { tail } = state
    const done = this.#submit(change, expectedTail)
    this.#last = done
    this.#underWay.add(done)
    try {
      await done
    } catch (error) {
      if (this.#state === state) this.#state = undefined
      throw error
    } finally {
      this.#underWay.delete(done)
    }
    this.#stream.reached(tail)
    if (change.closes) this.#stream.changed({ ...this.#stream.entry, isClosed: true })
    return tail
  }

  #submit({ records, closes }: Change, expectedTail: number): Promise<unknown> {
    const { logId, entry } = this.#stream
    const payloads = records.map(encodeRecord)
    if (closes) {
      const entries = payloads.map((payload, i): Entry => {
        return { logId, payload, expectedTail: expectedTail + i }
      })
      return this.#registry.put({ ...entry, isClosed: true }, entries)
    }
    const options = { ...CONDITIONS, expectedTail }
    return payloads.length === 1
      ? this.#bifrost.append(logId, payloads[0], options)
      : this.#bifrost.appendBatch(logId, payloads, options)
  }

  /** The records of an append. The last one carries who wrote them, the first one a snapshot. */
  #records(
    { tail, writers, ...replay }: State,
    messages: readonly Uint8Array[],
    stamp: WriterStamp | undefined,
  ): StreamRecord[] {
    const snapshot = isLong(replay, writers) ? writers.snapshot() : undefined
    const startsHere = snapshot !== undefined || (tail.mark === 0 && stamp !== undefined)
    const mark = startsHere ? tail.next : tail.mark
    let { bytes } = tail.offset
    if (messages.length === 0) {
      const { lsn } = tail.offset
      return stamp ? [{ kind: 'note', lsn, bytes, mark, writer: stamp, writers: snapshot }] : []
    }
    return messages.map((data, i) => {
      bytes += data.length
      const writer = i === messages.length - 1 ? stamp : undefined
      return { kind: 'data', data, bytes, mark, writer, writers: i === 0 ? snapshot : undefined }
    })
  }

  #advance(state: State, { records, stamp, closes }: Change): void {
    if (stamp !== undefined) state.writers.accept(stamp, Date.now())
    if (closes) state.isClosed = true
    const last = records.at(-1)
    if (last === undefined) return
    const { tail } = state
    if (last.mark !== tail.mark) state.replayRecords = state.replayBytes = 0
    state.replayRecords += records.length
    state.replayBytes += last.bytes - tail.offset.bytes
    const next = tail.next + records.length
    const lsn = last.kind === 'data' ? this.#stream.base.lsn + next - 1 : tail.offset.lsn
    state.tail = { next, offset: { lsn, bytes: last.bytes }, mark: last.mark }
  }

  /**
   * Gives up what comes before a place, as far as it is the stream's own; resolves with the place
   * from which everything is still there.
   */
  async trim(before: StreamOffset): Promise<StreamOffset> {
    const stream = this.#stream
    if (stream.forks > 0) throw new HttpError(409, 'HAS_FORKS', 'Forks read through the stream')
    const { offset } = await stream.tail()
    const upTo = Math.min(before.lsn, offset.lsn) - stream.base.lsn
    if (upTo > 0) {
      await this.#bifrost.trim(stream.logId, await this.#savingWriters(upTo))
      stream.trimmed()
    }
    return stream.earliest()
  }

  /**
   * The state of the writers has to outlive a trim: it is written down again behind it. A full disk
   * takes no record, but a trim; then what is needed for the state stays.
   */
  async #savingWriters(upTo: number): Promise<number> {
    const state = this.#state ?? (await this.#load())
    const { mark } = state.tail
    if (mark === 0 || mark > upTo) return upTo
    try {
      await this.#writeNote(state, state.writers.snapshot())
      return upTo
    } catch (error) {
      if (LogError.is(error, 'WRITE_FAILED') && mark > 1) return mark - 1
      throw error
    }
  }

  async #writeNote(state: State, writers: WritersSnapshot): Promise<void> {
    const { next: mark, offset } = state.tail
    const note: StreamRecord = { kind: 'note', ...offset, mark, writer: undefined, writers }
    await this.#commit(state, { records: [note], stamp: undefined, closes: false })
  }
}

function isLong({ replayRecords, replayBytes }: Replay, writers: Writers): boolean {
  if (writers.isEmpty) return false
  const { count } = writers
  return (
    replayRecords >= Math.max(REPLAY_RECORDS, 4 * count) ||
    replayBytes >= Math.max(REPLAY_BYTES, 4 * count * BYTES_PER_PRODUCER)
  )
}

function staleEpoch(epoch: number): HttpError {
  return new HttpError(403, 'STALE_EPOCH', 'The producer has a newer epoch', {
    headers: { 'producer-epoch': String(epoch) },
  })
}

function sequenceGap(expected: number, received: number): HttpError {
  return new HttpError(409, 'SEQUENCE_GAP', 'A Producer-Seq before this one is missing', {
    headers: {
      'producer-expected-seq': String(expected),
      'producer-received-seq': String(received),
    },
  })
}
