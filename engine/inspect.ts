/**
 * Offline tools on a store's directory. They change nothing, take no lock and run beside a live
 * writer. `verify` reads every frame; what looks like damage is believed only if it is still there
 * after looking again. `inspect` looks at the files, and believes what it sees.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { LogError, type LogRange } from '../codec/errors.ts'
import type { Damage } from './audit.ts'
import { openFailed } from './errors.ts'
import { METADATA_FILE, segmentFile, segmentsAmong } from './file-names.ts'
import type { FileSystem } from './file-system.ts'
import { isMissing } from './io.ts'
import type { RecoveryFinding, RecoveryLabel } from './metrics.ts'
import { readMetadata } from './metadata-file.ts'
import { NodeFileSystem } from './node-file-system.ts'
import { readSegmentHead } from './segment-head.ts'
import { abortable, auditStore, type StoreAudit } from './store-audit.ts'

/** Something that was found, and the records it puts at stake. */
export interface Finding extends RecoveryFinding {
  readonly logs: readonly LogRange[]
}

export interface VerifyOptions {
  readonly signal?: AbortSignal | undefined
  /** Called with bytes: how many were read, of how many. */
  readonly onProgress?: ((done: number, total: number) => void) | undefined
}

export interface VerifyReport {
  /** Whether nothing is damaged. A torn tail, which the next open cuts, is no damage. */
  readonly ok: boolean
  readonly groups: number
  readonly frames: number
  readonly bytes: number
  readonly findings: readonly Finding[]
}

const LOOK_AGAIN_MS = 200
const LOOKS = 10
const HARMLESS: ReadonlySet<RecoveryLabel> = new Set(['R1', 'R2', 'R3', 'R5', 'R9'])

/**
 * Reads every frame of the store in `dir`. Changes nothing, also beside a live writer. Rejects with
 * OPEN_FAILED if there is no store, UNSUPPORTED_VERSION, or ABORTED.
 *
 * @example
 * ```ts
 * const { ok, findings } = await verify('./data')
 * if (!ok) for (const { label, file, position, message } of findings) console.log(label, file, position, message)
 * ```
 */
export async function verify(dir: string, options: VerifyOptions = {}): Promise<VerifyReport> {
  return verifyOn(new NodeFileSystem(), dir, options)
}

/** `verify` on a given file system. */
export async function verifyOn(
  fileSystem: FileSystem,
  dir: string,
  options: VerifyOptions = {},
): Promise<VerifyReport> {
  const { signal } = options
  try {
    return await abortable(signal, () => verifyTwice(fileSystem, dir, options))
  } catch (error) {
    throw openFailed(error, error instanceof LogError)
  }
}

/** A writer at work looks like damage for a moment: only what stays is reported. */
async function verifyTwice(
  fileSystem: FileSystem,
  dir: string,
  options: VerifyOptions,
): Promise<VerifyReport> {
  let report = await look(fileSystem, dir, options)
  for (let looks = 1; looks < LOOKS && report.findings.length > 0; looks++) {
    await sleep(LOOK_AGAIN_MS, undefined, { signal: options.signal })
    const again = await look(fileSystem, dir, { signal: options.signal })
    const findings = again.findings.filter((finding) => isAmong(report.findings, finding))
    const isSettled = findings.length === again.findings.length
    report = { ...again, findings, ok: isOk(findings) }
    if (isSettled) break
  }
  return report
}

function isAmong(findings: readonly Finding[], { label, file, position }: Finding): boolean {
  return findings.some(
    (known) => known.label === label && known.file === file && known.position === position,
  )
}

async function look(
  fileSystem: FileSystem,
  dir: string,
  options: VerifyOptions,
): Promise<VerifyReport> {
  for (let tries = 1; ; tries++) {
    try {
      return reportOf(await auditStore(fileSystem, dir, options))
    } catch (error) {
      // A segment was unlinked between being listed and being read.
      if (!isMissing(error) || tries === LOOKS) throw error
    }
  }
}

function reportOf(audit: StoreAudit): VerifyReport {
  if (audit.storeId === undefined) throw new Error('There is no store')
  const findings = findingsOf(audit)
  const { groups, frames, bytes } = audit.ledger
  return { ok: isOk(findings), groups, frames, bytes, findings }
}

/** What an audit found, in the users' terms. */
export function findingsOf({ ledger, firstSegment, metadataProblem }: StoreAudit): Finding[] {
  const findings = ledger.damages
    .filter(({ segment }) => segment >= firstSegment)
    .map((damage) => findingOf(damage, ledger.logsOf(damage)))
  if (metadataProblem === undefined) return findings
  const message = metadataProblem
  return [...findings, { label: 'R7', file: METADATA_FILE, position: 0, message, logs: [] }]
}

function findingOf(
  { label, segment, position, message }: Damage,
  logs: readonly LogRange[],
): Finding {
  return { label, file: segmentFile(segment), position, message, logs }
}

function isOk(findings: readonly Finding[]): boolean {
  return findings.every(({ label }) => HARMLESS.has(label))
}

/** A segment file as it lies there. */
export interface SegmentInfo {
  readonly file: string
  readonly segment: number
  /** The size of the file. */
  readonly bytes: number
  /** Milliseconds since the epoch; undefined if the header doesn't check. */
  readonly createdAtMs: number | undefined
}

export interface Inspection {
  /** In hexadecimal; undefined if neither metadata nor any segment tells. */
  readonly storeId: string | undefined
  /** Whether nothing was written since the last clean close, as far as the metadata knows. */
  readonly closedCleanly: boolean
  readonly segments: readonly SegmentInfo[]
}

/** Lists the segment files of the store in `dir`. Rejects with OPEN_FAILED if there is none. */
export async function inspect(dir: string): Promise<Inspection> {
  const fileSystem = new NodeFileSystem()
  try {
    const { metadata } = await readMetadata(fileSystem, dir)
    const found: FoundSegment[] = []
    for (const segment of segmentsAmong(await fileSystem.list(dir))) {
      const info = await findSegment(fileSystem, dir, segment)
      if (info !== undefined) found.push(info)
    }
    if (metadata === undefined && found.length === 0) throw new Error('There is no store')
    const id = metadata?.storeId ?? found.find(({ storeId }) => storeId !== undefined)?.storeId
    return {
      storeId: id === undefined ? undefined : Buffer.from(id).toString('hex'),
      closedCleanly: metadata?.clean ?? false,
      segments: found.map(({ info }) => info),
    }
  } catch (error) {
    throw openFailed(error, error instanceof LogError)
  }
}

interface FoundSegment {
  readonly info: SegmentInfo
  readonly storeId: Uint8Array | undefined
}

/** Undefined for a segment that a writer unlinked after it was listed. */
async function findSegment(
  fileSystem: FileSystem,
  dir: string,
  segment: number,
): Promise<FoundSegment | undefined> {
  try {
    const { size: bytes, header } = await readSegmentHead(fileSystem, dir, segment, 'header')
    const info = { file: segmentFile(segment), segment, bytes, createdAtMs: header?.createdAtMs }
    return { info, storeId: header?.storeId }
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}
