/**
 * The live segments of a store, oldest first, and the index of each: the growing one of the tail,
 * and those of the others, loaded when they are needed and forgotten when memory runs short.
 */
import assert from 'node:assert/strict'
import type { SegmentEnd } from '../codec/segment-header.ts'
import type { LogletFacts, StoreFacts } from '../codec/log-state.ts'
import type { Offset } from '../codec/offset.ts'
import { segmentSeed } from '../codec/segment-header.ts'
import { corrupt } from './errors.ts'
import { segmentFile } from './file-names.ts'
import type { FileSystem, StoreFile } from './file-system.ts'
import { GroupScanner } from './group-scanner.ts'
import { encodeIndex, readIndexFile, writeIndexFile } from './index-file.ts'
import { replayGroup, replayTarget } from './replay.ts'
import type { SegmentFiles } from './segment-files.ts'
import { headOf, type LiveSegment } from './segment-head.ts'
import { GrowingIndex, PackedIndex, type PackedWords, type SegmentIndex } from './segment-index.ts'

export interface SegmentSetOptions {
  readonly fileSystem: FileSystem
  readonly dir: string
  readonly storeId: Uint8Array
  readonly files: SegmentFiles
  readonly indexCacheBytes: number
  /** Whether an index that was built may be written beside its segment. */
  readonly mayWrite: boolean
}

/** An index together with how far it reaches: past damage it knows nothing. */
export interface LoadedIndex {
  readonly index: SegmentIndex
  /** Where the groups stop checking, if that is before the segment's end. */
  readonly damagedAt: number | undefined
}

interface CachedIndex {
  readonly loading: Promise<LoadedIndex & { readonly bytes: number }>
  bytes: number
}

export class SegmentSet {
  readonly #options: SegmentSetOptions
  readonly #live: LiveSegment[]
  /** In the order of their last use, oldest first. */
  readonly #cache = new Map<number, CachedIndex>()
  #cacheBytes = 0
  #tailIndex: GrowingIndex

  constructor(options: SegmentSetOptions, live: readonly LiveSegment[], tailIndex: GrowingIndex) {
    this.#options = options
    this.#live = [...live]
    this.#tailIndex = tailIndex
  }

  get live(): readonly LiveSegment[] {
    return this.#live
  }

  /** The index of the segment that is being written. */
  get tailIndex(): GrowingIndex {
    return this.#tailIndex
  }

  get #tail(): LiveSegment | undefined {
    return this.#live.at(-1)
  }

  /** The tail segment has grown: its groups reach `end`, its file `size`. */
  grow(end: number, size: number): void {
    const tail = this.#tail
    assert.ok(tail !== undefined, 'a segment is begun before it grows')
    this.#live[this.#live.length - 1] = { segment: tail.segment, end, size }
  }

  /**
   * A new segment follows; its index starts empty. Returns the old tail's, packed, if there is one:
   * `loglets` are all that there are, with their tails at the old segment's end.
   */
  begin(
    segment: number,
    loglets: Iterable<{ readonly id: number; readonly tail: Offset }>,
  ): PackedWords | undefined {
    const old = this.#tail
    const packed = old === undefined ? undefined : this.#tailIndex.pack(loglets)
    if (old !== undefined && packed !== undefined) {
      // The zeros behind the old segment's groups are given back.
      this.#live[this.#live.length - 1] = { ...old, size: old.end }
      this.#keepPacked(old.segment, packed)
    }
    this.#tailIndex = new GrowingIndex()
    this.#live.push({ segment, end: 0, size: 0 })
    return packed
  }

  /** The tail's index is filled by somebody else. */
  useTailIndex(index: GrowingIndex): void {
    this.#tailIndex = index
  }

  #keepPacked(segment: number, packed: PackedWords): void {
    const index = PackedIndex.over(packed)
    assert.ok(index, 'what was packed can be unpacked')
    void this.#put(segment, Promise.resolve({ index, damagedAt: undefined, bytes: index.bytes }))
  }

  /** Forgets the oldest segments, up to `last`. */
  async drop(last: number): Promise<LiveSegment[]> {
    const dead = this.#live.filter(({ segment }) => segment <= last)
    this.#live.splice(0, dead.length)
    for (const { segment } of dead) {
      this.#evict(segment)
      await this.#options.files.forget(segment)
    }
    return dead
  }

  /** The end of a segment that is not the tail, as the next one's header says. */
  async #endOf(segment: number): Promise<SegmentEnd> {
    const { header } = await this.#options.files.use(segment + 1, (file) =>
      headOf(file, segment + 1, 'header'),
    )
    if (header !== undefined) return header.previous
    throw corrupt('R4', segmentFile(segment + 1), 0, [], "its header doesn't check")
  }

  isLive(segment: number): boolean {
    const first = this.#live[0]?.segment
    const last = this.#tail?.segment
    return first !== undefined && last !== undefined && segment >= first && segment <= last
  }

  /** A loglet's tail when a segment began; undefined if it was not there, or damage hides it. */
  async startTail(segment: number, loglet: number): Promise<Offset | undefined> {
    const { facts } = await this.#options.files.use(segment, (file) =>
      headOf(file, segment, 'snapshot'),
    )
    return facts?.isPartial === true ? undefined : facts?.loglets.get(loglet)?.tail
  }

  /** The index of a live segment. */
  async index(segment: number): Promise<LoadedIndex> {
    if (segment === this.#tail?.segment) {
      return { index: this.#tailIndex, damagedAt: undefined }
    }
    const cached = this.#cache.get(segment)
    if (cached === undefined) return this.#put(segment, this.#load(segment))
    this.#cache.delete(segment)
    this.#cache.set(segment, cached)
    return cached.loading
  }

  async #put(segment: number, loading: CachedIndex['loading']): CachedIndex['loading'] {
    const entry: CachedIndex = { loading, bytes: 0 }
    this.#cache.set(segment, entry)
    try {
      const loaded = await loading
      if (this.#cache.get(segment) === entry) {
        entry.bytes = loaded.bytes
        this.#cacheBytes += loaded.bytes
        this.#shrink(segment)
      }
      return loaded
    } catch (error) {
      if (this.#cache.get(segment) === entry) this.#cache.delete(segment)
      throw error
    }
  }

  #shrink(keep: number): void {
    for (const segment of this.#cache.keys()) {
      if (this.#cacheBytes <= this.#options.indexCacheBytes) return
      if (segment !== keep) this.#evict(segment)
    }
  }

  #evict(segment: number): void {
    this.#cacheBytes -= this.#cache.get(segment)?.bytes ?? 0
    this.#cache.delete(segment)
  }

  async #load(segment: number): CachedIndex['loading'] {
    const { fileSystem, dir, storeId } = this.#options
    const end = await this.#endOf(segment)
    const seed = segmentSeed(storeId, segment)
    const last = { number: end.groupNumber, checksum: end.groupChecksum }
    const found = await readIndexFile(fileSystem, dir, segment, { seed, last })
    if (found !== undefined) return { index: found, damagedAt: undefined, bytes: found.bytes }
    const built = await this.#build(segment, seed, end)
    if (built.damagedAt === undefined) await this.save(segment, built.packed, end)
    const { index, damagedAt } = built
    return { index, damagedAt, bytes: built.packed.words.byteLength }
  }

  /** All loglets there were at a segment's end, as the next snapshot that is whole says. */
  async #logletsAfter(segment: number): Promise<Iterable<LogletFacts>> {
    for (let next = segment + 1; this.isLive(next); next++) {
      const { facts } = await this.#options.files.use(next, (file) =>
        headOf(file, next, 'snapshot'),
      )
      if (facts !== undefined && facts.isPartial !== true) return facts.loglets.values()
    }
    return []
  }

  async #build(
    segment: number,
    seed: number,
    end: SegmentEnd,
  ): Promise<LoadedIndex & { readonly packed: PackedWords }> {
    const { growing, facts, position } = await this.#options.files.use(segment, (file) =>
      scanSegment(file, segment, seed, end.end),
    )
    const isPartial = facts?.isPartial === true
    const loglets = isPartial ? await this.#logletsAfter(segment) : (facts?.loglets.values() ?? [])
    const packed = growing.pack(loglets)
    const index = PackedIndex.over(packed)
    assert.ok(index, 'what was packed can be unpacked')
    return { index, damagedAt: position === end.end ? undefined : position, packed }
  }

  /** Writes a segment's index beside it. Failing to is no loss: it is built when it is needed. */
  async save(segment: number, packed: PackedWords, end: SegmentEnd): Promise<void> {
    const { fileSystem, dir, storeId, mayWrite } = this.#options
    if (!mayWrite) return
    const seed = segmentSeed(storeId, segment)
    const last = { number: end.groupNumber, checksum: end.groupChecksum }
    const bytes = encodeIndex(packed, { seed, last })
    await writeIndexFile(fileSystem, dir, segment, bytes).catch(() => undefined)
  }
}

/** Indexes a segment as far as its groups are whole; the facts are those at that position. */
async function scanSegment(
  file: StoreFile,
  segment: number,
  seed: number,
  end: number,
): Promise<{
  readonly growing: GrowingIndex
  readonly facts: StoreFacts | undefined
  readonly position: number
}> {
  const growing = new GrowingIndex()
  const { header, facts, start } = await headOf(file, segment, 'snapshot')
  if (header === undefined || facts === undefined) return { growing, facts: undefined, position: 0 }
  const { groupNumber: number, groupChecksum: checksum } = header.previous
  const scanner = new GroupScanner(file, seed, start, { number, checksum })
  const target = replayTarget(facts, segment, growing)
  await scanner.scan(end, (group) => replayGroup(target, group))
  return { growing, facts, position: scanner.position }
}
