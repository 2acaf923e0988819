/**
 * What goes wrong with a store's files: functions that damage them, a map of a segment to aim by,
 * and a picture of a directory to show that nobody touched it.
 */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { FRAME_HEADER_BYTES, FRAME_KIND, GROUP_HEADER_BYTES } from '../../codec/format.ts'
import { decodeFrame, type Frame } from '../../codec/frame.ts'
import { decodeGroupHeader, type GroupHeader } from '../../codec/group.ts'
import {
  decodeSegmentHeader,
  groupsStart,
  segmentSeed,
  type SegmentHeader,
} from '../../codec/segment-header.ts'
import { segmentOfName } from '../../engine/file-names.ts'

/** Rewrites a file with what `change` makes of its bytes. */
export function rewrite(path: string, change: (bytes: Uint8Array) => Uint8Array): void {
  fs.writeFileSync(path, change(new Uint8Array(fs.readFileSync(path))))
}

export function flipBit(path: string, position: number, bit = 0): void {
  rewrite(path, (bytes) => {
    assert.ok(position < bytes.length, `${path} has no byte ${position}`)
    bytes[position] = (bytes[position] as number) ^ (1 << bit)
    return bytes
  })
}

export function cutTo(path: string, size: number): void {
  assert.ok(size <= fs.statSync(path).size, 'a cut makes a file shorter')
  fs.truncateSync(path, size)
}

/** Sets the bytes from `from` to `to` to zero. */
export function zeroRange(path: string, from: number, to: number): void {
  rewrite(path, (bytes) => bytes.fill(0, from, to))
}

export function putU32(path: string, at: number, value: number): void {
  rewrite(path, (bytes) => {
    new DataView(bytes.buffer).setUint32(at, value, true)
    return bytes
  })
}

/** Writes bytes into a file, which grows if it has to. */
export function putBytes(path: string, at: number, part: Uint8Array): void {
  rewrite(path, (bytes) => {
    const grown = new Uint8Array(Math.max(bytes.length, at + part.length))
    grown.set(bytes)
    grown.set(part, at)
    return grown
  })
}

/** A frame in a segment's file. */
export interface FrameOnDisk extends Frame {
  /** Where its header starts. */
  readonly position: number
}

/** A whole group in a segment's file. */
export interface GroupOnDisk {
  readonly position: number
  readonly end: number
  readonly header: GroupHeader
  readonly frames: readonly FrameOnDisk[]
}

/** What a segment's file holds, as far as it is whole. */
export interface SegmentOnDisk {
  readonly header: SegmentHeader
  readonly seed: number
  /** Where the groups start, and where they end. */
  readonly start: number
  readonly end: number
  readonly groups: readonly GroupOnDisk[]
  readonly size: number
}

/** Reads the map of a segment. Only what its checksums vouch for is on it. */
export function mapSegment(path: string): SegmentOnDisk {
  const bytes = new Uint8Array(fs.readFileSync(path))
  const header = decodeSegmentHeader(bytes)
  assert.ok(header, `${path} has a header that checks`)
  const seed = segmentSeed(header.storeId, header.segment)
  const start = groupsStart(header.snapshotLength)
  const groups: GroupOnDisk[] = []
  let end = start
  for (;;) {
    const group = mapGroup(bytes, end, seed)
    if (group === undefined) return { header, seed, start, end, groups, size: bytes.length }
    groups.push(group)
    end = group.end
  }
}

function mapGroup(bytes: Uint8Array, position: number, seed: number): GroupOnDisk | undefined {
  const header = decodeGroupHeader(bytes, position, seed, position)
  if (header === undefined) return undefined
  const end = position + GROUP_HEADER_BYTES + header.length
  const frames: FrameOnDisk[] = []
  let at = position + GROUP_HEADER_BYTES
  for (let i = 0; i < header.frames; i++) {
    const frame = decodeFrame(bytes, at, end, seed, at)
    if (frame === undefined) return undefined
    frames.push({ ...frame, position: at })
    at = frame.bodyEnd
  }
  return { position, end, header, frames }
}

/** The frame of a loglet's record, and the segment's file that it lies in. */
export function findRecord(
  dir: string,
  loglet: number,
  offset: number,
): { readonly path: string; readonly file: string; readonly frame: FrameOnDisk } {
  for (const file of segmentFiles(dir)) {
    const path = join(dir, file)
    for (const { frames } of mapSegment(path).groups) {
      const frame = frames.find(
        ({ kind, ...found }) =>
          kind === FRAME_KIND.data && found.loglet === loglet && found.offset === offset,
      )
      if (frame !== undefined) return { path, file, frame }
    }
  }
  assert.fail(`loglet ${loglet} has no record ${offset} in ${dir}`)
}

/** The names of the segments' files, oldest first; files without a first group are left out. */
export function segmentFiles(dir: string): string[] {
  return fs
    .readdirSync(dir)
    .filter((name) => segmentOfName(name) !== undefined)
    .filter((name) => decodeSegmentHeader(new Uint8Array(fs.readFileSync(join(dir, name)))))
    .sort()
}

/** Where the body of a record's payload surely is: the last byte of its frame. */
export function lastByteOf({ bodyEnd }: Frame): number {
  return bodyEnd - 1
}

/** Where the length of a frame is: its first byte. */
export function lengthOf({ position }: FrameOnDisk): number {
  return position
}

/** How many bytes a frame takes. */
export function frameBytes({ bodyStart, bodyEnd }: Frame): number {
  return FRAME_HEADER_BYTES + bodyEnd - bodyStart
}

/** All that can be seen of a file from outside, but for when it was read. */
interface FilePicture {
  readonly bytes: string
  readonly size: number
  readonly inode: bigint
  readonly changedNs: bigint
  readonly modifiedNs: bigint
}

export type DirectoryPicture = ReadonlyMap<string, FilePicture>

/** A picture of a directory and all files in it: bytes, sizes, times, and which files they are. */
export function pictureOf(dir: string): DirectoryPicture {
  const names = ['.', ...fs.readdirSync(dir).sort()]
  return new Map(names.map((name) => [name, pictureOfFile(join(dir, name))]))
}

function pictureOfFile(path: string): FilePicture {
  const { ino, size, ctimeNs, mtimeNs } = fs.statSync(path, { bigint: true })
  const isDirectory = fs.statSync(path).isDirectory()
  const bytes = isDirectory ? '' : fs.readFileSync(path).toString('latin1')
  return { bytes, size: Number(size), inode: ino, changedNs: ctimeNs, modifiedNs: mtimeNs }
}

/** Fails if a byte, a size, a time or a name in the directory is not as it was. */
export function assertUntouched(dir: string, before: DirectoryPicture): void {
  const now = pictureOf(dir)
  assert.deepEqual([...now.keys()], [...before.keys()], 'the same names')
  for (const [name, picture] of now) {
    assert.ok(isDeepStrictEqual(picture, before.get(name)), `${name} was touched`)
  }
}
