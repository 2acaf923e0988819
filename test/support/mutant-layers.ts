/** File systems that break a store on purpose, each in one way. The suite must notice every one. */
import { errorCode } from './fs-error.ts'
import type { FileSystem, OpenMode, StoreFile } from '../../engine/file-system.ts'
import { FileLayer, FileSystemLayer, type CommitDone } from './explore-layer.ts'

type Wrap = (file: StoreFile, path: string, plain: StoreFile | undefined) => FileLayer

/** Wraps files; one that is opened for commits can be written without a sync through `plain`. */
class MutantFileSystem extends FileSystemLayer {
  readonly #wrap: Wrap

  constructor(inner: FileSystem, wrap: Wrap) {
    super(inner)
    this.#wrap = wrap
  }

  override async open(path: string, mode: OpenMode): Promise<StoreFile> {
    const plain = mode === 'commit' ? await this.inner.open(path, 'write') : undefined
    try {
      return this.#wrap(await this.inner.open(path, mode), path, plain)
    } catch (error) {
      await plain?.close().catch(() => undefined)
      throw error
    }
  }
}

/** Closes both of its files. */
class TwoFiles extends FileLayer {
  protected readonly plain: StoreFile | undefined

  constructor(inner: StoreFile, path: string, plain: StoreFile | undefined) {
    super(inner, path)
    this.plain = plain
  }

  override async close(): Promise<void> {
    await this.plain?.close().catch(() => undefined)
    await this.inner.close()
  }

  /** Writes the buffers without a sync. */
  protected async pour(buffers: readonly Uint8Array[], position: number): Promise<number> {
    const bytes = Buffer.concat(buffers)
    return (await this.plain?.write(bytes, position)) ?? 0
  }
}

function layer(wrap: Wrap): (fileSystem: FileSystem) => FileSystem {
  return (fileSystem) => new MutantFileSystem(fileSystem, wrap)
}

class CommitsUnsynced extends TwoFiles {
  override commit(buffers: readonly Uint8Array[], position: number, done: CommitDone): void {
    this.pour(buffers, position).then(
      (written) => done(null, written),
      (error: unknown) => done(error as Error, 0),
    )
  }
}

class CommitsThenSyncs extends TwoFiles {
  override commit(buffers: readonly Uint8Array[], position: number, done: CommitDone): void {
    this.pour(buffers, position).then(
      (written) => {
        done(null, written)
        this.plain?.sync().catch(() => undefined)
      },
      (error: unknown) => done(error as Error, 0),
    )
  }

  override async close(): Promise<void> {
    await this.inner.sync()
    await super.close()
  }
}

class NeverSyncs extends CommitsUnsynced {
  override sync(): Promise<void> {
    return Promise.resolve()
  }
}

class SyncsNoFiles extends TwoFiles {
  override sync(): Promise<void> {
    return Promise.resolve()
  }
}

class SwallowsSyncErrors extends TwoFiles {
  override commit(buffers: readonly Uint8Array[], position: number, done: CommitDone): void {
    const length = Buffer.concat(buffers).length
    this.inner.commit(buffers, position, (error, written) => {
      const isSwallowed = error !== null && errorCode(error) === 'EIO'
      done(isSwallowed ? null : error, isSwallowed ? length : written)
    })
  }

  override sync(): Promise<void> {
    return this.inner.sync().catch(() => undefined)
  }
}

class RetriesSyncs extends TwoFiles {
  override commit(buffers: readonly Uint8Array[], position: number, done: CommitDone): void {
    const length = Buffer.concat(buffers).length
    this.inner.commit(buffers, position, (error, written) => {
      if (error === null || errorCode(error) !== 'EIO') return done(error, written)
      this.inner.sync().then(
        () => done(null, length),
        (again: unknown) => done(again as Error, 0),
      )
    })
  }

  override sync(): Promise<void> {
    return this.inner.sync().catch(() => this.inner.sync())
  }
}

class SwallowsWriteErrors extends TwoFiles {
  override write(source: Uint8Array, position: number): Promise<number> {
    return this.inner.write(source, position).catch(() => source.length)
  }

  override commit(buffers: readonly Uint8Array[], position: number, done: CommitDone): void {
    const length = Buffer.concat(buffers).length
    this.inner.commit(buffers, position, () => done(null, length))
  }
}

class TakesShortForWhole extends TwoFiles {
  override commit(buffers: readonly Uint8Array[], position: number, done: CommitDone): void {
    const length = Buffer.concat(buffers).length
    this.inner.commit(buffers, position, (error, written) => {
      done(error, error === null ? length : written)
    })
  }
}

/** Where the last group of a small segment ends, at least. */
const ROLLS_FROM = 64 * 1024

class SyncsNoLastGroup extends TwoFiles {
  override commit(buffers: readonly Uint8Array[], position: number, done: CommitDone): void {
    const length = Buffer.concat(buffers).length
    if (position + length < ROLLS_FROM) return this.inner.commit(buffers, position, done)
    this.pour(buffers, position).then(
      (written) => done(null, written),
      (error: unknown) => done(error as Error, 0),
    )
  }
}

class SyncsNoHeader extends TwoFiles {
  override commit(buffers: readonly Uint8Array[], position: number, done: CommitDone): void {
    const [start, ...rest] = buffers
    if (position !== 0 || start === undefined || rest.length === 0) {
      return this.inner.commit(buffers, position, done)
    }
    this.pour([start], 0).then(
      (written) => {
        this.inner.commit(rest, start.length, (error, more) => done(error, written + more))
      },
      (error: unknown) => done(error as Error, 0),
    )
  }
}

class NoDirectorySync extends FileSystemLayer {
  override syncDirectory(): Promise<void> {
    return Promise.resolve()
  }
}

/** By the names that the list of mutants gives them. */
export const MUTANT_LAYERS: Readonly<Record<string, (fileSystem: FileSystem) => FileSystem>> = {
  'no sync': layer((...args) => new NeverSyncs(...args)),
  'O_DSYNC ignored': layer((...args) => new CommitsUnsynced(...args)),
  'ack before sync': layer((...args) => new CommitsThenSyncs(...args)),
  'no file sync': layer((...args) => new SyncsNoFiles(...args)),
  'no directory sync': (fileSystem) => new NoDirectorySync(fileSystem),
  'swallowed sync error': layer((...args) => new SwallowsSyncErrors(...args)),
  'retried sync': layer((...args) => new RetriesSyncs(...args)),
  'swallowed write error': layer((...args) => new SwallowsWriteErrors(...args)),
  'short write taken for whole': layer((...args) => new TakesShortForWhole(...args)),
  'last group of a segment not synced': layer((...args) => new SyncsNoLastGroup(...args)),
  'segment header not synced with the first group': layer((...args) => new SyncsNoHeader(...args)),
}
