/**
 * Reads records by offset: finds the segment and the runs, reads their bytes, checks every frame
 * against its checksum and against what the index says it is. What doesn't check is CORRUPT and
 * names the records at stake; it is never skipped.
 */
import { LogError, type LogRange } from '../codec/errors.ts'
import { readU32 } from '../codec/bytes.ts'
import {
  FRAME_HEADER_BYTES,
  FRAME_KIND,
  FRAME_LOGLET_AT,
  FRAME_OFFSET_AT,
} from '../codec/format.ts'
import { expectFrame, frameEnd } from '../codec/frame.ts'
import type { Offset } from '../codec/offset.ts'
import { segmentSeed } from '../codec/segment-header.ts'
import { corrupt } from './errors.ts'
import { segmentFile } from './file-names.ts'
import type { StoreFile } from './file-system.ts'
import { readFully } from './io.ts'
import type { SegmentFiles } from './segment-files.ts'
import { findRun, type LogletRuns } from './segment-index.ts'
import type { LoadedIndex, SegmentSet } from './segment-set.ts'

/** Called for each record; returns whether to go on. */
export type VisitRecord = (offset: Offset, bytes: Uint8Array, start: number, end: number) => boolean

export interface RecordsRequest {
  readonly loglet: number
  /** Both inclusive; every offset between them was durable when the read was asked for. */
  readonly from: Offset
  readonly to: Offset
  /** Stop soon after this many bytes. */
  readonly maxBytes: number
  readonly visit: VisitRecord
  /** Says what offsets are in the users' terms. */
  readonly stake: (from: Offset, to: Offset) => readonly LogRange[]
}

/** Bytes of one segment to read at once, holding one or more runs. */
interface Span {
  readonly position: number
  end: number
  readonly runs: number[]
}

/** What a read found, before any of it was checked. */
interface Fetched {
  readonly segment: number
  readonly runs: LogletRuns
  /** The last offset that is wanted from here. */
  readonly to: Offset
  readonly spans: readonly Span[]
  readonly bytes: FetchedBytes
}

/** A buffer to be used again, and the part of it for each span. */
interface FetchedBytes {
  readonly whole: Uint8Array
  readonly parts: readonly Uint8Array[]
}

/** Runs this close to each other are read together: cheaper than another system call. */
const MAX_GAP_BYTES = 16 * 1024
/** So many times the bytes that are asked for are read at most, counting what lies between runs. */
const MAX_READ_FACTOR = 4
/** Spans that one read asks for; the rest waits for the next. */
const MAX_SPANS = 256
/** Buffers kept for reuse, and the size up to which they are. */
const SPARE_BUFFERS = 4
const SPARE_BYTES = 1024 * 1024

export class SegmentReader {
  readonly #segments: SegmentSet
  readonly #files: SegmentFiles
  readonly #storeId: Uint8Array
  readonly #spare: Uint8Array[] = []
  /** Where each loglet was last read: the next read is most likely there too. */
  readonly #hints = new Map<number, number>()

  constructor(segments: SegmentSet, files: SegmentFiles, storeId: Uint8Array) {
    this.#segments = segments
    this.#files = files
    this.#storeId = storeId
  }

  /** Visits records from `from` on; resolves with the first offset not visited. */
  async read(request: RecordsRequest): Promise<Offset> {
    const { segment, runs, to, spans, bytes } = await this.#fetchStable(request)
    const seed = segmentSeed(this.#storeId, segment)
    const reader = new SpanReader(segment, seed, request, runs, to)
    try {
      for (const [i, span] of spans.entries()) {
        if (!reader.visitSpan(span, bytes.parts[i] as Uint8Array)) break
      }
    } catch (error) {
      // What was visited stands; the damage is met again by the read that starts at it.
      if (reader.next === request.from || !LogError.is(error, 'CORRUPT')) throw error
    } finally {
      this.#recycle(bytes.whole)
    }
    return reader.next
  }

  /** Segments that die during a search may take it along; it is made again without them. */
  async #fetchStable(request: RecordsRequest): Promise<Fetched> {
    for (;;) {
      const oldest = this.#segments.live[0]?.segment
      try {
        return await this.#fetch(request)
      } catch (error) {
        if (this.#segments.live[0]?.segment === oldest) throw error
      }
    }
  }

  async #fetch(request: RecordsRequest): Promise<Fetched> {
    const { segment, runs } = await this.#locate(request)
    const to = Math.min(request.to, runs.endTail - 1)
    const spans = planSpans(runs, request.from, to, request.maxBytes)
    return { segment, runs, to, spans, bytes: await this.#readSpans(segment, spans) }
  }

  /** All spans into one buffer; each gets its part of it. */
  async #readSpans(segment: number, spans: readonly Span[]): Promise<FetchedBytes> {
    const whole = this.#buffer(spans.reduce((sum, { position, end }) => sum + end - position, 0))
    const parts: Uint8Array[] = []
    let at = 0
    for (const { position, end } of spans) {
      parts.push(whole.subarray(at, at + end - position))
      at += end - position
    }
    await this.#files.use(segment, (file) =>
      allEnded(spans.map(({ position }, i) => readPart(file, parts[i] as Uint8Array, position))),
    )
    return { whole, parts }
  }

  #buffer(length: number): Uint8Array {
    const i = this.#spare.findIndex((buffer) => buffer.length >= length)
    if (i >= 0) return this.#spare.splice(i, 1)[0] as Uint8Array
    return new Uint8Array(Math.max(length, 4096))
  }

  #recycle(buffer: Uint8Array): void {
    if (this.#spare.length < SPARE_BUFFERS && buffer.length <= SPARE_BYTES) {
      this.#spare.push(buffer)
    }
  }

  /** The first segment in which the loglet's tail came past the offset. */
  async #locate(request: RecordsRequest): Promise<{ segment: number; runs: LogletRuns }> {
    const { loglet, from } = request
    const hinted = await this.#tryHint(loglet, from)
    if (hinted !== undefined) return hinted
    const live = this.#segments.live.map(({ segment }) => segment)
    let low = 0
    let high = live.length - 1
    while (low < high) {
      const middle = (low + high) >> 1
      const { index, damagedAt } = await this.#segments.index(live[middle] as number)
      const end = index.find(loglet)?.endTail ?? 0
      if (end > from) high = middle
      else if (damagedAt === undefined || (await this.#isBehind(live, middle, loglet, from))) {
        low = middle + 1
      } else high = middle
    }
    return this.#inSegment(live[low] as number, request)
  }

  /** Past damage an index ends early; the next segment's start says whether the offset is there. */
  async #isBehind(
    live: readonly number[],
    i: number,
    loglet: number,
    from: Offset,
  ): Promise<boolean> {
    const next = live[i + 1]
    if (next === undefined) return false
    const tail = await this.#segments.startTail(next, loglet)
    return tail !== undefined && tail <= from
  }

  async #tryHint(
    loglet: number,
    from: Offset,
  ): Promise<{ segment: number; runs: LogletRuns } | undefined> {
    const segment = this.#hints.get(loglet)
    if (segment === undefined || !this.#segments.isLive(segment)) return undefined
    const runs = (await this.#segments.index(segment)).index.find(loglet)
    const isHere = runs !== undefined && runs.startTail <= from && from < runs.endTail
    return isHere ? { segment, runs } : undefined
  }

  async #inSegment(
    segment: number,
    request: RecordsRequest,
  ): Promise<{ segment: number; runs: LogletRuns }> {
    const { loglet, from, to } = request
    const loaded = await this.#segments.index(segment)
    const runs = loaded.index.find(loglet)
    if (runs === undefined || runs.count === 0 || from >= runs.endTail || from < runs.startTail) {
      const next = await this.#nextStart(segment, loglet)
      throw this.#lost(segment, loaded, request.stake(from, Math.min(to, next - 1)))
    }
    this.#hints.set(loglet, segment)
    return { segment, runs }
  }

  /** The first offset that can't have been lost with a segment. */
  async #nextStart(segment: number, loglet: number): Promise<Offset> {
    if (!this.#segments.isLive(segment + 1)) return Number.POSITIVE_INFINITY
    return (await this.#segments.startTail(segment + 1, loglet)) ?? Number.POSITIVE_INFINITY
  }

  #lost(segment: number, loaded: LoadedIndex, logs: readonly LogRange[]): LogError {
    const position = loaded.damagedAt ?? 0
    return corrupt('R4', segmentFile(segment), position, logs, 'records are not where they were')
  }
}

/** Waits for all, also when one fails: the file and the buffer are theirs until then. */
async function allEnded(reads: readonly Promise<void>[]): Promise<void> {
  const ended = await Promise.allSettled(reads)
  const failed = ended.find((outcome) => outcome.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}

async function readPart(file: StoreFile, part: Uint8Array, position: number): Promise<void> {
  const read = await readFully(file, part, 0, part.length, position)
  // What the file does not have must not be taken for what an earlier read left here.
  part.fill(0, read)
}

/** Chooses the bytes to read for the offsets from `from` to `to`, about `maxBytes` of frames. */
function planSpans(runs: LogletRuns, from: Offset, to: Offset, maxBytes: number): Span[] {
  const spans: Span[] = []
  let bytes = 0
  let gaps = 0
  for (let i = findRun(runs, from); i < runs.count && bytes < maxBytes; i++) {
    const run = runs.run(i)
    if (run.first > to || bytes + gaps >= MAX_READ_FACTOR * maxBytes) break
    const span = spans.at(-1)
    if (span !== undefined && run.position - span.end <= MAX_GAP_BYTES) {
      gaps += run.position - span.end
      span.end = run.end
      span.runs.push(i)
    } else if (spans.length < MAX_SPANS) {
      spans.push({ position: run.position, end: run.end, runs: [i] })
    } else break
    bytes += run.end - run.position
  }
  return spans
}

/** Visits the frames of spans in order, and checks that they are the ones that should be there. */
class SpanReader {
  next: Offset
  readonly #segment: number
  readonly #seed: number
  readonly #request: RecordsRequest
  readonly #runs: LogletRuns
  readonly #to: Offset
  #bytes = 0

  constructor(
    segment: number,
    seed: number,
    request: RecordsRequest,
    runs: LogletRuns,
    to: Offset,
  ) {
    this.#segment = segment
    this.#seed = seed
    this.#request = request
    this.#runs = runs
    this.#to = to
    this.next = request.from
  }

  /** Returns whether to go on with the next span. */
  visitSpan(span: Span, bytes: Uint8Array): boolean {
    for (const i of span.runs) {
      const run = this.#runs.run(i)
      const start = run.position - span.position
      const end = run.end - span.position
      if (!this.#visitRun(bytes, start, end, run.first, span.position)) return false
    }
    return true
  }

  #visitRun(bytes: Uint8Array, start: number, end: number, first: Offset, base: number): boolean {
    let at = start
    let offset = first
    while (at < end) {
      if (offset > this.#to) return false
      if (offset < this.next) {
        const behind = this.#behind(bytes, at, end, offset)
        // A damaged length hides what is behind it: the frame that is wanted is looked for.
        at = behind ?? this.#search(bytes, at + 1, end, base, this.next)
        offset = behind === undefined ? this.next : offset + 1
        continue
      }
      const frameEnds = this.#expect(bytes, at, end, base, offset)
      if (frameEnds < 0) throw this.#damaged(base + at, offset)
      const goesOn = this.#visit(offset, bytes, at, frameEnds, base)
      this.next = ++offset
      if (!goesOn) return false
      at = frameEnds
    }
    return true
  }

  /** Where the frame ends that is before those wanted, if its length leads to the next one. */
  #behind(bytes: Uint8Array, at: number, limit: number, offset: Offset): number | undefined {
    const end = frameEnd(bytes, at, limit)
    const isNext = end === limit || (end !== undefined && this.#isAt(bytes, end, offset + 1))
    return isNext ? end : undefined
  }

  #expect(bytes: Uint8Array, at: number, limit: number, base: number, offset: Offset): number {
    const { loglet } = this.#request
    return expectFrame(bytes, at, limit, this.#seed, base + at, FRAME_KIND.data, loglet, offset)
  }

  /** Whether the header of the loglet's frame for an offset seems to be at a place. */
  #isAt(bytes: Uint8Array, at: number, offset: Offset): boolean {
    if (at + FRAME_HEADER_BYTES > bytes.length) return false
    if (readU32(bytes, at + FRAME_LOGLET_AT) !== this.#request.loglet) return false
    return readU32(bytes, at + FRAME_OFFSET_AT) === offset >>> 0
  }

  /** Looks for the loglet's frame for an offset, byte by byte. */
  #search(bytes: Uint8Array, from: number, limit: number, base: number, offset: Offset): number {
    for (let at = from; at + FRAME_HEADER_BYTES <= limit; at++) {
      const seems = this.#isAt(bytes, at, offset)
      if (seems && this.#expect(bytes, at, limit, base, offset) >= 0) return at
    }
    throw this.#damaged(base + from - 1, offset)
  }

  #visit(offset: Offset, bytes: Uint8Array, at: number, end: number, base: number): boolean {
    this.#bytes += end - at
    try {
      if (!this.#request.visit(offset, bytes, at + FRAME_HEADER_BYTES, end)) return false
    } catch (error) {
      if (LogError.is(error, 'CORRUPT')) throw this.#damaged(base + at, offset)
      throw error
    }
    return this.#bytes < this.#request.maxBytes
  }

  #damaged(position: number, offset: Offset): LogError {
    const logs = this.#request.stake(offset, offset)
    return corrupt('R4', segmentFile(this.#segment), position, logs, "a frame doesn't check")
  }
}
