/**
 * A file system as it would be with some files changed: reads come from memory for those, from
 * below for all others. Nothing can be written through it. A repair is proved on it before it is
 * made.
 */
import { basename } from 'node:path'
import type { FileSystem, OpenMode, StoreFile } from './file-system.ts'

export class OverlayFileSystem implements FileSystem {
  readonly #inner: FileSystem
  /** Contents by file name. */
  readonly #files: ReadonlyMap<string, Uint8Array>

  constructor(inner: FileSystem, files: ReadonlyMap<string, Uint8Array>) {
    this.#inner = inner
    this.#files = files
  }

  async list(path: string): Promise<string[]> {
    return [...new Set([...(await this.#inner.list(path)), ...this.#files.keys()])]
  }

  async open(path: string, mode: OpenMode): Promise<StoreFile> {
    if (mode !== 'read') throw readingOnly()
    const bytes = this.#files.get(basename(path))
    return bytes === undefined ? this.#inner.open(path, mode) : new MemoryFile(bytes)
  }

  async fileSize(path: string): Promise<number> {
    return this.#files.get(basename(path))?.length ?? this.#inner.fileSize(path)
  }

  realPath(path: string): Promise<string> {
    return this.#inner.realPath(path)
  }

  makeDirectory(): Promise<boolean> {
    return Promise.reject(readingOnly())
  }

  rename(): Promise<void> {
    return Promise.reject(readingOnly())
  }

  unlink(): Promise<void> {
    return Promise.reject(readingOnly())
  }

  syncDirectory(): Promise<void> {
    return Promise.reject(readingOnly())
  }

  tryLock(): Promise<boolean> {
    return Promise.reject(readingOnly())
  }
}

/** A file in memory, for reading. */
class MemoryFile implements StoreFile {
  readonly descriptor: undefined
  readonly #bytes: Uint8Array

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  read(target: Uint8Array, at: number, length: number, position: number): Promise<number> {
    const part = this.#bytes.subarray(position, Math.min(this.#bytes.length, position + length))
    target.set(part, at)
    return Promise.resolve(part.length)
  }

  size(): Promise<number> {
    return Promise.resolve(this.#bytes.length)
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  write(): Promise<number> {
    return Promise.reject(readingOnly())
  }

  commit(
    _buffers: readonly Uint8Array[],
    _position: number,
    done: (error: Error | null, written: number) => void,
  ): void {
    done(readingOnly(), 0)
  }

  commitSync(): number {
    throw readingOnly()
  }

  sync(): Promise<void> {
    return Promise.reject(readingOnly())
  }

  truncate(): Promise<void> {
    return Promise.reject(readingOnly())
  }
}

function readingOnly(): Error {
  return new Error('An overlay is for reading only')
}
