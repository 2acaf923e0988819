/**
 * Walks over the whole groups of a segment, from a known place on, and examines what follows them.
 * Used by recovery, by followers and by verify: there is one answer to "which groups are whole".
 *
 * A group is whole here if its header checks, it is the successor of the one before it (number and
 * checksum), and its frames are all there and check. No length is believed before its header
 * checked, and nothing is allocated for more than the file holds.
 */
import { FRAME_KIND, GROUP_ALIGNMENT, GROUP_HEADER_BYTES } from '../codec/format.ts'
import { alignUp, isZero } from '../codec/bytes.ts'
import {
  comparePositions,
  decodeGroupHeader,
  framesCheck,
  hasGroupMagic,
  type GroupHeader,
  type StreamPosition,
} from '../codec/group.ts'
import { readFrame, type Frame } from '../codec/frame.ts'
import { readFully, type ReadableFile } from './io.ts'

const WINDOW_BYTES = 1024 * 1024

/** A whole group; its bytes are only lent until the scan goes on. */
export interface ScannedGroup {
  /** Where the group starts and ends in its segment. */
  readonly position: number
  readonly end: number
  readonly header: GroupHeader
  /** Bytes that hold the group, which starts at `at`. */
  readonly bytes: Uint8Array
  readonly at: number
}

/** The last whole group before the place where a scan starts. */
export interface Predecessor {
  readonly number: number
  readonly checksum: number
}

/** A range of a file in memory. */
class Window {
  bytes = new Uint8Array(0)
  /** The position in the file of the first byte, and of the first that is not here. */
  from = 0
  to = 0
  readonly #file: ReadableFile

  constructor(file: ReadableFile) {
    this.#file = file
  }

  has(position: number, length: number): boolean {
    return position >= this.from && position + length <= this.to
  }

  /** Reads from `position` on; at least `length` bytes if the file, of `size` bytes, has them. */
  async fill(position: number, length: number, size: number): Promise<void> {
    const wanted = Math.min(size - position, Math.max(length, WINDOW_BYTES))
    if (this.bytes.length < wanted) this.bytes = new Uint8Array(wanted)
    this.from = position
    this.to = position
    this.to += await readFully(this.#file, this.bytes, 0, wanted, position)
  }
}

export class GroupScanner {
  /** The end of the last whole group: where the next one would start. */
  position: number
  /** The last whole group: its start, number and checksum. */
  groupPosition: number
  last: Predecessor
  readonly #window: Window
  readonly #seed: number

  constructor(file: ReadableFile, segmentSeed: number, position: number, last: Predecessor) {
    this.#window = new Window(file)
    this.#seed = segmentSeed
    this.position = position
    this.groupPosition = position
    this.last = last
  }

  /**
   * Visits one whole group after the other, in a file of `size` bytes, until one is not whole or
   * `visit` returns false (then that group doesn't count as visited).
   */
  async scan(size: number, visit: (group: ScannedGroup) => boolean): Promise<void> {
    for (;;) {
      const missing = this.#bytesMissing(size)
      if (missing === undefined) return
      if (missing > 0) {
        await this.#window.fill(this.position, missing, size)
        // The file may be shorter than it was said to be: it is cut beneath a follower.
        if (!this.#window.has(this.position, missing)) return
        continue
      }
      const group = this.#whole()
      if (group === undefined || !visit(group)) return
      this.position = group.end
      this.groupPosition = group.position
      this.last = successionOf(group)
    }
  }

  /** How many bytes from `position` on are needed but not in the window; undefined: no group. */
  #bytesMissing(size: number): number | undefined {
    const { position } = this
    if (position + GROUP_HEADER_BYTES > size) return undefined
    if (!this.#window.has(position, GROUP_HEADER_BYTES)) return GROUP_HEADER_BYTES
    const header = this.#successor()
    if (header === undefined || position + GROUP_HEADER_BYTES + header.length > size) {
      return undefined
    }
    const length = GROUP_HEADER_BYTES + header.length
    return this.#window.has(position, length) ? 0 : length
  }

  #at(): number {
    return this.position - this.#window.from
  }

  #successor(): GroupHeader | undefined {
    const header = decodeGroupHeader(this.#window.bytes, this.#at(), this.#seed, this.position)
    const follows =
      header?.number === this.last.number + 1 && header.previous === this.last.checksum
    return follows ? header : undefined
  }

  #whole(): ScannedGroup | undefined {
    const { position } = this
    const at = this.#at()
    const bytes = this.#window.bytes
    const header = this.#successor()
    if (header === undefined) return undefined
    if (!framesCheck(bytes, at, header, this.#seed, position)) return undefined
    return { position, end: position + GROUP_HEADER_BYTES + header.length, header, bytes, at }
  }
}

/** What the next group follows: this one, or what the fillers of a repair say. */
function successionOf(group: ScannedGroup): Predecessor {
  const { number, checksum, isPatched } = group.header
  let succession = { number, checksum }
  if (isPatched) {
    eachFrame(group, ({ kind, offset, loglet }) => {
      if (kind === FRAME_KIND.filler) succession = { number: offset, checksum: loglet }
      return true
    })
  }
  return succession
}

/**
 * Calls `visit` for each frame of a whole group. Returns false if the frames don't fill the group
 * as its header says, or if `visit` does.
 */
export function eachFrame(
  group: ScannedGroup,
  visit: (frame: Frame, position: number) => boolean,
): boolean {
  const { bytes, at, header } = group
  const base = group.position - at
  const limit = at + GROUP_HEADER_BYTES + header.length
  let next = at + GROUP_HEADER_BYTES
  for (let i = 0; i < header.frames; i++) {
    const frame = readFrame(bytes, next, limit)
    if (frame === undefined || !visit(frame, base + next)) return false
    next = frame.bodyEnd
  }
  return alignUp(next - at, GROUP_ALIGNMENT) === limit - at && isZero(bytes, next, limit)
}

/** What lies behind the last whole group of a segment. */
export interface Rest {
  /** Whether there are only zeros up to the end of the file. */
  readonly isZero: boolean
  /** Bytes up to the last one that is not zero. */
  readonly bytes: number
  /** Frames of the groups whose headers check there. */
  readonly frames: number
  /** The header of a group right there checks, though the group is not whole. */
  readonly header: GroupHeader | undefined
  /** The furthest durable mark in any group header there that checks on its own. */
  readonly durable: StreamPosition | undefined
  /** The greatest generation of the metadata that such a header names. */
  readonly generation: number
}

/** Examines a segment from `from` to its end, for what its remains can still witness. */
export async function examineRest(
  file: ReadableFile,
  segmentSeed: number,
  from: number,
  size: number,
): Promise<Rest> {
  const window = new Window(file)
  const found = new RestFindings(segmentSeed, from)
  for (let at = from; at < size;) {
    await window.fill(at, GROUP_HEADER_BYTES, size)
    if (window.to === window.from) break
    found.examine(window)
    // The file may be shorter than it was said to be: it is cut beneath a follower.
    const isLast = window.to >= size || window.to - at < WINDOW_BYTES
    // The next window overlaps by a header, so that none is missed at the seam.
    at = isLast ? size : window.to - alignUp(GROUP_HEADER_BYTES, GROUP_ALIGNMENT)
    at -= isLast ? 0 : at % GROUP_ALIGNMENT
  }
  return found
}

class RestFindings implements Rest {
  isZero = true
  bytes = 0
  frames = 0
  header: GroupHeader | undefined
  durable: StreamPosition | undefined
  generation = 0
  readonly #seed: number
  readonly #from: number
  /** Headers before this position were counted already. */
  #next: number

  constructor(segmentSeed: number, from: number) {
    this.#seed = segmentSeed
    this.#from = from
    this.#next = from
  }

  examine(window: Window): void {
    const length = window.to - window.from
    const { bytes } = window
    if (isZero(bytes, 0, length)) return
    this.isZero = false
    let last = length - 1
    while (bytes[last] === 0) last--
    this.bytes = window.from + last + 1 - this.#from
    const shift = alignUp(window.from, GROUP_ALIGNMENT) - window.from
    for (let at = shift; at + GROUP_HEADER_BYTES <= length; at += GROUP_ALIGNMENT) {
      if (hasGroupMagic(bytes, at)) this.#witness(bytes, at, window.from + at)
    }
  }

  #witness(bytes: Uint8Array, at: number, position: number): void {
    if (position < this.#next) return
    const header = decodeGroupHeader(bytes, at, this.#seed, position)
    if (header === undefined) return
    this.#next = position + GROUP_ALIGNMENT
    this.frames += header.frames
    if (position === this.#from) this.header = header
    this.generation = Math.max(this.generation, header.generation)
    if (this.durable === undefined || comparePositions(header.durable, this.durable) > 0) {
      this.durable = header.durable
    }
  }
}
