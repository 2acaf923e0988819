/**
 * Where a segment's records are: per loglet, the runs of its frames that lie next to each other in
 * one group. One segment is being written and its index grows in memory; the others' indexes are
 * files beside them, checked, bound to the segment's last group, and rebuilt if they are missing.
 *
 * The layout is the same in memory and on disk, as 32-bit words:
 *
 *     directory, by loglet id:  loglet | first run | runs | tail at the start | tail at the end
 *     runs, by offset:          offset - tail at the start | position | end
 */
import assert from 'node:assert/strict'
import type { Offset } from '../codec/offset.ts'

/** A run of frames of one loglet: offsets from `first` on, bytes from `position` to `end`. */
export interface Run {
  readonly first: Offset
  readonly position: number
  readonly end: number
}

/** The runs of one loglet in one segment. */
export interface LogletRuns {
  /** The loglet's tail when the segment began: the first offset that can be in it. */
  readonly startTail: Offset
  /** The loglet's tail when the segment ended, or now. */
  readonly endTail: Offset
  readonly count: number
  run(i: number): Run
}

export interface SegmentIndex {
  /** Undefined if the segment knows nothing of the loglet. */
  find(loglet: number): LogletRuns | undefined
}

/** The index of the run that holds `offset`, which must be in one. */
export function findRun(runs: LogletRuns, offset: Offset): number {
  let low = 0
  let high = runs.count - 1
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if (runs.run(middle).first <= offset) low = middle
    else high = middle - 1
  }
  return low
}

/** A run grows no longer than this, so that a record in it is found without reading much. */
export const MAX_RUN_BYTES: number = 64 * 1024
const RUN_WORDS = 3
const ENTRY_WORDS = 7

class GrowingRuns implements LogletRuns {
  readonly startTail: Offset
  endTail: Offset
  count = 0
  #words: Uint32Array

  constructor(startTail: Offset, capacity = 4) {
    this.startTail = startTail
    this.endTail = startTail
    this.#words = new Uint32Array(capacity * RUN_WORDS)
  }

  run(i: number): Run {
    return runAt(this.#words, i * RUN_WORDS, this.startTail)
  }

  /** Adds frames of consecutive offsets; they extend the last run if they follow it closely. */
  add(first: Offset, records: number, position: number, end: number): void {
    assert.equal(first, this.endTail, 'runs are added in order')
    this.endTail = first + records
    const last = (this.count - 1) * RUN_WORDS
    const words = this.#words
    const fits = last >= 0 && end - (words[last + 1] as number) <= MAX_RUN_BYTES
    if (fits && words[last + 2] === position) words[last + 2] = end
    else this.#append(first - this.startTail, position, end)
  }

  #append(delta: number, position: number, end: number): void {
    const at = this.count * RUN_WORDS
    if (at === this.#words.length) {
      const grown = new Uint32Array(this.#words.length * 2)
      grown.set(this.#words)
      this.#words = grown
    }
    this.#words[at] = delta
    this.#words[at + 1] = position
    this.#words[at + 2] = end
    this.count++
  }

  words(): Uint32Array {
    return this.#words.subarray(0, this.count * RUN_WORDS)
  }
}

function runAt(words: Uint32Array, at: number, startTail: Offset): Run {
  return {
    first: startTail + (words[at] as number),
    position: words[at + 1] as number,
    end: words[at + 2] as number,
  }
}

/** The index of the segment that is being written, or scanned. */
export class GrowingIndex implements SegmentIndex {
  readonly #runs = new Map<number, GrowingRuns>()

  find(loglet: number): LogletRuns | undefined {
    return this.#runs.get(loglet)
  }

  /**
   * Adds frames of one loglet that lie next to each other. The first record of a loglet in a
   * segment has the offset that was its tail when the segment began.
   */
  add(loglet: number, first: Offset, records: number, position: number, end: number): void {
    this.#runsFrom(loglet, first).add(first, records, position, end)
  }

  #runsFrom(loglet: number, startTail: Offset): GrowingRuns {
    let runs = this.#runs.get(loglet)
    if (runs === undefined) {
      runs = new GrowingRuns(startTail)
      this.#runs.set(loglet, runs)
    }
    return runs
  }

  /** A loss moved a loglet's tail without a record. */
  skip(loglet: number, from: Offset, tail: Offset): void {
    const runs = this.#runsFrom(loglet, from)
    runs.endTail = Math.max(runs.endTail, tail)
  }

  /**
   * The words of directory and runs, for an index file, as the segment ends. `loglets` are all that
   * there are then; those without a record in the segment are listed too, so that a search over
   * segments sees where they stood.
   */
  pack(loglets: Iterable<{ readonly id: number; readonly tail: Offset }>): PackedWords {
    const all = new Map(this.#runs)
    for (const { id, tail } of loglets) if (!all.has(id)) all.set(id, new GrowingRuns(tail, 0))
    const entries = [...all]
    entries.sort(([a], [b]) => a - b)
    const runWords = entries.map(([, runs]) => runs.words())
    const directory = entries.length * ENTRY_WORDS
    const total = runWords.reduce((sum, words) => sum + words.length, directory)
    const words = new Uint32Array(total)
    let at = directory
    entries.forEach(([loglet, runs], i) => {
      const own = runWords[i] as Uint32Array
      writeEntry(words, i * ENTRY_WORDS, loglet, at, runs)
      words.set(own, at)
      at += own.length
    })
    return { loglets: entries.length, words }
  }
}

/** What an index file holds. */
export interface PackedWords {
  readonly loglets: number
  readonly words: Uint32Array
}

function writeEntry(
  words: Uint32Array,
  at: number,
  loglet: number,
  runsAt: number,
  runs: LogletRuns,
): void {
  words[at] = loglet
  words[at + 1] = runsAt
  words[at + 2] = runs.count
  writePair(words, at + 3, runs.startTail)
  writePair(words, at + 5, runs.endTail)
}

const TWO_32 = 0x1_0000_0000

function writePair(words: Uint32Array, at: number, value: number): void {
  words[at] = value >>> 0
  words[at + 1] = Math.floor(value / TWO_32)
}

function readPair(words: Uint32Array, at: number): number {
  return (words[at + 1] as number) * TWO_32 + (words[at] as number)
}

/** The index of a segment that will not change, over the words of its file. */
export class PackedIndex implements SegmentIndex {
  readonly #loglets: number
  readonly #words: Uint32Array

  private constructor(loglets: number, words: Uint32Array) {
    this.#loglets = loglets
    this.#words = words
  }

  /** Undefined if the words don't have the shape of an index. */
  static over({ loglets, words }: PackedWords): PackedIndex | undefined {
    if (loglets * ENTRY_WORDS > words.length) return undefined
    for (let i = 0; i < loglets; i++) {
      const runsAt = words[i * ENTRY_WORDS + 1] as number
      const count = words[i * ENTRY_WORDS + 2] as number
      if (runsAt + count * RUN_WORDS > words.length) return undefined
    }
    return new PackedIndex(loglets, words)
  }

  /** The memory it takes. */
  get bytes(): number {
    return this.#words.byteLength
  }

  find(loglet: number): LogletRuns | undefined {
    let low = 0
    let high = this.#loglets - 1
    while (low <= high) {
      const middle = (low + high) >> 1
      const found = this.#words[middle * ENTRY_WORDS] as number
      if (found === loglet) return this.#entry(middle * ENTRY_WORDS)
      if (found < loglet) low = middle + 1
      else high = middle - 1
    }
    return undefined
  }

  #entry(at: number): LogletRuns {
    const words = this.#words
    const runsAt = words[at + 1] as number
    const startTail = readPair(words, at + 3)
    return {
      startTail,
      endTail: readPair(words, at + 5),
      count: words[at + 2] as number,
      run: (i) => runAt(words, runsAt + i * RUN_WORDS, startTail),
    }
  }
}
