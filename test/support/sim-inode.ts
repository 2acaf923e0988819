/**
 * The bytes of one simulated file, and our assumptions about what a disk does to them.
 *
 *   cache     what every reader sees: the page cache. Lost when the power goes.
 *   durable   what the last sync that covered a sector left on the disk.
 *   versions  what was written to a sector since. After a power loss each sector holds, whatever
 *             the others hold, the durable bytes or any one of its versions.
 *   sizes     the same for the file's size. While a file grows it may have any size in between.
 *
 * A sector that comes into use (the file grows over it, or its page is allocated) may hold anything
 * until a sync covers it: what an earlier file left there, zeros, or what was written.
 *
 * A sync makes durable what was written before it began; a commit the sectors of its own bytes, and
 * a size that is enough to read them. When one fails, the pages that it would have covered are
 * clean all the same: readers see their new bytes, the disk may or may not have them, and no later
 * sync writes them until something is written to the page again.
 *
 * A sector without versions has the same bytes in the cache as on the disk. Beyond the end of the
 * file the cache holds zeros.
 */
import assert from 'node:assert/strict'
import { PAGE_BYTES, SECTOR_BYTES, SECTORS_PER_PAGE, type SimMedium } from './sim-medium.ts'

interface Version {
  /** The event that wrote it. */
  readonly event: number
  readonly bytes: Uint8Array
  /** Clean after a failed sync: no sync writes it any more. */
  readonly lost: boolean
}

interface SizeVersion {
  readonly event: number
  readonly size: number
}

/** Marks content that nobody wrote. What it is, is drawn when somebody has to see it. */
const UNWRITTEN = new Uint8Array(SECTOR_BYTES)
const ZEROS = new Uint8Array(SECTOR_BYTES)

/** How much of a deleted file may show up in others; to bound the work for large ones. */
const MAX_DISCARDED_BYTES = 256 * 1024

export class SimInode {
  readonly #medium: SimMedium
  #cache: Uint8Array = new Uint8Array(0)
  #durable: Uint8Array = new Uint8Array(0)
  #size = 0
  #durableSize = 0
  readonly #versions = new Map<number, Version[]>()
  #sizes: SizeVersion[] = []
  /** Pages that are clean though not on the disk. */
  readonly #lostPages = new Set<number>()
  /** Pages that take space on the disk. */
  #pages = new Set<number>()

  constructor(medium: SimMedium) {
    this.#medium = medium
  }

  get size(): number {
    return this.#size
  }

  get pageCount(): number {
    return this.#pages.size
  }

  /** Reads from the page cache; the bytes are a view. */
  read(position: number, length: number): Uint8Array {
    const end = Math.min(this.#size, position + length)
    return this.#cache.subarray(Math.min(position, end), end)
  }

  /**
   * Writes to the page cache as many of the bytes as there is room for; returns how many. Throws
   * nothing: a caller that got 0 asks `refusal` why.
   */
  write(source: Uint8Array, position: number): number {
    const event = this.#medium.nextEvent()
    const room = Math.min(source.length, Math.max(0, this.#medium.maxFileBytes - position))
    const written = this.#allocate(event, position, room)
    if (written === 0) return 0
    const end = position + written
    if (end > this.#size) this.#setSize(event, end)
    this.#cache.set(source.subarray(0, written), position)
    this.#dirtyAgain(event, position, end)
    this.#record(event, Math.floor(position / SECTOR_BYTES), Math.ceil(end / SECTOR_BYTES), false)
    return written
  }

  /** Why not even one byte could be written there. */
  refusal(position: number): 'EFBIG' | 'ENOSPC' {
    return position >= this.#medium.maxFileBytes ? 'EFBIG' : 'ENOSPC'
  }

  truncate(size: number): void {
    const event = this.#medium.nextEvent()
    if (size < this.#size) this.#cut(event, size)
    this.#setSize(event, size)
  }

  /** Makes durable what was written up to the event `began`. */
  sync(began: number): void {
    for (const sector of this.#versions.keys()) this.#settle(sector, began)
    const covered = this.#sizes.findLastIndex((version) => version.event <= began)
    this.#durableSize = this.#sizes[covered]?.size ?? this.#durableSize
    this.#sizes.splice(0, covered + 1)
  }

  /** Makes these bytes durable as they were at the event `wrote`, and a size that reaches them. */
  syncRange(position: number, end: number, wrote: number): void {
    const last = Math.ceil(end / SECTOR_BYTES)
    for (let sector = Math.floor(position / SECTOR_BYTES); sector < last; sector++) {
      this.#settle(sector, wrote)
    }
    this.#sizes = this.#sizes.filter((version) => version.size >= end)
    this.#durableSize = Math.max(this.#durableSize, end)
  }

  /** A sync of these bytes failed that began at the event `began`. */
  failSync(position: number, end: number, began: number): void {
    const firstPage = Math.floor(position / PAGE_BYTES)
    const pages = new Set<number>()
    for (const [sector, versions] of this.#versions) {
      const page = Math.floor(sector / SECTORS_PER_PAGE)
      if (page < firstPage || page * PAGE_BYTES >= end) continue
      if (versions.some((version) => version.event <= began && !version.lost)) pages.add(page)
    }
    for (const page of pages) this.#losePage(page, began)
  }

  /** What a power loss leaves: one version of the size and of each sector. */
  powerLoss(): void {
    const size = this.#pickSize()
    const choice = this.#medium.random.pick(['oldest', 'newest', 'any', 'any'])
    for (const [sector, versions] of this.#versions) {
      this.#become(sector, this.#pickVersion(sector, versions, choice))
    }
    this.#versions.clear()
    this.#lostPages.clear()
    // Holes are taken for pages, because a cut that is undone brings pages back.
    this.#pages = new Set(Array(Math.ceil(size / PAGE_BYTES)).keys())
    this.#sizes = []
    this.#size = this.#durableSize = size
    this.#ensureCapacity(size)
    this.#cache.fill(0, size)
    this.#durable.fill(0, size)
  }

  /** The system is short of memory: some pages that it takes for clean are read again from disk. */
  forgetCleanPages(): void {
    for (const page of this.#lostPages) {
      if (!this.#medium.random.chance(0.25)) continue
      this.#lostPages.delete(page)
      for (const [sector, versions] of this.#versionsOf(page)) {
        this.#become(sector, this.#pickVersion(sector, versions, 'any'))
        this.#zeroBeyondEnd(sector)
        this.#versions.delete(sector)
      }
    }
  }

  /** Changes bytes below the end on the disk, and what was written since the last sync as well. */
  damage(position: number, bytes: Uint8Array): void {
    assert(position + bytes.length <= this.#size)
    this.#cache.set(bytes, position)
    const last = Math.ceil((position + bytes.length) / SECTOR_BYTES)
    for (let sector = Math.floor(position / SECTOR_BYTES); sector < last; sector++) {
      const at = sector * SECTOR_BYTES
      this.#become(sector, this.#cache.slice(at, at + SECTOR_BYTES))
      this.#versions.delete(sector)
    }
  }

  /** Whether these bytes, as readers see them, are there after any power loss. */
  isDurable(from: number, to: number): boolean {
    const sizes = [this.#durableSize, ...this.#sizes.map((version) => version.size)]
    if (Math.min(...sizes) < to) return false
    for (let sector = Math.floor(from / SECTOR_BYTES); sector * SECTOR_BYTES < to; sector++) {
      const versions = this.#versions.get(sector) ?? []
      const low = Math.max(from, sector * SECTOR_BYTES)
      const high = Math.min(to, (sector + 1) * SECTOR_BYTES)
      const seen = this.#cache.subarray(low, high)
      const start = sector * SECTOR_BYTES
      const same = (bytes: Uint8Array): boolean =>
        bytes !== UNWRITTEN && equal(bytes.subarray(low - start, high - start), seen)
      const durable = this.#durable.subarray(start, start + SECTOR_BYTES)
      if (!same(durable) || !versions.every((version) => same(version.bytes))) return false
    }
    return true
  }

  /** The file is gone: its space is free, and its bytes may show up in other files. */
  release(): void {
    this.#medium.givePages(this.#pages.size)
    const end = Math.min(this.#size, MAX_DISCARDED_BYTES)
    for (let at = 0; at < end; at += SECTOR_BYTES) {
      this.#medium.discard(at / SECTOR_BYTES, this.#cache.subarray(at, at + SECTOR_BYTES))
    }
  }

  fork(medium: SimMedium): SimInode {
    const copy = new SimInode(medium)
    copy.#cache = this.#cache.slice()
    copy.#durable = this.#durable.slice()
    copy.#size = this.#size
    copy.#durableSize = this.#durableSize
    copy.#sizes = [...this.#sizes]
    copy.#pages = new Set(this.#pages)
    for (const [sector, versions] of this.#versions) copy.#versions.set(sector, [...versions])
    for (const page of this.#lostPages) copy.#lostPages.add(page)
    return copy
  }

  /** Takes the pages that the write needs, as long as there are any; returns what fits in them. */
  #allocate(event: number, position: number, length: number): number {
    const end = position + length
    for (let page = Math.floor(position / PAGE_BYTES); page * PAGE_BYTES < end; page++) {
      if (this.#pages.has(page)) continue
      if (!this.#medium.takePage()) return Math.max(0, page * PAGE_BYTES - position)
      this.#pages.add(page)
      this.#ensureCapacity((page + 1) * PAGE_BYTES)
      this.#expose(event, page * SECTORS_PER_PAGE, (page + 1) * SECTORS_PER_PAGE)
    }
    return length
  }

  /** These sectors come into use: readers see zeros, the disk may hold anything. */
  #expose(event: number, first: number, last: number): void {
    for (let sector = first; sector < last; sector++) {
      if (this.#versions.get(sector)?.at(-1)?.event === event) continue
      this.#push(sector, { event, bytes: UNWRITTEN, lost: false })
      this.#push(sector, { event, bytes: ZEROS, lost: false })
    }
  }

  #setSize(event: number, size: number): void {
    this.#ensureCapacity(size)
    this.#expose(event, Math.ceil(this.#size / SECTOR_BYTES), Math.ceil(size / SECTOR_BYTES))
    this.#size = size
    this.#sizes.push({ event, size })
  }

  /** Zeros what lies beyond the new end; whole pages of it leave the page cache and the disk. */
  #cut(event: number, size: number): void {
    this.#cache.fill(0, size, this.#size)
    const firstGone = Math.ceil(size / PAGE_BYTES)
    const gone = [...this.#pages].filter((page) => page >= firstGone)
    for (const page of gone) this.#pages.delete(page)
    this.#medium.givePages(gone.length)
    // The page that is cut in two is not written again by this, if it was clean but not on the disk.
    const isEdgeLost = this.#lostPages.has(firstGone - 1)
    for (const page of this.#lostPages) if (page >= firstGone) this.#lostPages.delete(page)
    const firstSector = Math.floor(size / SECTOR_BYTES)
    const edge = Math.min(firstGone * SECTORS_PER_PAGE, Math.ceil(this.#size / SECTOR_BYTES))
    this.#record(event, firstSector, edge, isEdgeLost)
    for (let sector = edge; sector * SECTOR_BYTES < this.#size; sector++) {
      this.#push(sector, { event, bytes: ZEROS, lost: false })
    }
  }

  /** A write to a page that was clean though not on the disk makes all of the page dirty again. */
  #dirtyAgain(event: number, position: number, end: number): void {
    if (this.#lostPages.size === 0) return
    for (let page = Math.floor(position / PAGE_BYTES); page * PAGE_BYTES < end; page++) {
      if (!this.#lostPages.delete(page)) continue
      for (const [sector] of this.#versionsOf(page)) this.#record(event, sector, sector + 1, false)
    }
  }

  /** Notes what the cache now holds as the newest version of these sectors. */
  #record(event: number, first: number, last: number, lost: boolean): void {
    const snapshot = this.#cache.slice(first * SECTOR_BYTES, last * SECTOR_BYTES)
    for (let sector = first; sector < last; sector++) {
      const at = (sector - first) * SECTOR_BYTES
      this.#push(sector, { event, bytes: snapshot.subarray(at, at + SECTOR_BYTES), lost })
    }
  }

  #push(sector: number, version: Version): void {
    const versions = this.#versions.get(sector)
    if (versions === undefined) this.#versions.set(sector, [version])
    else versions.push(version)
  }

  /** The newest version up to that event is on the disk; only later ones can still replace it. */
  #settle(sector: number, upTo: number): void {
    const versions = this.#versions.get(sector) ?? []
    const index = versions.findLastIndex((version) => version.event <= upTo && !version.lost)
    const settled = versions[index]
    if (settled === undefined) return
    assert.notEqual(settled.bytes, UNWRITTEN)
    const at = sector * SECTOR_BYTES
    if (settled.bytes === ZEROS) {
      this.#medium.discard(sector, this.#durable.subarray(at, at + SECTOR_BYTES))
    }
    this.#durable.set(settled.bytes, at)
    versions.splice(0, index + 1)
    if (versions.length === 0) this.#versions.delete(sector)
  }

  /** A page that was written again while the sync ran may be dirty for that reason. */
  #losePage(page: number, began: number): void {
    const sectors = this.#versionsOf(page)
    const isNewer = sectors.some(([, versions]) => versions.some(({ event }) => event > began))
    if (isNewer && this.#medium.random.chance(0.5)) return
    this.#lostPages.add(page)
    for (const [sector, versions] of sectors) {
      this.#versions.set(
        sector,
        versions.map((version) => ({ ...version, lost: true })),
      )
    }
  }

  #versionsOf(page: number): [number, Version[]][] {
    const found: [number, Version[]][] = []
    for (let sector = page * SECTORS_PER_PAGE; sector < (page + 1) * SECTORS_PER_PAGE; sector++) {
      const versions = this.#versions.get(sector)
      if (versions !== undefined) found.push([sector, versions])
    }
    return found
  }

  #pickSize(): number {
    const { random } = this.#medium
    const sizes = [this.#durableSize, ...this.#sizes.map((version) => version.size)]
    const index = random.pick([0, sizes.length - 1, random.below(sizes.length)])
    const size = sizes[index] ?? 0
    const next = sizes[index + 1] ?? size
    return next > size && random.chance(0.5) ? random.between(size, next) : size
  }

  #pickVersion(sector: number, versions: readonly Version[], choice: string): Uint8Array {
    const any = this.#medium.random.between(-1, versions.length - 1)
    const index = choice === 'any' ? any : choice === 'newest' ? versions.length - 1 : -1
    const at = sector * SECTOR_BYTES
    const bytes = versions[index]?.bytes ?? this.#durable.slice(at, at + SECTOR_BYTES)
    return bytes === UNWRITTEN ? this.#medium.unwritten(sector) : bytes
  }

  #become(sector: number, bytes: Uint8Array): void {
    this.#durable.set(bytes, sector * SECTOR_BYTES)
    this.#cache.set(bytes, sector * SECTOR_BYTES)
  }

  #zeroBeyondEnd(sector: number): void {
    const from = Math.max(this.#size, sector * SECTOR_BYTES)
    const to = Math.max(from, (sector + 1) * SECTOR_BYTES)
    this.#cache.fill(0, from, to)
    this.#durable.fill(0, from, to)
  }

  #ensureCapacity(bytes: number): void {
    if (bytes <= this.#cache.length) return
    const pages = Math.ceil(Math.max(bytes, this.#cache.length * 1.5) / PAGE_BYTES)
    this.#cache = enlarged(this.#cache, pages * PAGE_BYTES)
    this.#durable = enlarged(this.#durable, pages * PAGE_BYTES)
  }
}

function enlarged(bytes: Uint8Array, length: number): Uint8Array {
  const larger = new Uint8Array(length)
  larger.set(bytes)
  return larger
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0
}
