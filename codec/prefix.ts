/**
 * The 16 bytes with which every segment and the metadata file begin, in this and every later
 * version: enough to tell a file of a newer version from a damaged one.
 */
import { readU32, writeU32 } from './bytes.ts'
import { checksum } from './checksum.ts'
import { PREFIX_BYTES, PREFIX_CHECKSUM_AT, PREFIX_VERSION_AT } from './format.ts'

/** Writes a prefix at the start of `target`. */
export function writePrefix(target: Uint8Array, magic: string, version: number): void {
  for (let i = 0; i < magic.length; i++) target[i] = magic.charCodeAt(i)
  writeU32(target, PREFIX_VERSION_AT, version)
  writeU32(target, PREFIX_CHECKSUM_AT, checksum(target, 0, PREFIX_CHECKSUM_AT, 0))
}

/** The version in an intact prefix; undefined if there is none. */
export function readPrefix(bytes: Uint8Array, magic: string): number | undefined {
  if (bytes.length < PREFIX_BYTES) return undefined
  for (let i = 0; i < magic.length; i++) if (bytes[i] !== magic.charCodeAt(i)) return undefined
  if (readU32(bytes, PREFIX_CHECKSUM_AT) !== checksum(bytes, 0, PREFIX_CHECKSUM_AT, 0)) {
    return undefined
  }
  return readU32(bytes, PREFIX_VERSION_AT)
}
