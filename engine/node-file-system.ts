/**
 * Real files. The one engine file that knows node:fs. Commits use callbacks, not promises: they
 * are the hot path.
 */
import fs from 'node:fs'
import { realpath } from 'node:fs/promises'
import { promisify } from 'node:util'
import type { FileSystem, OpenMode, StoreFile } from './file-system.ts'
import { tryFlock } from './flock.ts'
import { errorCode } from './io.ts'
import { readGate } from './read-gate.ts'

const FILE_MODE = 0o600
const DIRECTORY_MODE = 0o700

const { O_CREAT, O_DIRECTORY, O_DSYNC, O_EXCL, O_RDONLY, O_RDWR } = fs.constants

/**
 * On Linux a write through an O_DSYNC descriptor is on the disk when it returns. Elsewhere it may
 * only be in the drive's cache (macOS), so there a commit is a write and a sync.
 */
const DSYNC = process.platform === 'linux' ? O_DSYNC : 0

const FLAGS: Readonly<Record<OpenMode, number>> = {
  read: O_RDONLY,
  write: O_RDWR,
  commit: O_RDWR | DSYNC,
  create: O_RDWR | O_CREAT | O_EXCL,
  'open-or-create': O_RDWR | O_CREAT,
}

const open = promisify(fs.open)
const close = promisify(fs.close)
const fstat = promisify(fs.fstat)
const stat = promisify(fs.stat)
const ftruncate = promisify(fs.ftruncate)
const fdatasync = promisify(fs.fdatasync)
const fsync = promisify(fs.fsync)

class NodeFile implements StoreFile {
  readonly descriptor: number
  readonly #isDsync: boolean

  constructor(descriptor: number, isDsync: boolean) {
    this.descriptor = descriptor
    this.#isDsync = isDsync
  }

  read(target: Uint8Array, at: number, length: number, position: number): Promise<number> {
    return new Promise((resolve, reject) => {
      readGate.run((done) => {
        fs.read(this.descriptor, target, at, length, position, (error, count) => {
          done()
          if (error === null) resolve(count)
          else reject(error)
        })
      })
    })
  }

  write(source: Uint8Array, position: number): Promise<number> {
    return new Promise((resolve, reject) => {
      fs.write(this.descriptor, source, 0, source.length, position, (error, count) => {
        if (error === null) resolve(count)
        else reject(error)
      })
    })
  }

  commit(
    buffers: readonly Uint8Array[],
    position: number,
    done: (error: Error | null, written: number) => void,
  ): void {
    const written = this.#isDsync
      ? done
      : (error: Error | null, count: number) => {
          if (error !== null) done(error, count)
          else fs.fdatasync(this.descriptor, (failure) => done(failure, count))
        }
    const [first] = buffers
    if (buffers.length === 1 && first !== undefined) {
      fs.write(this.descriptor, first, 0, first.length, position, written)
    } else {
      fs.writev(this.descriptor, buffers, position, written)
    }
  }

  commitSync(buffers: readonly Uint8Array[], position: number): number {
    const [first] = buffers
    const written =
      buffers.length === 1 && first !== undefined
        ? fs.writeSync(this.descriptor, first, 0, first.length, position)
        : fs.writevSync(this.descriptor, buffers, position)
    if (!this.#isDsync) fs.fdatasyncSync(this.descriptor)
    return written
  }

  sync(): Promise<void> {
    return fdatasync(this.descriptor)
  }

  truncate(size: number): Promise<void> {
    return ftruncate(this.descriptor, size)
  }

  async size(): Promise<number> {
    return (await fstat(this.descriptor)).size
  }

  close(): Promise<void> {
    return close(this.descriptor)
  }
}

export class NodeFileSystem implements FileSystem {
  async makeDirectory(path: string): Promise<boolean> {
    try {
      await fs.promises.mkdir(path, { mode: DIRECTORY_MODE })
      return true
    } catch (error) {
      const isThere = errorCode(error) === 'EEXIST' && (await stat(path)).isDirectory()
      if (isThere) return false
      throw error
    }
  }

  list(path: string): Promise<string[]> {
    return fs.promises.readdir(path)
  }

  async open(path: string, mode: OpenMode): Promise<StoreFile> {
    const descriptor = await open(path, FLAGS[mode], FILE_MODE)
    return new NodeFile(descriptor, mode === 'commit' && DSYNC !== 0)
  }

  rename(from: string, to: string): Promise<void> {
    return fs.promises.rename(from, to)
  }

  unlink(path: string): Promise<void> {
    return fs.promises.unlink(path)
  }

  async syncDirectory(path: string): Promise<void> {
    const descriptor = await open(path, O_RDONLY | O_DIRECTORY)
    try {
      await fsync(descriptor)
    } finally {
      await close(descriptor)
    }
  }

  async fileSize(path: string): Promise<number> {
    return (await stat(path)).size
  }

  // Callers await it, so what is thrown must be a rejection.
  async tryLock(file: StoreFile): Promise<boolean> {
    return tryFlock(file.descriptor as number)
  }

  realPath(path: string): Promise<string> {
    return realpath(path)
  }
}
