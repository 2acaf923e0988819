/**
 * The metadata file: written whole to a temporary file, synced, and renamed over the old one. Off
 * the commit path, one write at a time. Losing it loses no record.
 */
import { METADATA_HEADER_BYTES, MAX_METADATA_BYTES, METADATA_MAGIC } from '../codec/format.ts'
import { decodeMetadata, encodeMetadata, type Metadata } from '../codec/metadata.ts'
import { readPrefix } from '../codec/prefix.ts'
import { METADATA_FILE, METADATA_TEMPORARY } from './file-names.ts'
import type { FileSystem } from './file-system.ts'
import { isMissing, readSmallFile, withFile, writeFully } from './io.ts'
import { join } from 'node:path'

/** What lies under the metadata's name. */
export interface MetadataFound {
  /** Whether there is a file at all. */
  readonly isThere: boolean
  /** The version in its prefix, if that is intact. */
  readonly version: number | undefined
  /** What it says, if it checks. */
  readonly metadata: Metadata | undefined
}

export async function readMetadata(fileSystem: FileSystem, dir: string): Promise<MetadataFound> {
  const limit = METADATA_HEADER_BYTES + MAX_METADATA_BYTES
  const bytes = await readSmallFile(fileSystem, join(dir, METADATA_FILE), limit)
  if (bytes === undefined) return { isThere: false, version: undefined, metadata: undefined }
  const version = readPrefix(bytes, METADATA_MAGIC)
  return { isThere: true, version, metadata: decodeMetadata(bytes) }
}

export class MetadataFile {
  readonly #fileSystem: FileSystem
  readonly #dir: string

  constructor(fileSystem: FileSystem, dir: string) {
    this.#fileSystem = fileSystem
    this.#dir = dir
  }

  /** Replaces the metadata; durable when it resolves. If it rejects, the old one stands. */
  async write(metadata: Metadata): Promise<void> {
    const temporary = join(this.#dir, METADATA_TEMPORARY)
    const bytes = encodeMetadata(metadata)
    // A temporary file whose write or sync failed is never renamed, nor written to again.
    await this.#discard(temporary)
    await withFile(this.#fileSystem, temporary, 'create', async (file) => {
      await writeFully(file, bytes, 0)
      await file.sync()
    })
    await this.#fileSystem.rename(temporary, join(this.#dir, METADATA_FILE))
    await this.#fileSystem.syncDirectory(this.#dir)
  }

  /** Removes the metadata, durably: the segments alone stand for the store then. */
  async remove(): Promise<void> {
    await this.#discard(join(this.#dir, METADATA_FILE))
    await this.#fileSystem.syncDirectory(this.#dir)
  }

  async #discard(path: string): Promise<void> {
    try {
      await this.#fileSystem.unlink(path)
    } catch (error) {
      if (!isMissing(error)) throw error
    }
  }
}
