/**
 * Repairs a damaged store, on the word of its owner that losing what is lost is acceptable. Every
 * record whose frame still checks is kept; the damaged bytes are copied beside the store; readers
 * get a data-loss gap with the exact LSNs of the others; appends go on behind everything that
 * anything vouches for.
 *
 * In this order, so that a crash anywhere leaves a store that says what it lost, and that running
 * it again ends the same way: copy what is damaged, write the loss gaps at the tail, fill the
 * holes, write the metadata.
 */
import { isZero } from '../codec/bytes.ts'
import { LogError } from '../codec/errors.ts'
import { decodeFrame } from '../codec/frame.ts'
import { emptyFacts, type StoreFacts } from '../codec/log-state.ts'
import { encodeMetadata, type Metadata, type Place } from '../codec/metadata.ts'
import {
  NO_SEGMENT_END,
  sameStore,
  segmentSeed,
  type SegmentEnd,
  type SegmentHeader,
} from '../codec/segment-header.ts'
import { systemClock } from './clock.ts'
import { DirectoryLock } from './directory-lock.ts'
import { corrupt, openFailed } from './errors.ts'
import { indexPath, METADATA_FILE, segmentFile, segmentPath } from './file-names.ts'
import type { FileSystem } from './file-system.ts'
import { unlinkIfThere } from './index-file.ts'
import { findingsOf, type Finding } from './inspect.ts'
import { readSmallFile, withFile, writeFully, writeZeros } from './io.ts'
import { MetadataFile } from './metadata-file.ts'
import { witnessesOf } from './metadata-keeper.ts'
import { NodeFileSystem } from './node-file-system.ts'
import { invalidOption } from './options.ts'
import { OverlayFileSystem } from './overlay-file-system.ts'
import { Quarantine } from './quarantine.ts'
import { factsAtEnd, factsAtStart } from './recovery-stakes.ts'
import { lossGroup, marksFrom, type LossGroup } from './repair-losses.ts'
import { planSegment, type SegmentPlan } from './repair-plan.ts'
import { auditStore, type AuditedSegment, type StoreAudit } from './store-audit.ts'
import type { StoreEnvironment } from './store-opening.ts'

export interface RepairReport {
  /** The files beside the store that hold what was damaged. */
  readonly quarantined: readonly string[]
  /** What was found, as `verify` reports it. */
  readonly findings: readonly Finding[]
}

/**
 * Repairs the store in `dir`. Rejects with INVALID_OPTION unless the loss is accepted, LOCKED while
 * somebody has the store open, CORRUPT if it can't be repaired (nothing is changed then), or
 * OPEN_FAILED. Afterwards the store opens.
 *
 * @example
 * ```ts
 * const { quarantined } = await repair('./data', { acceptDataLoss: true })
 * console.log('what was damaged is kept in', quarantined)
 * ```
 */
export async function repair(
  dir: string,
  options: { readonly acceptDataLoss: true },
): Promise<RepairReport> {
  return repairOn({ fileSystem: new NodeFileSystem(), clock: systemClock }, dir, options)
}

/** `repair` in a given environment. */
export async function repairOn(
  environment: StoreEnvironment,
  dir: string,
  options: { readonly acceptDataLoss: true },
): Promise<RepairReport> {
  if ((options as { acceptDataLoss?: unknown } | undefined)?.acceptDataLoss !== true) {
    throw invalidOption('A repair needs { acceptDataLoss: true }')
  }
  let lock: DirectoryLock | undefined
  try {
    lock = await DirectoryLock.take(environment, dir, 0)
    return await new Repair(environment.fileSystem, dir).run()
  } catch (error) {
    throw openFailed(error, error instanceof LogError)
  } finally {
    await lock?.release()
  }
}

class Repair {
  readonly #fileSystem: FileSystem
  readonly #dir: string
  readonly #quarantine: Quarantine

  constructor(fileSystem: FileSystem, dir: string) {
    this.#fileSystem = fileSystem
    this.#dir = dir
    this.#quarantine = new Quarantine(fileSystem, dir)
  }

  async run(): Promise<RepairReport> {
    const audit = await auditStore(this.#fileSystem, this.#dir)
    const findings = findingsOf(audit)
    const isDamaged = findings.some(({ label }) => label === 'R4' || label === 'R6')
    const knowsNothing = audit.metadata === undefined && audit.ledger.groups === 0
    const needsRepair = isDamaged || knowsNothing
    await this.#writeAgain(audit)
    if (needsRepair) await this.#repair(audit)
    return { quarantined: this.#quarantine.kept, findings }
  }

  /**
   * An earlier repair may have been killed before its syncs: what it wrote is read back from the
   * page cache, and would be gone after a power loss. So it is written and synced once more.
   */
  async #writeAgain({ ledger, segments }: StoreAudit): Promise<void> {
    const names = await this.#quarantine.names()
    if (names.length === 0 && ledger.patched.size === 0) return
    const newest = segments.at(-1)?.segment
    for (const { segment } of segments) {
      const isKept = names.some((name) => name.startsWith(segmentFile(segment)))
      if (!isKept && !ledger.patched.has(segment) && segment !== newest) continue
      const bytes = await readSmallFile(this.#fileSystem, this.#path(segment), MAX_SEGMENT_BYTES)
      if (bytes === undefined) continue
      await withFile(this.#fileSystem, this.#path(segment), 'write', async (file) => {
        await writeFully(file, bytes, 0)
        await file.sync()
      })
    }
    await this.#fileSystem.syncDirectory(this.#dir)
  }

  async #repair(audit: StoreAudit): Promise<void> {
    const { storeId } = audit
    const plans = storeId === undefined ? [] : await this.#planAll(audit, storeId)
    const tail = plans.at(-1)
    if (storeId === undefined || tail === undefined) {
      throw corrupt('R6', segmentFile(1), 0, [], 'nothing of the store is left to go by')
    }
    const overlay = this.#overlay(plans, audit.metadata)
    const after = await auditStore(overlay, this.#dir)
    this.#requireWhole(after, tail.segment)
    after.ledger.reachAll(audit.ledger, tail.segment, tail.end.end)
    const facts = await factsAtEnd(overlay, this.#dir, tail.segment)
    if (facts === undefined || facts.isPartial === true) {
      throw corrupt('R4', segmentFile(tail.segment), 0, [], 'the state of the store is lost')
    }
    const seed = segmentSeed(storeId, tail.segment)
    const losses = after.ledger.losses()
    const oldest = await factsAtStart(overlay, this.#dir, facts.firstSegment)
    const marks = marksFrom(audit.metadata, oldest)
    const group = lossGroup(tail.segment, seed, tail.end, losses, facts, marks)
    await this.#keepDamaged(plans)
    await this.#keepBehind(tail.segment, audit)
    await this.#writeTail(tail, group)
    for (const plan of plans) await this.#fill(plan)
    await this.#emptyBehind(tail.segment, audit)
    await this.#fileSystem.syncDirectory(this.#dir)
    await this.#writeMetadata(audit, storeId, endAfter(tail, group))
  }

  /** The store as it will be, with metadata that vouches for no more than that. */
  #overlay(plans: readonly PlannedSegment[], metadata?: Metadata): OverlayFileSystem {
    const files = new Map<string, Uint8Array>()
    for (const { segment, bytes, end } of plans) {
      files.set(segmentFile(segment), bytes.subarray(0, end.end))
    }
    const tail = plans.at(-1)
    if (metadata !== undefined && tail !== undefined) {
      const place = endAfter(tail, undefined)
      files.set(METADATA_FILE, encodeMetadata({ ...metadata, place, loglets: [] }))
    }
    return new OverlayFileSystem(this.#fileSystem, files)
  }

  async #planAll(audit: StoreAudit, storeId: Uint8Array): Promise<PlannedSegment[]> {
    const plans: PlannedSegment[] = []
    const last = await this.#lastToKeep(audit, storeId)
    let before: SegmentEnd = NO_SEGMENT_END
    for (let segment = audit.firstSegment; segment <= last; segment++) {
      const plan = await this.#planOne(audit, storeId, segment, before, plans)
      plans.push(plan)
      before = plan.end
    }
    return plans
  }

  /** The last segment of which anything is left. */
  async #lastToKeep(audit: StoreAudit, storeId: Uint8Array): Promise<number> {
    for (const { segment, head } of [...audit.segments].reverse()) {
      if (head.facts !== undefined && sameStore(head.header?.storeId ?? storeId, storeId)) {
        return segment
      }
      const bytes = await readSmallFile(this.#fileSystem, this.#path(segment), MAX_SEGMENT_BYTES)
      if (bytes !== undefined && hasFrames(bytes, segmentSeed(storeId, segment))) return segment
    }
    return 0
  }

  /** Segments behind the tail are left empty, without a gap in their numbers. */
  async #emptyBehind(tail: number, { newestSegment, metadata }: StoreAudit): Promise<void> {
    const last = Math.max(newestSegment, metadata?.newestSegment ?? 0)
    for (let segment = tail + 1; segment <= last; segment++) {
      await withFile(this.#fileSystem, this.#path(segment), 'open-or-create', async (file) => {
        await writeZeros(file, 0, await file.size())
        await file.sync()
      })
    }
  }

  async #planOne(
    audit: StoreAudit,
    storeId: Uint8Array,
    segment: number,
    before: SegmentEnd,
    plans: readonly PlannedSegment[],
  ): Promise<PlannedSegment> {
    const audited = audit.segments.find((known) => known.segment === segment)
    const next = audit.segments.find((known) => known.segment === segment + 1)
    const original = await readSmallFile(this.#fileSystem, this.#path(segment), MAX_SEGMENT_BYTES)
    const header = ownHeader(audited, storeId)
    this.#requireOneHistory(segment, header?.previous, before, plans.at(-1))
    const isOurs = audited?.head.header === undefined || header !== undefined
    const isTail = next === undefined
    const end = ownHeader(next, storeId)?.previous
    const facts =
      isTail && audited?.head.facts === undefined
        ? await this.#factsBefore(segment, plans)
        : undefined
    const plan = planSegment({
      storeId,
      segment,
      bytes: (isOurs ? original : undefined) ?? new Uint8Array(0),
      header,
      start: audited?.head.facts === undefined ? undefined : audited.head.start,
      before,
      mustReach: Math.max(audited?.mustReach ?? 0, end?.end ?? 0),
      end,
      facts,
    })
    return { ...plan, original }
  }

  /** Two histories in one store: only its owner knows which file is the wrong one. */
  #requireOneHistory(
    segment: number,
    previous: SegmentEnd | undefined,
    before: SegmentEnd,
    plan: PlannedSegment | undefined,
  ): void {
    if (previous === undefined || plan === undefined || plan.changes.length > 0) return
    const isSame =
      previous.groupNumber === before.groupNumber && previous.groupChecksum === before.groupChecksum
    if (isSame) return
    const what = `segments ${segment - 1} and ${segment} are of two histories: move the wrong one away`
    throw corrupt('R6', segmentFile(segment), 0, [], what)
  }

  /** The state with which a last segment began whose own snapshot is lost. */
  async #factsBefore(
    segment: number,
    plans: readonly PlannedSegment[],
  ): Promise<StoreFacts | undefined> {
    if (segment === 1) return emptyFacts()
    if (plans.at(-1)?.segment !== segment - 1) return undefined
    return factsAtEnd(this.#overlay(plans), this.#dir, segment - 1)
  }

  #path(segment: number): string {
    return segmentPath(this.#dir, segment)
  }

  #requireWhole({ ledger }: StoreAudit, tail: number): void {
    const left = ledger.certainDamages.find(({ segment }) => segment <= tail)
    if (left === undefined) return
    throw corrupt(left.label, segmentFile(left.segment), left.position, [], left.message)
  }

  /** Copies every stretch that will change, and every file that is not ours. */
  async #keepDamaged(plans: readonly PlannedSegment[]): Promise<void> {
    for (const { segment, original, changes, end } of plans) {
      if (original === undefined) continue
      const stretches = [...changes]
      // Behind the tail, what is not zeros goes too.
      if (!isZero(original, Math.min(end.end, original.length), original.length)) {
        stretches.push({ from: end.end, to: original.length })
      }
      for (const { from, to } of stretches) {
        const bytes = original.subarray(from, Math.min(to, original.length))
        if (bytes.length === 0) continue
        await this.#quarantine.keep(`${segmentFile(segment)}.${from}-${from + bytes.length}`, bytes)
      }
    }
  }

  async #keepBehind(tail: number, { newestSegment }: StoreAudit): Promise<void> {
    for (let segment = tail + 1; segment <= newestSegment; segment++) {
      const bytes = await readSmallFile(this.#fileSystem, this.#path(segment), MAX_SEGMENT_BYTES)
      if (bytes === undefined || isZero(bytes, 0, bytes.length)) continue
      await this.#quarantine.keep(`${segmentFile(segment)}.0-${bytes.length}`, bytes)
    }
  }

  /** The end of the tail's segment, with the losses behind it, in one write. */
  async #writeTail(tail: PlannedSegment, group: LossGroup | undefined): Promise<void> {
    const last = tail.changes.filter(({ to }) => to === tail.end.end)
    const from = Math.min(tail.end.end, ...last.map((change) => change.from))
    const patched = tail.bytes.subarray(from, tail.end.end)
    const bytes = group === undefined ? patched : Buffer.concat([patched, group.bytes])
    await withFile(this.#fileSystem, this.#path(tail.segment), 'open-or-create', async (file) => {
      await writeFully(file, bytes, from)
      const end = from + bytes.length
      await writeZeros(file, end, Math.max(end, await file.size()))
      await file.sync()
    })
  }

  async #fill({ segment, bytes, changes, end, original }: PlannedSegment): Promise<void> {
    if (changes.length === 0) return
    await withFile(this.#fileSystem, this.#path(segment), 'open-or-create', async (file) => {
      for (const { from, to } of changes) await writeFully(file, bytes.subarray(from, to), from)
      if (original === undefined) await writeFully(file, bytes.subarray(0, end.end), 0)
      await file.sync()
    })
    await unlinkIfThere(this.#fileSystem, indexPath(this.#dir, segment))
  }

  async #writeMetadata(audit: StoreAudit, storeId: Uint8Array, place: Place): Promise<void> {
    const facts = await factsAtEnd(this.#fileSystem, this.#dir, place.segment)
    if (facts === undefined) throw new Error('The repaired tail could not be read back')
    const { metadata } = audit
    await new MetadataFile(this.#fileSystem, this.#dir).write({
      storeId,
      generation: (metadata?.generation ?? 0) + 1,
      place,
      newestSegment: Math.max(place.segment, audit.newestSegment),
      clean: false,
      nextLogletId: Math.max(
        facts.nextLogletId,
        metadata?.nextLogletId ?? 0,
        audit.ledger.unusedLogletId,
      ),
      loglets: witnessesOf(facts),
    })
  }
}

/** A planned segment, and what is there now; undefined if the file is missing. */
interface PlannedSegment extends SegmentPlan {
  readonly original: Uint8Array | undefined
}

const MAX_SEGMENT_BYTES = 2 ** 31 - 1

/** Whether any frame in the bytes of a segment checks. */
function hasFrames(bytes: Uint8Array, seed: number): boolean {
  for (let at = 0; at < bytes.length; at++) {
    if (decodeFrame(bytes, at, bytes.length, seed, at) !== undefined) return true
  }
  return false
}

function ownHeader(
  audited: AuditedSegment | undefined,
  storeId: Uint8Array,
): SegmentHeader | undefined {
  const header = audited?.head.header
  if (header === undefined || header.segment !== audited?.segment) return undefined
  return sameStore(header.storeId, storeId) ? header : undefined
}

function endAfter({ segment, end }: SegmentPlan, group: LossGroup | undefined): Place {
  const { groupPosition, groupNumber, groupChecksum } = end
  if (group === undefined) {
    return { segment, position: end.end, groupPosition, groupNumber, groupChecksum }
  }
  return {
    segment,
    position: end.end + group.bytes.length,
    groupPosition: end.end,
    groupNumber: group.number,
    groupChecksum: group.checksum,
  }
}
