/**
 * Writes groups to the end of one segment: one write and one sync each. If there is no room, it
 * puts the file back as it was, so that the group never happened; if that fails too, or anything
 * else does, the outcome is unknown and the store has failed.
 *
 *     ┌─────────────────────┬──────────────────┬───────────────┐
 *     │ durable groups      │ zeros that exist │ not there yet │
 *     └─────────────────────┴──────────────────┴───────────────┘
 *                           end                fileEnd
 *
 * Overwriting bytes that exist is cheaper than growing the file, so a small group takes zeros for
 * the next ones along. Zeros at the end are also what a full disk is trimmed with.
 */
import type { StoreFile } from './file-system.ts'
import { isSpaceError, MAX_CALL_BYTES, readFully, zeros } from './io.ts'

/** Zeros written ahead of the tail along with a small group. */
const ZEROS_AHEAD_BYTES = 1024 * 1024
/** A group of this size or more grows the file by itself. */
const LARGE_GROUP_BYTES = 64 * 1024
const PAGE_BYTES = 4096

/** How a commit ended. Told exactly once. */
export type CommitOutcome =
  | { readonly kind: 'durable'; readonly bytes: number }
  /** No room; the file is as it was before. */
  | { readonly kind: 'no-space'; readonly cause: unknown }
  /** Nobody knows what is on the disk. */
  | { readonly kind: 'unknown'; readonly cause: unknown }

export interface CommitRequest {
  /** What to write at the end, one after the other. */
  readonly buffers: readonly Uint8Array[]
  /** Zeros that must still exist behind the group; 0 lets it use them up. */
  readonly keepZeros: number
  /** Where zeros written ahead may reach: no further than the segment will. */
  readonly zerosLimit: number
}

export class SegmentWriter {
  readonly segment: number
  readonly seed: number
  readonly #file: StoreFile
  readonly #isInline: boolean
  /** Where the next group goes: everything before it is durable. */
  #end: number
  /** The size of the file: from `end` to here it holds zeros. */
  #fileEnd: number
  /** Whether there was no room for zeros: then no more are asked for. */
  #isTight = false

  constructor(
    segment: number,
    seed: number,
    file: StoreFile,
    end: number,
    fileEnd: number,
    isInline: boolean,
  ) {
    this.segment = segment
    this.seed = seed
    this.#file = file
    this.#end = end
    this.#fileEnd = fileEnd
    this.#isInline = isInline
  }

  get end(): number {
    return this.#end
  }

  get fileEnd(): number {
    return this.#fileEnd
  }

  /** Commits a group. One at a time; calls `done` when its outcome is known. */
  commit(request: CommitRequest, done: (outcome: CommitOutcome) => void): void {
    const bytes = request.buffers.reduce((sum, buffer) => sum + buffer.length, 0)
    const extra = this.#zerosFor(bytes, request)
    const attempt = new Attempt(this.#file, this.#end, this.#isInline)
    attempt.run([...request.buffers, ...zeros(extra)], bytes + extra, (error) => {
      if (error === null) done(this.#durable(bytes, extra))
      else if (!isSpaceError(error)) done({ kind: 'unknown', cause: error })
      else if (extra > 0 && request.keepZeros === 0) this.#retryPlain(request, bytes, extra, done)
      else this.#putBack(bytes + extra, error, done)
    })
  }

  /** How many zeros to write behind a group of `bytes`. */
  #zerosFor(bytes: number, { keepZeros, zerosLimit }: CommitRequest): number {
    const end = this.#end + bytes
    const existing = Math.max(0, this.#fileEnd - end)
    if (keepZeros === 0 && this.#isTight) return 0
    if (existing >= keepZeros && (existing > 0 || bytes >= LARGE_GROUP_BYTES)) return 0
    const ahead = Math.min(end + ZEROS_AHEAD_BYTES, zerosLimit) - end
    return Math.max(keepZeros, ahead, 0)
  }

  #durable(bytes: number, extra: number): CommitOutcome {
    this.#end += bytes
    this.#fileEnd = Math.max(this.#fileEnd, this.#end + extra)
    return { kind: 'durable', bytes }
  }

  /** Zeros are a convenience here: without them there may be room. */
  #retryPlain(
    request: CommitRequest,
    bytes: number,
    extra: number,
    done: (outcome: CommitOutcome) => void,
  ): void {
    const attempt = new Attempt(this.#file, this.#end, this.#isInline)
    this.#isTight = true
    attempt.run([...request.buffers], bytes, (error) => {
      // Zeros of the first try may lie behind the group, or not: the next groups write over them.
      if (error === null) done(this.#durable(bytes, 0))
      else if (isSpaceError(error)) this.#putBack(bytes + extra, error, done)
      else done({ kind: 'unknown', cause: error })
    })
  }

  #putBack(covered: number, cause: unknown, done: (outcome: CommitOutcome) => void): void {
    this.#restore(covered).then(
      () => {
        done({ kind: 'no-space', cause })
      },
      (error: unknown) => {
        done({ kind: 'unknown', cause: new AggregateError([cause, error], 'The put-back failed') })
      },
    )
  }

  /**
   * Makes the file durably what it was. Pages whose sync failed count as clean, so every byte that
   * the write covered is written again, the durable ones that share its first page included.
   */
  async #restore(covered: number): Promise<void> {
    await this.#file.truncate(this.#fileEnd)
    const page = this.#end - (this.#end % PAGE_BYTES)
    const to = Math.min(this.#end + covered, this.#fileEnd)
    const head = new Uint8Array(this.#end - page)
    const read = await readFully(this.#file, head, 0, head.length, page)
    if (read < head.length) throw new Error('The end of the segment could not be read back')
    await this.#commitAll([head, ...zeros(to - this.#end)], page)
    await this.#file.sync()
  }

  #commitAll(buffers: Uint8Array[], position: number): Promise<void> {
    const bytes = buffers.reduce((sum, buffer) => sum + buffer.length, 0)
    if (bytes === 0) return Promise.resolve()
    return new Promise((resolve, reject) => {
      new Attempt(this.#file, position, this.#isInline).run(buffers, bytes, (error) => {
        if (error === null) resolve()
        else reject(error)
      })
    })
  }

  close(): Promise<void> {
    return this.#file.close()
  }

  /** Ends the segment: gives back the zeros behind its last group, and closes the file. */
  async finish(): Promise<void> {
    try {
      if (this.#fileEnd > this.#end) await this.#file.truncate(this.#end)
      this.#fileEnd = this.#end
    } finally {
      await this.#file.close()
    }
  }
}

/** One try at writing and syncing buffers; a short write is followed by the rest. */
class Attempt {
  readonly #file: StoreFile
  readonly #position: number
  readonly #isInline: boolean

  constructor(file: StoreFile, position: number, isInline: boolean) {
    this.#file = file
    this.#position = position
    this.#isInline = isInline
  }

  run(
    buffers: readonly Uint8Array[],
    bytes: number,
    done: (error: Error | null) => void,
    written = 0,
  ): void {
    const next = bytes - written > MAX_CALL_BYTES ? firstBytes(buffers, MAX_CALL_BYTES) : buffers
    this.#commit(next, this.#position + written, (error, count) => {
      if (error !== null) done(error)
      else if (written + count >= bytes) done(null)
      else if (count === 0) done(new Error('Nothing was written'))
      else this.run(withoutFirst(buffers, count), bytes, done, written + count)
    })
  }

  #commit(
    buffers: readonly Uint8Array[],
    position: number,
    done: (error: Error | null, count: number) => void,
  ): void {
    if (!this.#isInline) {
      this.#file.commit(buffers, position, done)
      return
    }
    let count = 0
    try {
      count = this.#file.commitSync(buffers, position)
    } catch (error) {
      done(error as Error, 0)
      return
    }
    done(null, count)
  }
}

/** The buffers without their first `count` bytes. */
function withoutFirst(buffers: readonly Uint8Array[], count: number): Uint8Array[] {
  const rest: Uint8Array[] = []
  let skip = count
  for (const buffer of buffers) {
    if (skip < buffer.length) rest.push(buffer.subarray(skip))
    skip = Math.max(0, skip - buffer.length)
  }
  return rest
}

/** The first `count` bytes of the buffers. */
function firstBytes(buffers: readonly Uint8Array[], count: number): Uint8Array[] {
  const first: Uint8Array[] = []
  let left = count
  for (const buffer of buffers) {
    if (left === 0) break
    const part = buffer.subarray(0, Math.min(left, buffer.length))
    first.push(part)
    left -= part.length
  }
  return first
}
