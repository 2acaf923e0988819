/**
 * A file system that can be told to change nothing any more: for a store that has failed, or that
 * gave up waiting for an operation. What is under way then finishes in the kernel, but whatever was
 * to follow it is refused: the rest of a write, a put-back, a rename, an unlink. Reads and closes
 * go on.
 */
import assert from 'node:assert/strict'
import type { FileSystem, OpenMode, StoreFile } from './file-system.ts'

type CommitDone = (error: Error | null, written: number) => void

export class HaltingFileSystem implements FileSystem {
  readonly #inner: FileSystem
  #refusal: Error | undefined

  constructor(inner: FileSystem) {
    this.#inner = inner
  }

  /** From now on, what would change a file or a name is refused with this error. */
  halt(refusal: Error): void {
    this.#refusal ??= refusal
  }

  /** Throws if nothing may be changed any more. */
  requireRunning(): void {
    if (this.#refusal !== undefined) throw this.#refusal
  }

  async makeDirectory(path: string): Promise<boolean> {
    this.requireRunning()
    return this.#inner.makeDirectory(path)
  }

  list(path: string): Promise<string[]> {
    return this.#inner.list(path)
  }

  async open(path: string, mode: OpenMode): Promise<StoreFile> {
    if (mode === 'create' || mode === 'open-or-create') this.requireRunning()
    return new HaltingFile(this, await this.#inner.open(path, mode))
  }

  async rename(from: string, to: string): Promise<void> {
    this.requireRunning()
    return this.#inner.rename(from, to)
  }

  async unlink(path: string): Promise<void> {
    this.requireRunning()
    return this.#inner.unlink(path)
  }

  async syncDirectory(path: string): Promise<void> {
    this.requireRunning()
    return this.#inner.syncDirectory(path)
  }

  fileSize(path: string): Promise<number> {
    return this.#inner.fileSize(path)
  }

  tryLock(file: StoreFile): Promise<boolean> {
    assert.ok(file instanceof HaltingFile, 'our own file')
    return this.#inner.tryLock(file.inner)
  }

  realPath(path: string): Promise<string> {
    return this.#inner.realPath(path)
  }
}

class HaltingFile implements StoreFile {
  readonly inner: StoreFile
  readonly #owner: HaltingFileSystem

  constructor(owner: HaltingFileSystem, inner: StoreFile) {
    this.#owner = owner
    this.inner = inner
  }

  get descriptor(): number | undefined {
    return this.inner.descriptor
  }

  read(target: Uint8Array, at: number, length: number, position: number): Promise<number> {
    return this.inner.read(target, at, length, position)
  }

  async write(source: Uint8Array, position: number): Promise<number> {
    this.#owner.requireRunning()
    return this.inner.write(source, position)
  }

  commit(buffers: readonly Uint8Array[], position: number, done: CommitDone): void {
    try {
      this.#owner.requireRunning()
    } catch (error) {
      done(error as Error, 0)
      return
    }
    this.inner.commit(buffers, position, done)
  }

  commitSync(buffers: readonly Uint8Array[], position: number): number {
    this.#owner.requireRunning()
    return this.inner.commitSync(buffers, position)
  }

  async sync(): Promise<void> {
    this.#owner.requireRunning()
    return this.inner.sync()
  }

  async truncate(size: number): Promise<void> {
    this.#owner.requireRunning()
    return this.inner.truncate(size)
  }

  size(): Promise<number> {
    return this.inner.size()
  }

  close(): Promise<void> {
    return this.inner.close()
  }
}
