/** The open files of a simulated machine, their locks, and when a file without a name is gone. */
import assert from 'node:assert/strict'
import type { SimInode } from './sim-inode.ts'
import type { Owner } from './sim-scheduler.ts'

export interface Handle {
  readonly owner: Owner
  readonly path: string
  readonly inode: SimInode
}

export class SimHandles {
  readonly #open = new Set<Handle>()
  readonly #locks = new Map<SimInode, Handle>()
  readonly #nameless = new Set<SimInode>()

  /** The paths under which the open files were opened. */
  get openPaths(): string[] {
    return [...this.#open].map((handle) => handle.path)
  }

  add(handle: Handle): void {
    this.#open.add(handle)
  }

  isOpen(handle: Handle): boolean {
    return this.#open.has(handle)
  }

  /** Closes a handle; its lock goes with it, and the file too if it has no name any more. */
  close(handle: Handle): void {
    assert(this.#open.delete(handle), `${handle.path} is closed twice`)
    if (this.#locks.get(handle.inode) === handle) this.#locks.delete(handle.inode)
    this.#releaseIfUnused(handle.inode)
  }

  /** The file lost its name. */
  unname(inode: SimInode): void {
    this.#nameless.add(inode)
    this.#releaseIfUnused(inode)
  }

  /** Locks the file of a handle; false if another handle has it. */
  tryLock(handle: Handle): boolean {
    const holder = this.#locks.get(handle.inode) ?? handle
    this.#locks.set(handle.inode, holder)
    return holder === handle
  }

  /** What the kernel does for a process that ended. */
  closeThoseOfTheDead(): void {
    for (const handle of this.#open) if (!handle.owner.isAlive) this.close(handle)
  }

  #releaseIfUnused(inode: SimInode): void {
    const isUsed = [...this.#open].some((handle) => handle.inode === inode)
    if (!isUsed && this.#nameless.delete(inode)) inode.release()
  }
}
