/**
 * A simulated machine with a disk, deterministic from one seed. Its file system and clock stand in
 * for the real ones:
 *
 *   const disk = new SimDisk({ seed })
 *   const store = await disk.run(open({ fileSystem: disk.fileSystem, clock: disk.clock }))
 *   disk.crash('power')
 *   const again = await disk.run(open({ fileSystem: disk.fileSystem, clock: disk.clock }))
 *
 * What a disk may do, and what it never does, is said in sim-inode.ts (bytes and sizes), in
 * sim-tree.ts (names) and in sim-scheduler.ts (order). Nothing that was handed to a process before
 * a crash can reach what comes after it: its calls stay pending for ever.
 */
import assert from 'node:assert/strict'
import type { Clock } from '../../engine/clock.ts'
import type { FileSystem } from '../../engine/file-system.ts'
import { FaultPlan, formatOperation, formatTrace, type Operation } from './faults.ts'
import { Random } from './random.ts'
import { SimFileSystem, type Machine } from './sim-file-system.ts'
import { SimHandles } from './sim-handles.ts'
import type { SimInode } from './sim-inode.ts'
import { SimMedium } from './sim-medium.ts'
import { SimScheduler } from './sim-scheduler.ts'
import { SimTree } from './sim-tree.ts'

/** After a kill the page cache is still there; after a power loss only what the disk kept. */
export type CrashKind = 'kill' | 'power'

export interface SimDiskOptions {
  readonly seed: number
  /** Counted in pages of 4 KiB; names cost nothing. Default: no limit. */
  readonly capacityBytes?: number
  /** As with `ulimit -f`. Default: no limit. */
  readonly maxFileBytes?: number
}

/** What one process has of the machine. */
export interface SimProcess {
  readonly isAlive: boolean
  readonly fileSystem: FileSystem
  readonly clock: Clock
}

const TRACE_LINES_SHOWN = 30

export class SimDisk {
  readonly seed: number
  /** Fails, holds and counts operations. */
  readonly faults: FaultPlan = new FaultPlan()
  #machine: Machine
  #processes: { isAlive: boolean }[] = []
  #process: SimProcess
  #crashPoint: { readonly index: number; readonly kind: CrashKind } | undefined

  constructor({ seed, capacityBytes = Infinity, maxFileBytes = Infinity }: SimDiskOptions) {
    this.seed = seed
    const medium = new SimMedium(new Random(seed), capacityBytes, maxFileBytes)
    this.#machine = this.#machineOn(medium, new SimTree(medium))
    this.#process = this.spawn()
  }

  #machineOn(medium: SimMedium, tree: SimTree): Machine {
    const crashes = (operation: Operation): boolean => this.#crashesAt(operation)
    const scheduler = new SimScheduler(medium.random, this.faults, crashes)
    return { medium, tree, scheduler, handles: new SimHandles(), faults: this.faults }
  }

  /** The process that runs now; after a crash there is a new one. */
  get process(): SimProcess {
    return this.#process
  }

  /** The file system of the process that runs now. */
  get fileSystem(): FileSystem {
    return this.#process.fileSystem
  }

  get clock(): Clock {
    return this.#process.clock
  }

  /** One more process on the same machine. */
  spawn(): SimProcess {
    const owner = { isAlive: true }
    this.#processes.push(owner)
    const { scheduler } = this.#machine
    const clock: Clock = {
      now: () => scheduler.nowMs,
      monotonicNow: () => scheduler.nowMs,
      setTimer: (callback, ms) => scheduler.addTimer(owner, callback, ms),
      clearTimer: (timer) => {
        scheduler.clearTimer(timer)
      },
    }
    return Object.assign(owner, { clock, fileSystem: new SimFileSystem(this.#machine, owner) })
  }

  /**
   * Lets operations and timers happen until the promise settles, and settles as it does. Rejects
   * with SimCrash if a crash comes first; with an error that tells why if nothing can go on.
   */
  run<T>(promise: Promise<T>): Promise<T> {
    return this.#machine.scheduler.run(promise, () => this.describe())
  }

  /**
   * All processes end at once, the machine too if the power goes. What was under way took effect
   * in part, whole or not at all.
   */
  crash(kind: CrashKind): void {
    for (const owner of this.#processes) owner.isAlive = false
    this.#processes = []
    this.#crashPoint = undefined
    const { scheduler, handles } = this.#machine
    scheduler.crash(`The simulated ${kind === 'kill' ? 'process was killed' : 'power went'}`)
    handles.closeThoseOfTheDead()
    if (kind === 'power') this.#losePower()
    else for (const inode of this.#files().values()) inode.forgetCleanPages()
    this.#process = this.spawn()
  }

  #losePower(): void {
    const { tree, medium } = this.#machine
    tree.powerLoss()
    for (const inode of this.#files().values()) inode.powerLoss()
    const pages = [...this.#files().values()].map((inode) => inode.pageCount)
    medium.recountPages(pages.reduce((total, count) => total + count, 0))
  }

  /** Ends one process; the others and the page cache stay. */
  kill(process: SimProcess): void {
    const owner = this.#processes.find((candidate) => candidate === process)
    assert(owner !== undefined, 'the process is dead already')
    owner.isAlive = false
    this.#processes = this.#processes.filter((candidate) => candidate !== owner)
    this.#machine.scheduler.crash('The simulated process was killed')
    this.#machine.handles.closeThoseOfTheDead()
    if (process === this.#process) this.#process = this.spawn()
  }

  /** Crashes when the `k`-th operation from now on, counted from 1, is about to take effect. */
  crashAtOperation(k: number, kind: CrashKind): void {
    this.#crashPoint = { index: this.faults.operationCount + k, kind }
  }

  #crashesAt(operation: Operation): boolean {
    if (this.#crashPoint?.index !== operation.index) return false
    this.crash(this.#crashPoint.kind)
    return true
  }

  /** The same disk and page cache in another machine, which draws its own chances. */
  fork(seed: number): SimDisk {
    const copy = new SimDisk({ seed })
    const medium = this.#machine.medium.fork(new Random(seed))
    copy.#machine = copy.#machineOn(medium, this.#machine.tree.fork(medium))
    copy.#process = copy.spawn()
    return copy
  }

  /** The clock jumps; timers keep their distance. */
  jumpClock(ms: number): void {
    this.#machine.scheduler.jump(ms)
  }

  /** The bytes of all files by their paths, as readers see them. */
  contents(): Map<string, Uint8Array> {
    const copies = [...this.#files()].map(
      ([path, inode]) => [path, inode.read(0, inode.size).slice()] as const,
    )
    return new Map(copies.sort(([a], [b]) => (a < b ? -1 : 1)))
  }

  /** The paths of all directories below the root. */
  directories(): string[] {
    return this.#machine.tree.directories()
  }

  readFile(path: string): Uint8Array {
    const inode = this.#machine.tree.file('read', path)
    return inode.read(0, inode.size).slice()
  }

  /** Puts a file there, durably, whatever was there before; its directories are made. */
  writeFile(path: string, bytes: Uint8Array): void {
    const { tree, handles } = this.#machine
    this.makeDirectory(path.slice(0, path.lastIndexOf('/')))
    if (tree.find(path) !== undefined) handles.unname(tree.unlink(path))
    const inode = tree.createFile(path)
    assert.equal(inode.write(bytes, 0), bytes.length, 'the simulated disk is full')
    this.syncAll()
  }

  /** Changes one bit of a file, on the disk and in the page cache. */
  flipBit(path: string, position: number, bit = 0): void {
    const inode = this.#machine.tree.file('write', path)
    const byte = inode.read(position, 1)[0]
    assert(byte !== undefined, `${path} has no byte ${position}`)
    inode.damage(position, Uint8Array.of(byte ^ (1 << bit)))
  }

  /** Makes a directory and those above it, durably. */
  makeDirectory(path: string): void {
    const { tree, medium } = this.#machine
    for (let end = path.indexOf('/', 1); ; end = path.indexOf('/', end + 1)) {
      const at = end === -1 ? path : path.slice(0, end)
      if (at !== '') tree.makeDirectory(at)
      tree.sync(tree.directory('fsync', at.slice(0, at.lastIndexOf('/'))), medium.now)
      if (end === -1) return
    }
  }

  /** Makes all that was written durable, as `sync` of a shell does. */
  syncAll(): void {
    const { tree, medium } = this.#machine
    tree.syncAll()
    for (const inode of this.#files().values()) inode.sync(medium.now)
  }

  /** Whether these bytes, as readers see them now, are under this name after any power loss. */
  isDurable(path: string, from: number, to: number): boolean {
    const { tree } = this.#machine
    return tree.isDurable(path) && tree.file('read', path).isDurable(from, to)
  }

  get usedBytes(): number {
    return this.#machine.medium.usedBytes
  }

  /** The paths of the files that are open. */
  get openFiles(): readonly string[] {
    return this.#machine.handles.openPaths
  }

  get pending(): readonly Operation[] {
    return this.#machine.scheduler.pending
  }

  get timerCount(): number {
    return this.#machine.scheduler.timerCount
  }

  /** The seed, what is under way and what happened last: what one needs to replay a failure. */
  describe(): string {
    const pending = this.pending.map((operation) => {
      const held = this.faults.isHeld(operation) ? ' (held)' : ''
      return `  ${formatOperation(operation)}${held}`
    })
    const trace = formatTrace(this.faults.trace, TRACE_LINES_SHOWN)
    return `seed ${this.seed}\nunder way:\n${pending.join('\n')}\nlast:\n${trace}`
  }

  #files(): Map<string, SimInode> {
    return this.#machine.tree.files()
  }
}
