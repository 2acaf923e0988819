/**
 * A file system around another one, for tests on real files: it counts and traces every call, and
 * fails, delays or holds those that a test chooses. What it is not told to change goes through
 * untouched.
 */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FileSystem, OpenMode, StoreFile } from '../../engine/file-system.ts'
import { errorCode } from './fs-error.ts'
import {
  FaultPlan,
  hasFullEffect,
  throwIfFailing,
  type Fault,
  type Match,
  type Operation,
} from './faults.ts'

type Call = Omit<Operation, 'index'>
type CommitDone = (error: Error | null, written: number) => void

export class FaultFileSystem implements FileSystem {
  /** Fails, holds and counts calls. */
  readonly faults: FaultPlan = new FaultPlan()
  readonly #inner: FileSystem
  readonly #delays: { readonly match: Match; readonly ms: number }[] = []

  constructor(inner: FileSystem) {
    this.#inner = inner
  }

  /** The calls that match start this much later. */
  delay(match: Match, ms: number): void {
    this.#delays.push({ match, ms })
  }

  makeDirectory(path: string): Promise<boolean> {
    return this.call({ kind: 'makeDirectory', path }, () => this.#inner.makeDirectory(path))
  }

  list(path: string): Promise<string[]> {
    return this.call({ kind: 'list', path }, () => this.#inner.list(path))
  }

  open(path: string, mode: OpenMode): Promise<StoreFile> {
    return this.call({ kind: 'open', path }, async () => {
      return new FaultFile(this, await this.#inner.open(path, mode), path)
    })
  }

  rename(from: string, to: string): Promise<void> {
    return this.call({ kind: 'rename', path: from }, () => this.#inner.rename(from, to))
  }

  unlink(path: string): Promise<void> {
    return this.call({ kind: 'unlink', path }, () => this.#inner.unlink(path))
  }

  syncDirectory(path: string): Promise<void> {
    return this.call({ kind: 'syncDirectory', path }, () => this.#inner.syncDirectory(path))
  }

  fileSize(path: string): Promise<number> {
    return this.call({ kind: 'fileSize', path }, () => this.#inner.fileSize(path))
  }

  tryLock(file: StoreFile): Promise<boolean> {
    assert(file instanceof FaultFile)
    const { inner, path } = file
    return this.call({ kind: 'tryLock', path }, () => this.#inner.tryLock(inner))
  }

  realPath(path: string): Promise<string> {
    return this.call({ kind: 'realPath', path }, () => this.#inner.realPath(path))
  }

  /** Makes a call, as the plan and the delays have it. */
  async call<T>(call: Call, make: (fault: Fault | undefined) => Promise<T>): Promise<T> {
    const { operation, fault } = this.#begin(call)
    try {
      await this.#untilFree(operation)
      // A descriptor is gone also when its close reports an error.
      if (!hasFullEffect(fault) && call.kind !== 'close')
        throwIfFailing(fault, call.kind, call.path)
      const result = await make(fault)
      throwIfFailing(fault, call.kind, call.path)
      this.faults.end(operation, typeof result === 'number' ? String(result) : 'ok')
      return result
    } catch (error) {
      this.faults.end(operation, errorCode(error))
      throw error
    }
  }

  /** Makes a call that blocks; it can't be held or delayed. */
  callNow(call: Call, make: (fault: Fault | undefined) => number): number {
    const { operation, fault } = this.#begin(call)
    try {
      if (!hasFullEffect(fault)) throwIfFailing(fault, call.kind, call.path)
      const result = make(fault)
      throwIfFailing(fault, call.kind, call.path)
      this.faults.end(operation, String(result))
      return result
    } catch (error) {
      this.faults.end(operation, errorCode(error))
      throw error
    }
  }

  #begin(call: Call): { operation: Operation; fault: Fault | undefined } {
    const operation = this.faults.begin(call)
    return { operation, fault: this.faults.faultFor(operation) }
  }

  async #untilFree(operation: Operation): Promise<void> {
    const delay = this.#delays.find(({ match }) => match(operation))
    if (delay !== undefined) await sleep(delay.ms)
    if (this.faults.isHeld(operation)) await this.faults.whenFree(operation)
  }
}

class FaultFile implements StoreFile {
  readonly inner: StoreFile
  readonly path: string
  readonly #owner: FaultFileSystem

  constructor(owner: FaultFileSystem, inner: StoreFile, path: string) {
    this.#owner = owner
    this.inner = inner
    this.path = path
  }

  get descriptor(): number | undefined {
    return this.inner.descriptor
  }

  read(target: Uint8Array, at: number, length: number, position: number): Promise<number> {
    return this.#owner.call(this.#named('read', position, length), () =>
      this.inner.read(target, at, length, position),
    )
  }

  write(source: Uint8Array, position: number): Promise<number> {
    return this.#owner.call(this.#named('write', position, source.length), (fault) =>
      this.inner.write(shortened([source], fault)[0] ?? source, position),
    )
  }

  commit(buffers: readonly Uint8Array[], position: number, done: CommitDone): void {
    const call = this.#named('commit', position, totalLength(buffers))
    const written = this.#owner.call(call, (fault) => {
      return commitOf(this.inner, shortened(buffers, fault), position)
    })
    written.then(
      (count) => {
        done(null, count)
      },
      (error: unknown) => {
        done(error as Error, 0)
      },
    )
  }

  commitSync(buffers: readonly Uint8Array[], position: number): number {
    const call = this.#named('commitSync', position, totalLength(buffers))
    return this.#owner.callNow(call, (fault) =>
      this.inner.commitSync(shortened(buffers, fault), position),
    )
  }

  sync(): Promise<void> {
    return this.#owner.call(this.#named('sync'), () => this.inner.sync())
  }

  truncate(size: number): Promise<void> {
    return this.#owner.call(this.#named('truncate', size), () => this.inner.truncate(size))
  }

  size(): Promise<number> {
    return this.#owner.call(this.#named('size'), () => this.inner.size())
  }

  close(): Promise<void> {
    return this.#owner.call(this.#named('close'), () => this.inner.close())
  }

  #named(kind: Operation['kind'], position?: number, length?: number): Call {
    return { kind, path: this.path, position, length }
  }
}

function commitOf(
  file: StoreFile,
  buffers: readonly Uint8Array[],
  position: number,
): Promise<number> {
  return new Promise((resolve, reject) => {
    file.commit(buffers, position, (error, written) => {
      if (error === null) resolve(written)
      else reject(error)
    })
  })
}

/** The first half of the bytes if the fault makes the write a short one. */
function shortened(
  buffers: readonly Uint8Array[],
  fault: Fault | undefined,
): readonly Uint8Array[] {
  if (fault?.short !== true) return buffers
  const all = Buffer.concat(buffers)
  return [all.subarray(0, Math.ceil(all.length / 2))]
}

function totalLength(buffers: readonly Uint8Array[]): number {
  return buffers.reduce((total, buffer) => total + buffer.length, 0)
}
