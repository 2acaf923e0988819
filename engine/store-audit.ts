/**
 * An audit of a whole store: every segment that the state calls live, in order, with one ledger.
 * It throws only what the disk throws; damage is in the ledger.
 */
import { aborted } from '../codec/errors.ts'
import type { Metadata } from '../codec/metadata.ts'
import { sameStore, segmentSeed, type SegmentHeader } from '../codec/segment-header.ts'
import { isZero } from '../codec/bytes.ts'
import { FRAME_KIND, SEGMENT_HEADER_BYTES } from '../codec/format.ts'
import { Ledger, SegmentAudit } from './audit.ts'
import { unsupportedVersion } from './errors.ts'
import { METADATA_FILE, segmentFile, segmentPath, segmentsAmong } from './file-names.ts'
import type { FileSystem } from './file-system.ts'
import { examineRest, type Predecessor } from './group-scanner.ts'
import { readFully, withFile } from './io.ts'
import { readMetadata } from './metadata-file.ts'
import { isNewerVersion, readSegmentHead, type SegmentHead } from './segment-head.ts'

export interface AuditOptions {
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((done: number, total: number) => void) | undefined
}

/** A segment as it was audited. */
export interface AuditedSegment {
  readonly segment: number
  readonly head: SegmentHead
  /** Before this position everything had to check. */
  readonly mustReach: number
  /** Where the groups that check end, and the last of them. */
  readonly end: number
  readonly last: Predecessor
}

export interface StoreAudit {
  readonly storeId: Uint8Array | undefined
  readonly metadata: Metadata | undefined
  readonly ledger: Ledger
  readonly segments: readonly AuditedSegment[]
  /** The oldest segment that is still needed. */
  readonly firstSegment: number
  /** The newest segment that has a file. */
  readonly newestSegment: number
  /** What ails the metadata, if anything does. */
  readonly metadataProblem: string | undefined
}

export function auditStore(
  fileSystem: FileSystem,
  dir: string,
  options: AuditOptions = {},
): Promise<StoreAudit> {
  return new Auditor(fileSystem, dir, options).audit()
}

class Auditor {
  readonly #fileSystem: FileSystem
  readonly #dir: string
  readonly #options: AuditOptions
  readonly #ledger = new Ledger()
  readonly #segments: AuditedSegment[] = []
  readonly #heads = new Map<number, SegmentHead>()
  #metadata: Metadata | undefined
  #storeId: Uint8Array | undefined
  #firstSegment = 1
  /** The oldest segment that any snapshot calls live: what came before it was trimmed. */
  #oldest = 1
  #done = 0
  #total = 0

  constructor(fileSystem: FileSystem, dir: string, options: AuditOptions) {
    this.#fileSystem = fileSystem
    this.#dir = dir
    this.#options = options
  }

  async audit(): Promise<StoreAudit> {
    const found = await readMetadata(this.#fileSystem, this.#dir)
    if (isNewerVersion(found.version)) throw unsupportedVersion(METADATA_FILE, found.version)
    this.#metadata = found.metadata
    await this.#readHeads()
    this.#storeId = this.#findStoreId()
    const last = Math.max(this.#newest(), this.#metadata?.newestSegment ?? 0)
    this.#oldest = this.#firstSegment
    for (let segment = this.#firstSegment; segment <= last; segment++) {
      this.#options.signal?.throwIfAborted()
      await this.#auditSegment(segment, last)
    }
    this.#reachMetadata()
    this.#ledger.settle()
    this.#ledger.firstSegment = this.#firstSegment
    return {
      storeId: this.#storeId,
      metadata: this.#metadata,
      ledger: this.#ledger,
      segments: this.#segments,
      firstSegment: this.#firstSegment,
      newestSegment: this.#newest(),
      metadataProblem: this.#metadataProblem(found.isThere),
    }
  }

  async #readHeads(): Promise<void> {
    const names = await this.#fileSystem.list(this.#dir)
    for (const segment of segmentsAmong(names)) {
      const head = await readSegmentHead(this.#fileSystem, this.#dir, segment, 'snapshot')
      this.#heads.set(segment, head)
      this.#total += head.size
      if (head.facts !== undefined) {
        this.#firstSegment = Math.max(this.#firstSegment, head.facts.firstSegment)
      }
    }
    for (const [segment, { version }] of this.#heads) {
      if (segment < this.#firstSegment || !isNewerVersion(version)) continue
      throw unsupportedVersion(segmentFile(segment), version)
    }
  }

  /** The metadata's, or else that of most segments. */
  #findStoreId(): Uint8Array | undefined {
    if (this.#metadata !== undefined) return this.#metadata.storeId
    const ids = [...this.#heads.values()].flatMap(({ header }) => header?.storeId ?? [])
    const votes = (id: Uint8Array): number => ids.filter((other) => sameStore(id, other)).length
    return ids.sort((a, b) => votes(b) - votes(a))[0]
  }

  #newest(): number {
    return Math.max(0, ...this.#heads.keys())
  }

  async #auditSegment(segment: number, last: number): Promise<void> {
    const head = this.#heads.get(segment)
    const next = this.#ownHeader(segment + 1)
    if (head === undefined) {
      const missing = this.#ledger.damage('R6', segment, 0, 'the segment is missing')
      missing.end = next?.previous.end ?? 0
      return
    }
    const bytes = await this.#readSegment(head)
    if (this.#storeId === undefined) return
    const seed = segmentSeed(this.#storeId, segment)
    const mustReach = await this.#mustReach(head, seed, next)
    if (mustReach === 0 && isZero(bytes, 0, bytes.length)) return
    const isTrailing = mustReach === 0 && segment === last && head.facts === undefined
    if (isTrailing) this.#ledger.damage('R5', segment, 0, 'there is no whole group')
    else this.#auditBytes(head, bytes, seed, mustReach, next)
  }

  async #readSegment({ segment, size }: SegmentHead): Promise<Uint8Array> {
    const bytes = new Uint8Array(size)
    const path = segmentPath(this.#dir, segment)
    const length = await withFile(this.#fileSystem, path, 'read', (file) =>
      readFully(file, bytes, 0, size, 0),
    )
    this.#done += size
    this.#options.onProgress?.(this.#done, this.#total)
    return bytes.subarray(0, length)
  }

  /** The header of a segment if it checks, names that segment, and is of this store. */
  #ownHeader(segment: number): SegmentHeader | undefined {
    const header = this.#heads.get(segment)?.header
    if (header?.segment !== segment || this.#storeId === undefined) return undefined
    return sameStore(header.storeId, this.#storeId) ? header : undefined
  }

  /** Before which position of a segment everything was durable, by any witness. */
  async #mustReach(
    head: SegmentHead,
    seed: number,
    next: SegmentHeader | undefined,
  ): Promise<number> {
    const { segment, size } = head
    const path = segmentPath(this.#dir, segment)
    const rest = await withFile(this.#fileSystem, path, 'read', (file) =>
      examineRest(file, seed, 0, size),
    )
    const marks = [this.#metadata?.place, rest.durable]
    const here = marks.map((mark) => (mark?.segment === segment ? mark.position : 0))
    return Math.max(next?.previous.end ?? 0, ...here)
  }

  #auditBytes(
    head: SegmentHead,
    bytes: Uint8Array,
    seed: number,
    mustReach: number,
    next: SegmentHeader | undefined,
  ): void {
    const { segment, facts } = head
    const header = this.#ownHeader(segment)
    const before = this.#segments.at(-1)
    if (header !== undefined) this.#compareWithBefore(segment, header, before)
    else this.#reportStart(head)
    if (header !== undefined && facts === undefined) {
      const message = 'the snapshot does not check'
      this.#ledger.damage('R4', segment, SEGMENT_HEADER_BYTES, message).end = head.start
    }
    if (header !== undefined && facts !== undefined) {
      this.#ledger.snapshot(facts, segment, segment === this.#oldest)
    }
    const last =
      header === undefined
        ? (before?.last ?? { number: 0, checksum: 0 })
        : { number: header.previous.groupNumber, checksum: header.previous.groupChecksum }
    const start = header === undefined ? 0 : head.start
    const limit = next === undefined ? bytes.length : Math.min(bytes.length, mustReach)
    const audited = { segment, bytes: bytes.subarray(0, limit), seed, start, mustReach, last }
    const audit = new SegmentAudit(audited, this.#ledger, (frame) => {
      if (frame.kind !== FRAME_KIND.deadSegments) return
      this.#firstSegment = Math.max(this.#firstSegment, frame.offset + 1)
    })
    audit.run()
    this.#reportTorn(segment, bytes, audit.position, mustReach)
    const { position: end, last: group } = audit
    this.#segments.push({ segment, head, mustReach, end, last: group })
  }

  #reportStart({ segment, header, version }: SegmentHead): void {
    const isOther = header !== undefined
    const message = isOther
      ? 'the file is of another store, or another segment'
      : version === undefined
        ? "the segment's prefix doesn't check"
        : "the segment's header doesn't check"
    this.#ledger.damage(isOther ? 'R6' : 'R4', segment, 0, message)
  }

  /** Two copies of a store that were written apart differ in what a header says of the one before. */
  #compareWithBefore(
    segment: number,
    { previous }: SegmentHeader,
    before: AuditedSegment | undefined,
  ): void {
    if (before?.segment !== segment - 1) return
    const isSame =
      before.last.number === previous.groupNumber && before.last.checksum === previous.groupChecksum
    const wasDamaged = this.#ledger.damages.some((damage) => damage.segment === segment - 1)
    if (isSame || wasDamaged) return
    this.#ledger.damage('R6', segment, 0, 'the segment follows another history')
  }

  #reportTorn(segment: number, bytes: Uint8Array, from: number, mustReach: number): void {
    if (from < mustReach || from >= bytes.length || isZero(bytes, from, bytes.length)) return
    if (this.#ownHeader(segment + 1) !== undefined) return
    const torn = this.#ledger.damage('R2', segment, from, 'bytes that do not check follow the tail')
    torn.end = bytes.length
  }

  /** What the metadata saw released must have been seen here too. */
  #reachMetadata(): void {
    const tail = this.#segments.at(-1)
    if (this.#metadata === undefined || tail === undefined) return
    for (const { loglet, released, trimPoint } of this.#metadata.loglets) {
      this.#ledger.trim(loglet, trimPoint)
      const { segment, position } = this.#metadata.place
      this.#ledger.witness(loglet, released + 1, segment, position)
    }
  }

  #metadataProblem(isThere: boolean): string | undefined {
    if (this.#metadata !== undefined || this.#heads.size === 0) return undefined
    return isThere ? 'the metadata is damaged' : 'the metadata is missing'
  }
}

/** Turns an abort into the error that users know. */
export async function abortable<T>(
  signal: AbortSignal | undefined,
  task: () => Promise<T>,
): Promise<T> {
  try {
    return await task()
  } catch (error) {
    if (signal?.aborted === true) throw aborted(signal)
    throw error
  }
}
