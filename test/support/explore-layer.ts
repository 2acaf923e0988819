/**
 * A file system over another one, which hands everything on. What watches a store, or breaks one on
 * purpose, overrides what it is about.
 */
import assert from 'node:assert/strict'
import type { FileSystem, OpenMode, StoreFile } from '../../engine/file-system.ts'

export type CommitDone = (error: Error | null, written: number) => void

export class FileLayer implements StoreFile {
  readonly inner: StoreFile
  readonly path: string

  constructor(inner: StoreFile, path: string) {
    this.inner = inner
    this.path = path
  }

  get descriptor(): number | undefined {
    return this.inner.descriptor
  }

  read(target: Uint8Array, at: number, length: number, position: number): Promise<number> {
    return this.inner.read(target, at, length, position)
  }

  write(source: Uint8Array, position: number): Promise<number> {
    return this.inner.write(source, position)
  }

  commit(buffers: readonly Uint8Array[], position: number, done: CommitDone): void {
    this.inner.commit(buffers, position, done)
  }

  commitSync(buffers: readonly Uint8Array[], position: number): number {
    return this.inner.commitSync(buffers, position)
  }

  sync(): Promise<void> {
    return this.inner.sync()
  }

  truncate(size: number): Promise<void> {
    return this.inner.truncate(size)
  }

  size(): Promise<number> {
    return this.inner.size()
  }

  close(): Promise<void> {
    return this.inner.close()
  }
}

export class FileSystemLayer implements FileSystem {
  readonly inner: FileSystem

  constructor(inner: FileSystem) {
    this.inner = inner
  }

  /** What stands for an open file of the file system below. */
  protected wrap(file: StoreFile, path: string, _mode: OpenMode): FileLayer {
    return new FileLayer(file, path)
  }

  makeDirectory(path: string): Promise<boolean> {
    return this.inner.makeDirectory(path)
  }

  list(path: string): Promise<string[]> {
    return this.inner.list(path)
  }

  async open(path: string, mode: OpenMode): Promise<StoreFile> {
    return this.wrap(await this.inner.open(path, mode), path, mode)
  }

  rename(from: string, to: string): Promise<void> {
    return this.inner.rename(from, to)
  }

  unlink(path: string): Promise<void> {
    return this.inner.unlink(path)
  }

  syncDirectory(path: string): Promise<void> {
    return this.inner.syncDirectory(path)
  }

  fileSize(path: string): Promise<number> {
    return this.inner.fileSize(path)
  }

  tryLock(file: StoreFile): Promise<boolean> {
    assert(file instanceof FileLayer)
    return this.inner.tryLock(file.inner)
  }

  realPath(path: string): Promise<string> {
    return this.inner.realPath(path)
  }
}
