/**
 * Makes an open store what it was judged to be, before anything is released, appended or unlinked.
 *
 * After an unclean end the page cache may hold groups that are not on the disk: their sync failed,
 * or never came. A sync now would prove nothing, because pages whose sync failed count as clean.
 * So the tail is cut (which drops the cache behind it) and the bytes that were checked are written
 * again, in place, and synced. Crashing anywhere in here and opening again gives the same result.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { checkedSnapshot, decodeSegmentHeader } from '../codec/segment-header.ts'
import { METADATA_TEMPORARY, segmentOfIndexName, segmentOfName, segmentPath } from './file-names.ts'
import type { FileSystem, StoreFile } from './file-system.ts'
import { GroupScanner } from './group-scanner.ts'
import { readFully, withFile, writeFully, writeZeros } from './io.ts'
import type { Judgement, TailSegment } from './recovery.ts'
import type { LiveSegment } from './segment-head.ts'

export async function settleStore(
  fileSystem: FileSystem,
  dir: string,
  judgement: Judgement,
): Promise<void> {
  const { tail, trailing, isClean } = judgement
  if (!isClean) {
    if (tail !== undefined) await settleTail(fileSystem, dir, tail, trailing[0]?.size ?? 0)
    for (const { segment } of trailing) await emptySegment(fileSystem, dir, segment)
    await fileSystem.syncDirectory(dir)
  }
  for (const older of judgement.live.slice(0, -1)) await cutZeros(fileSystem, dir, older)
  await unlinkLeftovers(fileSystem, dir, judgement)
}

/** A crash may have come before the zeros behind an older segment's groups were given back. */
async function cutZeros(
  fileSystem: FileSystem,
  dir: string,
  { segment, end, size }: LiveSegment,
): Promise<void> {
  if (size === end) return
  await withFile(fileSystem, segmentPath(dir, segment), 'write', (file) => file.truncate(end))
}

async function settleTail(
  fileSystem: FileSystem,
  dir: string,
  tail: TailSegment,
  reserveBytes: number,
): Promise<void> {
  await withFile(fileSystem, segmentPath(dir, tail.head.segment), 'write', async (file) => {
    const from = rewriteFrom(tail)
    const bytes = await readChecked(file, tail, from)
    const end = tail.place.position
    const kept = zerosToKeep((await file.size()) - end, reserveBytes)
    await file.truncate(end + kept)
    await writeZeros(file, end, end + kept)
    await writeFully(file, bytes, from)
    await file.sync()
  })
}

/** No reserve is larger, so more zeros are of no use. */
const MAX_KEPT_BYTES = 64 * 1024 * 1024

/**
 * A full disk is trimmed with the zeros of the next segment, or with those behind the tail: the
 * more of the two stay.
 */
function zerosToKeep(behindTail: number, reserveBytes: number): number {
  return behindTail <= reserveBytes ? 0 : Math.min(behindTail, MAX_KEPT_BYTES)
}

/**
 * From the durable mark on, but at least the last group, so that the page of the tail is written
 * whole; all of the segment if the mark lies in an earlier one.
 */
function rewriteFrom({ mark, place, head }: TailSegment): number {
  return mark.position < head.start ? 0 : Math.min(mark.position, place.groupPosition)
}

/** Reads the bytes from `from` to the tail, and checks that they are still those judged whole. */
async function readChecked(file: StoreFile, tail: TailSegment, from: number): Promise<Uint8Array> {
  const { place, mark, beforeLast } = tail
  const bytes = new Uint8Array(place.position - from)
  const length = await readFully(file, bytes, 0, bytes.length, from)
  const groupsAt = from === 0 ? checkedStart(bytes, tail) : from
  const last = from === place.groupPosition ? beforeLast : mark.last
  const memory = memoryFile(bytes, from)
  const scanner = new GroupScanner(memory, tail.seed, groupsAt, last)
  await scanner.scan(place.position, () => true)
  const isSame =
    length === bytes.length &&
    scanner.position === place.position &&
    scanner.last.checksum === place.groupChecksum
  if (!isSame) throw new Error('The tail changed while the store was being opened')
  return bytes
}

function checkedStart(bytes: Uint8Array, tail: TailSegment): number {
  const header = decodeSegmentHeader(bytes)
  const isWhole = header !== undefined && checkedSnapshot(bytes, header) !== undefined
  if (!isWhole) throw new Error('The segment changed while the store was being opened')
  return tail.head.start
}

/** Bytes in memory, read as the part of a file that starts at `base`. */
function memoryFile(bytes: Uint8Array, base: number): Pick<StoreFile, 'read'> {
  return {
    read(target, at, length, position) {
      const start = position - base
      assert.ok(start >= 0, 'only what is in memory is read')
      const part = bytes.subarray(start, Math.min(bytes.length, start + length))
      target.set(part, at)
      return Promise.resolve(part.length)
    },
  }
}

/** Writes zeros over all of a segment, so that it keeps its room but nothing else. */
function emptySegment(fileSystem: FileSystem, dir: string, segment: number): Promise<void> {
  return withFile(fileSystem, segmentPath(dir, segment), 'write', async (file) => {
    await writeZeros(file, 0, await file.size())
    await file.sync()
  })
}

async function unlinkLeftovers(
  fileSystem: FileSystem,
  dir: string,
  judgement: Judgement,
): Promise<void> {
  const leftovers = judgement.names.filter((name) => isLeftover(name, judgement))
  for (const name of leftovers) await fileSystem.unlink(join(dir, name))
  if (leftovers.length > 0) await fileSystem.syncDirectory(dir)
}

/** Dead segments, indexes that belong to no older segment, and what was not finished. */
function isLeftover(name: string, { facts, tail }: Judgement): boolean {
  if (name === METADATA_TEMPORARY || name.endsWith('.index.new')) return true
  const first = facts.firstSegment
  const segment = segmentOfName(name)
  if (segment !== undefined) return segment < first
  const indexed = segmentOfIndexName(name)
  if (indexed === undefined) return false
  return indexed < first || indexed >= (tail?.head.segment ?? 1)
}
