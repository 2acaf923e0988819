/**
 * The lock of a store: an exclusive flock on its lock file, which is never unlinked (whoever
 * unlinks it lets two openers lock two different files of one name). The kernel lets go when the
 * process ends, however it ends.
 */
import { join } from 'node:path'
import { logError } from '../codec/errors.ts'
import type { Clock } from './clock.ts'
import { LOCK_FILE } from './file-names.ts'
import type { FileSystem, StoreFile } from './file-system.ts'

/** What locking needs from outside. */
export interface LockEnvironment {
  readonly fileSystem: FileSystem
  readonly clock: Clock
}

const RETRY_MS = 20

/** The directories this process has locked, to say so when it meets its own lock. */
const lockedHere = new Set<string>()

export class DirectoryLock {
  readonly #file: StoreFile
  readonly #name: string

  private constructor(file: StoreFile, name: string) {
    this.#file = file
    this.#name = name
  }

  /**
   * Takes the lock, trying again for `timeoutMs`. Rejects with LOCKED if somebody else has it to
   * the end, or with LOCK_UNAVAILABLE if nobody can lock here.
   */
  static async take(
    { fileSystem, clock }: LockEnvironment,
    dir: string,
    timeoutMs: number,
  ): Promise<DirectoryLock> {
    const name = await fileSystem.realPath(dir)
    const file = await fileSystem.open(join(dir, LOCK_FILE), 'open-or-create')
    try {
      await tryUntil(() => fileSystem.tryLock(file), clock, timeoutMs, dir, name)
    } catch (error) {
      await file.close()
      throw error
    }
    lockedHere.add(name)
    return new DirectoryLock(file, name)
  }

  /** Lets go. Call it only when no operation on the store is in flight. */
  async release(): Promise<void> {
    lockedHere.delete(this.#name)
    await this.#file.close()
  }
}

async function tryUntil(
  tryLock: () => Promise<boolean>,
  clock: Clock,
  timeoutMs: number,
  dir: string,
  name: string,
): Promise<void> {
  for (let waited = 0; !(await tryLock()); waited += RETRY_MS) {
    if (waited >= timeoutMs) {
      const sameProcess = lockedHere.has(name)
      const who = sameProcess ? 'this process' : 'another process'
      throw logError('LOCKED', `The store in ${dir} is open in ${who}`, {
        fields: { dir, sameProcess },
      })
    }
    await new Promise<void>((resolve) => clock.setTimer(resolve, RETRY_MS, true))
  }
}
