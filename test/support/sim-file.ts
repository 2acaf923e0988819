/** An open file of the simulated disk. */
import assert from 'node:assert/strict'
import type { OpenMode, StoreFile } from '../../engine/file-system.ts'
import { codeOf, hasFullEffect, throwIfFailing, type Fault, type OperationKind } from './faults.ts'
import { fsError } from './fs-error.ts'
import type { Call, Machine, SimFileSystem } from './sim-file-system.ts'
import type { Handle } from './sim-handles.ts'
import type { SimInode } from './sim-inode.ts'
import { SECTOR_BYTES } from './sim-medium.ts'
import type { Owner, Steps } from './sim-scheduler.ts'
import { oneStep } from './sim-steps.ts'

/** One read in so many gives less than it could. */
const ONE_IN_SHORT_READ = 32

export class SimFile implements StoreFile, Handle {
  readonly descriptor = undefined
  readonly owner: Owner
  readonly path: string
  readonly inode: SimInode
  readonly #mode: OpenMode
  readonly #machine: Machine
  readonly #fileSystem: SimFileSystem
  #underWay = 0
  #isCommitting = false

  constructor(
    machine: Machine,
    fileSystem: SimFileSystem,
    owner: Owner,
    path: string,
    mode: OpenMode,
    inode: SimInode,
  ) {
    this.#machine = machine
    this.#fileSystem = fileSystem
    this.owner = owner
    this.path = path
    this.#mode = mode
    this.inode = inode
  }

  read(target: Uint8Array, at: number, length: number, position: number): Promise<number> {
    const { random } = this.#machine.medium
    return this.#once(this.#named('read', position, length), 'read', () => {
      this.#requireOpen()
      const bytes = this.inode.read(position, length)
      const isShort = bytes.length > 1 && random.below(ONE_IN_SHORT_READ) === 0
      const count = isShort ? random.between(1, bytes.length - 1) : bytes.length
      target.set(bytes.subarray(0, count), at)
      return count
    })
  }

  write(source: Uint8Array, position: number): Promise<number> {
    assert.notEqual(this.#mode, 'commit', 'a file opened for commits is not for write')
    return this.#call(this.#named('write', position, source.length), (fault) =>
      this.#write(source, position, fault),
    )
  }

  *#write(source: Uint8Array, position: number, fault: Fault | undefined): Steps<number> {
    this.#requireWritable('write')
    const bytes = this.#partToStore(source, fault)
    const written = yield* this.#pour(bytes, position)
    throwIfFailing(fault, 'write', this.path)
    return written
  }

  commit(
    buffers: readonly Uint8Array[],
    position: number,
    done: (error: Error | null, written: number) => void,
  ): void {
    const end = this.#beginCommit()
    this.#start(
      this.#named('commit', position, totalLength(buffers)),
      (fault) => this.#commit(buffers, position, fault),
      (written) => {
        end()
        done(null, written)
      },
      (error) => {
        end()
        done(error, 0)
      },
    )
  }

  commitSync(buffers: readonly Uint8Array[], position: number): number {
    const end = this.#beginCommit()
    try {
      const call = this.#named('commitSync', position, totalLength(buffers))
      return this.#fileSystem.callNow(call, (fault) => this.#commit(buffers, position, fault))
    } finally {
      end()
    }
  }

  #beginCommit(): () => void {
    const isWrong = this.#isCommitting && this.owner.isAlive
    assert(!isWrong, `a second commit to ${this.path} while one is under way`)
    this.#isCommitting = true
    return () => {
      this.#isCommitting = false
    }
  }

  /** First the bytes are in the page cache, for everybody to read; then they are on the disk. */
  *#commit(
    buffers: readonly Uint8Array[],
    position: number,
    fault: Fault | undefined,
  ): Steps<number> {
    this.#requireWritable('write')
    const isWhole = hasFullEffect(fault)
    // It fails before anything is written, or when what was written is synced.
    if (!isWhole && this.#machine.medium.random.chance(0.5)) {
      throwIfFailing(fault, 'write', this.path)
    }
    const written = yield* this.#pour(this.#partToCommit(gathered(buffers), fault), position)
    const wrote = this.#machine.medium.now
    yield
    if (isWhole) this.inode.syncRange(position, position + written, wrote)
    else this.inode.failSync(position, position + written, wrote)
    throwIfFailing(fault, 'write', this.path)
    return written
  }

  sync(): Promise<void> {
    const began = this.#machine.medium.now
    return this.#call(this.#named('sync'), (fault) => this.#sync(began, fault))
  }

  *#sync(began: number, fault: Fault | undefined): Steps<void> {
    this.#requireOpen()
    yield
    if (hasFullEffect(fault)) this.inode.sync(began)
    else this.inode.failSync(0, Infinity, began)
    throwIfFailing(fault, 'fdatasync', this.path)
  }

  truncate(size: number): Promise<void> {
    return this.#once(this.#named('truncate', size), 'ftruncate', () => {
      this.#requireWritable('ftruncate')
      this.inode.truncate(size)
    })
  }

  size(): Promise<number> {
    return this.#once(this.#named('size'), 'fstat', () => {
      this.#requireOpen()
      return this.inode.size
    })
  }

  /** It is closed also when it reports an error. */
  close(): Promise<void> {
    const call = this.#named('close')
    const { random } = this.#machine.medium
    return this.#call(call, (fault) =>
      oneStep(random, fault && { ...fault, afterEffect: true }, call, 'close', () => {
        assert.equal(this.#underWay, 1, `${this.path} is closed while something is under way`)
        this.#machine.handles.close(this)
      }),
    )
  }

  /** The part of the bytes that a write with this fault leaves in the page cache. */
  #partToStore(source: Uint8Array, fault: Fault | undefined): Uint8Array {
    if (fault?.short === true) return this.#shortened(source)
    if (hasFullEffect(fault)) return source
    const isPartial = codeOf(fault) === 'EIO'
    return source.subarray(0, isPartial ? this.#machine.medium.random.below(source.length) : 0)
  }

  #partToCommit(source: Uint8Array, fault: Fault | undefined): Uint8Array {
    if (fault?.short === true) return this.#shortened(source)
    const isPartial = !hasFullEffect(fault) && source.length > 1
    return isPartial && this.#machine.medium.random.chance(0.5) ? this.#shortened(source) : source
  }

  #shortened(source: Uint8Array): Uint8Array {
    return source.subarray(0, this.#machine.medium.random.between(1, source.length - 1))
  }

  /** Writes to the page cache, now and then in two steps with a sector's edge between them. */
  *#pour(bytes: Uint8Array, position: number): Steps<number> {
    if (bytes.length === 0) return 0
    const cut = this.#cut(bytes.length, position)
    const first = this.inode.write(bytes.subarray(0, cut), position)
    if (first === 0) throw fsError(this.inode.refusal(position), 'write', this.path)
    if (first < cut || cut === bytes.length) return first
    yield
    return first + this.inode.write(bytes.subarray(cut), position + cut)
  }

  #cut(length: number, position: number): number {
    const { random } = this.#machine.medium
    const toEdge = SECTOR_BYTES - (position % SECTOR_BYTES)
    const edges = Math.ceil((length - toEdge) / SECTOR_BYTES)
    const isCut = edges > 0 && random.chance(0.25)
    return isCut ? toEdge + random.below(edges) * SECTOR_BYTES : length
  }

  #requireOpen(): void {
    assert(this.#machine.handles.isOpen(this), `${this.path} is used after it was closed`)
  }

  #requireWritable(syscall: string): void {
    this.#requireOpen()
    if (this.#mode === 'read') throw fsError('EBADF', syscall, this.path)
  }

  #named(kind: OperationKind, position?: number, length?: number): Call {
    return { kind, path: this.path, position, length }
  }

  #once<T>(call: Call, syscall: string, effect: () => T): Promise<T> {
    const { random } = this.#machine.medium
    return this.#call(call, (fault) => oneStep(random, fault, call, syscall, effect))
  }

  #call<T>(call: Call, steps: (fault: Fault | undefined) => Steps<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#start(call, steps, resolve, reject)
    })
  }

  #start<T>(
    call: Call,
    steps: (fault: Fault | undefined) => Steps<T>,
    resolve: (value: T) => void,
    reject: (error: Error) => void,
  ): void {
    this.#underWay += 1
    this.#fileSystem.start(
      call,
      steps,
      (value) => {
        this.#underWay -= 1
        resolve(value)
      },
      (error) => {
        this.#underWay -= 1
        reject(error)
      },
    )
  }
}

function totalLength(buffers: readonly Uint8Array[]): number {
  return buffers.reduce((total, buffer) => total + buffer.length, 0)
}

/** One buffer is not copied: what its owner does to it while it is written shows, as on a disk. */
function gathered(buffers: readonly Uint8Array[]): Uint8Array {
  const [first] = buffers
  return buffers.length === 1 && first !== undefined ? first : Buffer.concat(buffers)
}
