/**
 * Keeps what a repair takes out of a store: copies of damaged bytes and files that are not ours,
 * in a directory beside the store's. Nothing in it is ever overwritten.
 */
import { join, resolve } from 'node:path'
import type { FileSystem } from './file-system.ts'
import { errorCode, readSmallFile, withFile, writeFully } from './io.ts'
import { makeDurableDirectory } from './make-directory.ts'

const MAX_SAME_NAME = 1000

export class Quarantine {
  readonly #fileSystem: FileSystem
  readonly #dir: string
  readonly #kept: string[] = []

  constructor(fileSystem: FileSystem, storeDir: string) {
    this.#fileSystem = fileSystem
    this.#dir = `${resolve(storeDir)}.quarantine`
  }

  /** The paths of what was put here. */
  get kept(): readonly string[] {
    return this.#kept
  }

  /** The names of everything that is kept, also by earlier repairs. */
  async names(): Promise<string[]> {
    try {
      return await this.#fileSystem.list(this.#dir)
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return []
      throw error
    }
  }

  /** Keeps a copy of bytes; durable when it resolves. */
  async keep(name: string, bytes: Uint8Array): Promise<void> {
    await makeDurableDirectory(this.#fileSystem, this.#dir)
    for (let i = 1; i <= MAX_SAME_NAME; i++) {
      const path = join(this.#dir, i === 1 ? name : `${name}.${i}`)
      if (await this.#tryKeep(path, bytes)) {
        await this.#fileSystem.syncDirectory(this.#dir)
        this.#kept.push(path)
        return
      }
    }
    throw new Error(`There are ${MAX_SAME_NAME} files named ${name} in ${this.#dir}`)
  }

  /** False if another file has the name. The same bytes are kept once. */
  async #tryKeep(path: string, bytes: Uint8Array): Promise<boolean> {
    try {
      await withFile(this.#fileSystem, path, 'create', async (file) => {
        await writeFully(file, bytes, 0)
        await file.sync()
      })
      return true
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') throw error
      const there = await readSmallFile(this.#fileSystem, path, bytes.length)
      return there?.length === bytes.length && Buffer.compare(there, bytes) === 0
    }
  }
}
