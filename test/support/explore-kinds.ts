/** What running a plan takes, gives, and fails with. */
import type { FileSystem } from '../../engine/file-system.ts'
import type { Coverage } from './explore-coverage.ts'
import { Violation, type Extent, type Oracle } from './explore-oracle.ts'
import type { Plan, Settings } from './explore-plan.ts'
import type { Base } from './explore-scene.ts'
import type { CommitWatch } from './explore-watch.ts'
import type { SimDisk } from './sim-disk.ts'

export interface RunOptions {
  readonly coverage?: Coverage
  /** Stands between the store and the disk: how a broken disk, or a broken store, is played. */
  readonly layer?: (fileSystem: FileSystem) => FileSystem
  /** Called when no process has the store, after a crash or a close. */
  readonly between?: (life: Life) => Promise<void>
  /** Where to begin; default: an empty disk. */
  readonly base?: Base
  /** Called before each step, and after the last one, with how many operations there were. */
  readonly onStep?: (cycle: number, step: number, operations: number) => void
  /**
   * What is shown at the end: that the store opens after a crash of both kinds, that it works too,
   * or also that it can be closed and leaves nothing amiss. Default: everything.
   */
  readonly shows?: 'opens' | 'works' | 'everything'
}

/** A group that is durable, and how far everything had come when it was formed. */
export interface KnownGroup {
  readonly path: string
  readonly start: number
  readonly end: number
  readonly before: Extent
}

/** What a life of a store has left, for whoever wants to damage it. */
export interface Life {
  readonly disk: SimDisk
  readonly oracle: Oracle
  readonly watch: CommitWatch
  readonly settings: Settings
  /** Whether the store was closed. */
  readonly isClosed: boolean
  /** How far everything had come when the store was opened. */
  readonly opened: Extent
  /** The groups since then. */
  readonly groups: readonly KnownGroup[]
}

export interface RunResult {
  /** How often the store was opened and ended. */
  readonly cycles: number
  /** Operations of the file system. */
  readonly operations: number
  /** Whether something was made to fail. */
  readonly wasFaulty: boolean
}

/** A plan went wrong. */
export class Failure extends Error {
  override readonly name = 'Failure'
  readonly plan: Plan
  readonly trace: string

  /** `plan` as far as it was carried out. */
  constructor(plan: Plan, cause: unknown, trace: string) {
    super(cause instanceof Violation ? cause.message : String(cause), { cause })
    this.plan = plan
    this.trace = trace
  }
}
