/**
 * The index of a segment on disk, beside it. It is never synced and never trusted: a checksum
 * covers it, it names the last group of its segment, and whoever finds it wrong builds it again.
 *
 *     0   magic, 8 bytes of ASCII
 *     8   version, u32
 *     12  loglets, u32
 *     16  seed of the segment's checksums, u32: store and segment
 *     20  the last group's checksum, u32
 *     24  the last group's number, u64
 *     32  checksum of bytes 0 to 31 and of the words, u32
 *     40  words, u32 each (segment-index.ts)
 */
import { readU32, readU64, writeU32, writeU64 } from '../codec/bytes.ts'
import { checksum } from '../codec/checksum.ts'
import { FORMAT_VERSION } from '../codec/format.ts'
import { indexPath } from './file-names.ts'
import type { FileSystem } from './file-system.ts'
import type { Predecessor } from './group-scanner.ts'
import { isMissing, readSmallFile, withFile, writeFully } from './io.ts'
import { PackedIndex, type PackedWords } from './segment-index.ts'

const MAGIC = 'BIFROSTI'
const LOGLETS_AT = 12
const SEED_AT = 16
const GROUP_CHECKSUM_AT = 20
const GROUP_NUMBER_AT = 24
const CHECKSUM_AT = 32
const WORDS_AT = 40
const MAX_INDEX_BYTES = 1024 * 1024 * 1024

/** What an index must be bound to, to be that of a segment as it is. */
export interface IndexBinding {
  readonly seed: number
  readonly last: Predecessor
}

/** Words are read and written as they lie in memory. */
const isLittleEndian = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1

export function encodeIndex(packed: PackedWords, { seed, last }: IndexBinding): Uint8Array {
  const bytes = new Uint8Array(WORDS_AT + packed.words.byteLength)
  for (let i = 0; i < MAGIC.length; i++) bytes[i] = MAGIC.charCodeAt(i)
  writeU32(bytes, MAGIC.length, FORMAT_VERSION)
  writeU32(bytes, LOGLETS_AT, packed.loglets)
  writeU32(bytes, SEED_AT, seed)
  writeU32(bytes, GROUP_CHECKSUM_AT, last.checksum)
  writeU64(bytes, GROUP_NUMBER_AT, last.number)
  const { buffer, byteOffset, byteLength } = packed.words
  bytes.set(new Uint8Array(buffer, byteOffset, byteLength), WORDS_AT)
  writeU32(bytes, CHECKSUM_AT, sumOf(bytes))
  return bytes
}

function sumOf(bytes: Uint8Array): number {
  return checksum(bytes, WORDS_AT, bytes.length, checksum(bytes, 0, CHECKSUM_AT, 0))
}

/** The index in `bytes`, if it checks and is bound to this very segment; undefined otherwise. */
export function decodeIndex(bytes: Uint8Array, binding: IndexBinding): PackedIndex | undefined {
  if (!isLittleEndian || bytes.length < WORDS_AT || bytes.length % 4 !== 0) return undefined
  for (let i = 0; i < MAGIC.length; i++) if (bytes[i] !== MAGIC.charCodeAt(i)) return undefined
  if (readU32(bytes, MAGIC.length) !== FORMAT_VERSION) return undefined
  if (readU32(bytes, CHECKSUM_AT) !== sumOf(bytes) || !isBound(bytes, binding)) return undefined
  const words = new Uint32Array(bytes.slice(WORDS_AT).buffer)
  return PackedIndex.over({ loglets: readU32(bytes, LOGLETS_AT), words })
}

function isBound(bytes: Uint8Array, { seed, last }: IndexBinding): boolean {
  return (
    readU32(bytes, SEED_AT) === seed &&
    readU32(bytes, GROUP_CHECKSUM_AT) === last.checksum &&
    readU64(bytes, GROUP_NUMBER_AT) === last.number
  )
}

export async function readIndexFile(
  fileSystem: FileSystem,
  dir: string,
  segment: number,
  binding: IndexBinding,
): Promise<PackedIndex | undefined> {
  const bytes = await readSmallFile(fileSystem, indexPath(dir, segment), MAX_INDEX_BYTES)
  return bytes === undefined ? undefined : decodeIndex(bytes, binding)
}

/** Writes an index under a temporary name first, so that a crash leaves no half of one. */
export async function writeIndexFile(
  fileSystem: FileSystem,
  dir: string,
  segment: number,
  bytes: Uint8Array,
): Promise<void> {
  const path = indexPath(dir, segment)
  const temporary = `${path}.new`
  await unlinkIfThere(fileSystem, temporary)
  await withFile(fileSystem, temporary, 'create', (file) => writeFully(file, bytes, 0))
  await fileSystem.rename(temporary, path)
}

/** Unlinks a file; it may be gone already. */
export async function unlinkIfThere(fileSystem: FileSystem, path: string): Promise<void> {
  try {
    await fileSystem.unlink(path)
  } catch (error) {
    if (!isMissing(error)) throw error
  }
}
