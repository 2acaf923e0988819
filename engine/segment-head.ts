/** Reads the start of a segment: prefix, header and snapshot, each as far as it checks. */
import { FORMAT_VERSION, SEGMENT_HEADER_BYTES, SEGMENT_MAGIC } from '../codec/format.ts'
import { decodeSnapshot, type StoreFacts } from '../codec/log-state.ts'
import { readPrefix } from '../codec/prefix.ts'
import {
  checkedSnapshot,
  decodeSegmentHeader,
  groupsStart,
  type SegmentHeader,
} from '../codec/segment-header.ts'
import { segmentPath } from './file-names.ts'
import type { FileSystem, StoreFile } from './file-system.ts'
import { readFully, withFile } from './io.ts'

export interface SegmentHead {
  readonly segment: number
  /** The size of the file in bytes. */
  readonly size: number
  /** The version in the prefix, if the prefix is intact. */
  readonly version: number | undefined
  /** The header, if it checks. */
  readonly header: SegmentHeader | undefined
  /** The snapshot, if header and snapshot check. */
  readonly facts: StoreFacts | undefined
  /** Where the groups start, if the header checks. */
  readonly start: number
}

/** A segment whose groups were counted in: it may be read up to `end`. */
export interface LiveSegment {
  readonly segment: number
  /** Where its groups end. */
  readonly end: number
  readonly size: number
}

/** Whether a file is of a version that this code does not know, by a prefix that is intact. */
export function isNewerVersion(version: number | undefined): boolean {
  return version !== undefined && version !== FORMAT_VERSION
}

export function readSegmentHead(
  fileSystem: FileSystem,
  dir: string,
  segment: number,
  want: 'header' | 'snapshot',
): Promise<SegmentHead> {
  return withFile(fileSystem, segmentPath(dir, segment), 'read', (file) =>
    headOf(file, segment, want),
  )
}

/** The head of an open segment. Without `want` being 'snapshot' the facts stay undefined. */
export async function headOf(
  file: StoreFile,
  segment: number,
  want: 'header' | 'snapshot',
): Promise<SegmentHead> {
  const size = await file.size()
  const bytes = await readStart(file, Math.min(size, SEGMENT_HEADER_BYTES))
  const version = readPrefix(bytes, SEGMENT_MAGIC)
  const header = decodeSegmentHeader(bytes)
  if (header === undefined) {
    return { segment, size, version, header, facts: undefined, start: 0 }
  }
  const start = groupsStart(header.snapshotLength)
  const facts =
    want === 'snapshot' && start <= size ? await readFacts(file, header, start) : undefined
  return { segment, size, version, header, facts, start }
}

async function readFacts(
  file: StoreFile,
  header: SegmentHeader,
  start: number,
): Promise<StoreFacts | undefined> {
  const snapshot = checkedSnapshot(await readStart(file, start), header)
  return snapshot === undefined ? undefined : decodeSnapshot(snapshot)
}

async function readStart(file: StoreFile, length: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(length)
  return bytes.subarray(0, await readFully(file, bytes, 0, length, 0))
}
