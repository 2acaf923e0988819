/**
 * The bodies of records as they lie in the segment files: the one look below the public API. It
 * finds the whole groups with the engine's own scanner, checks every frame in them, and gives the
 * msgpack bytes of each record without decoding them.
 */
import { readdirSync } from 'node:fs'
import { FRAME_KIND, GROUP_HEADER_BYTES } from '../../codec/format.ts'
import { decodeFrame, type Frame } from '../../codec/frame.ts'
import { unpack } from '../../codec/msgpack.ts'
import { segmentSeed } from '../../codec/segment-header.ts'
import { segmentPath, segmentsAmong } from '../../engine/file-names.ts'
import { GroupScanner, type ScannedGroup } from '../../engine/group-scanner.ts'
import { withFile } from '../../engine/io.ts'
import { NodeFileSystem } from '../../engine/node-file-system.ts'
import { headOf } from '../../engine/segment-head.ts'
import { mustHold } from './failure.ts'

/** Called for each record; `body` is only lent. */
export type VisitBody = (logId: string, offset: number, body: Uint8Array) => void

const fileSystem = new NodeFileSystem()

/** Visits every record of a closed store, oldest segment first. Nothing of it may be trimmed. */
export async function visitStoredRecords(dir: string, visit: VisitBody): Promise<void> {
  const logs = new Map<number, string>()
  for (const segment of segmentsAmong(readdirSync(dir))) {
    await visitSegment(dir, segment, (frame, bytes) => {
      visitFrame(frame, bytes, logs, visit)
    })
  }
}

type VisitFrame = (frame: Frame, bytes: Uint8Array) => void

function visitSegment(dir: string, segment: number, visit: VisitFrame): Promise<void> {
  return withFile(fileSystem, segmentPath(dir, segment), 'read', async (file) => {
    const { header, start, size } = await headOf(file, segment, 'header')
    // The next segment's file is there before it is needed, and holds only zeros.
    if (header === undefined) return
    const seed = segmentSeed(header.storeId, segment)
    const { groupNumber: number, groupChecksum: checksum } = header.previous
    const scanner = new GroupScanner(file, seed, start, { number, checksum })
    await scanner.scan(size, (group) => {
      visitGroup(group, seed, visit)
      return true
    })
  })
}

function visitGroup(
  { position, bytes, at, header }: ScannedGroup,
  seed: number,
  visit: VisitFrame,
): void {
  const limit = at + GROUP_HEADER_BYTES + header.length
  let next = at + GROUP_HEADER_BYTES
  for (let i = 0; i < header.frames; i++) {
    const frame = decodeFrame(bytes, next, limit, seed, position + next - at)
    mustHold(frame !== undefined, () => `Frame ${i} of group ${header.number} does not check`)
    visit(frame, bytes)
    next = frame.bodyEnd
  }
}

function visitFrame(
  { kind, loglet, offset, bodyStart, bodyEnd }: Frame,
  bytes: Uint8Array,
  logs: Map<number, string>,
  visit: VisitBody,
): void {
  if (kind === FRAME_KIND.create) logs.set(loglet, String(unpack(bytes, bodyStart, bodyEnd)))
  const logId = logs.get(loglet)
  if (kind !== FRAME_KIND.data || logId === undefined) return
  visit(logId, offset, bytes.subarray(bodyStart, bodyEnd))
}
