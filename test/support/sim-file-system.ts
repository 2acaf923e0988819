/**
 * The file system as one process of a simulated machine sees it: every call becomes an operation
 * that waits for its turn. How an injected fault shows is decided here. Misuse that a real system
 * would punish at random, such as closing a file in use, fails the run at once.
 */
import assert from 'node:assert/strict'
import { posix } from 'node:path'
import type { FileSystem, OpenMode, StoreFile } from '../../engine/file-system.ts'
import {
  hasFullEffect,
  throwIfFailing,
  type Fault,
  type FaultPlan,
  type Operation,
} from './faults.ts'
import { fsError } from './fs-error.ts'
import { SimFile } from './sim-file.ts'
import type { SimHandles } from './sim-handles.ts'
import type { SimInode } from './sim-inode.ts'
import type { SimMedium } from './sim-medium.ts'
import { SimCrash, type Owner, type SimScheduler, type Steps, type Task } from './sim-scheduler.ts'
import { oneStep } from './sim-steps.ts'
import type { SimTree } from './sim-tree.ts'

/** What all processes of a simulated machine share. */
export interface Machine {
  readonly medium: SimMedium
  readonly tree: SimTree
  readonly handles: SimHandles
  readonly scheduler: SimScheduler
  readonly faults: FaultPlan
}

export type Call = Omit<Operation, 'index'>

export class SimFileSystem implements FileSystem {
  readonly #machine: Machine
  readonly #owner: Owner

  constructor(machine: Machine, owner: Owner) {
    this.#machine = machine
    this.#owner = owner
  }

  /** As the one on real files: directories that it makes are durable, those that exist may not be. */
  makeDirectory(path: string): Promise<boolean> {
    return this.#once({ kind: 'makeDirectory', path }, 'mkdir', () =>
      this.#machine.tree.makeDirectory(path),
    )
  }

  list(path: string): Promise<string[]> {
    const { tree, medium } = this.#machine
    return this.#once({ kind: 'list', path }, 'scandir', () =>
      medium.random.shuffled([...tree.directory('scandir', path).entries.keys()]),
    )
  }

  open(path: string, mode: OpenMode): Promise<StoreFile> {
    return this.#once({ kind: 'open', path }, 'open', () => {
      const file = new SimFile(this.#machine, this, this.#owner, path, mode, this.#find(path, mode))
      this.#machine.handles.add(file)
      return file
    })
  }

  #find(path: string, mode: OpenMode): SimInode {
    const { tree } = this.#machine
    const isMade = mode === 'create' || (mode === 'open-or-create' && tree.find(path) === undefined)
    return isMade ? tree.createFile(path) : tree.file('open', path)
  }

  rename(from: string, to: string): Promise<void> {
    return this.#once({ kind: 'rename', path: from }, 'rename', () => {
      const replaced = this.#machine.tree.rename(from, to)
      if (replaced !== undefined) this.#machine.handles.unname(replaced)
    })
  }

  unlink(path: string): Promise<void> {
    return this.#once({ kind: 'unlink', path }, 'unlink', () => {
      this.#machine.handles.unname(this.#machine.tree.unlink(path))
    })
  }

  syncDirectory(path: string): Promise<void> {
    const { tree, medium } = this.#machine
    const began = medium.now
    return this.call({ kind: 'syncDirectory', path }, function* (fault) {
      const directory = tree.directory('open', path)
      yield
      if (hasFullEffect(fault)) tree.sync(directory, began)
      throwIfFailing(fault, 'fsync', path)
    })
  }

  fileSize(path: string): Promise<number> {
    return this.#once({ kind: 'fileSize', path }, 'stat', () => {
      return this.#machine.tree.file('stat', path).size
    })
  }

  tryLock(file: StoreFile): Promise<boolean> {
    assert(file instanceof SimFile)
    return this.#once({ kind: 'tryLock', path: file.path }, 'flock', () => {
      return this.#machine.handles.tryLock(file)
    })
  }

  realPath(path: string): Promise<string> {
    return this.#once({ kind: 'realPath', path }, 'realpath', () => {
      if (this.#machine.tree.find(path) === undefined) throw fsError('ENOENT', 'realpath', path)
      return posix.resolve('/', path)
    })
  }

  /** Makes an operation of a call. A dead process waits for it for ever. */
  call<T>(call: Call, steps: (fault: Fault | undefined) => Steps<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.start(call, steps, resolve, reject)
    })
  }

  /** Like `call`, and tells the outcome without a promise in between. */
  start<T>(
    call: Call,
    steps: (fault: Fault | undefined) => Steps<T>,
    resolve: (value: T) => void,
    reject: (error: Error) => void,
  ): void {
    if (!this.#owner.isAlive) return
    this.#machine.scheduler.add<T>({ ...this.#begin(call, steps), resolve, reject })
  }

  /** Like `call`, and blocks until it is done. Throws SimCrash in a process that is dead. */
  callNow<T>(call: Call, steps: (fault: Fault | undefined) => Steps<T>): T {
    if (!this.#owner.isAlive) throw new SimCrash('The process is dead')
    const nobody = { resolve: () => undefined, reject: () => undefined }
    return this.#machine.scheduler.runNow<T>({ ...this.#begin(call, steps), ...nobody })
  }

  #begin<T>(
    call: Call,
    steps: (fault: Fault | undefined) => Steps<T>,
  ): Pick<Task<T>, 'owner' | 'operation' | 'steps'> {
    const { faults } = this.#machine
    const operation = faults.begin(call)
    return { owner: this.#owner, operation, steps: steps(faults.faultFor(operation)) }
  }

  #once<T>(call: Call, syscall: string, effect: () => T): Promise<T> {
    const { random } = this.#machine.medium
    return this.call(call, (fault) => oneStep(random, fault, call, syscall, effect))
  }
}
