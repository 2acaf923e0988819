/**
 * What one exploration does, as plain data: it can be printed, shrunk and run again. A plan holds
 * no positions and no LSNs; those follow from the store's state when a step is taken.
 */
import type { LogId } from '../../codec/errors.ts'
import type { CommitMode } from '../../engine/options.ts'
import type { CrashKind } from './sim-disk.ts'
import type { Fault, OperationKind } from './faults.ts'

export interface PlannedRecord {
  readonly bytes: number
  /**
   * Of what: text, bytes, or bytes that were copied from the newest segment. Or text of about so
   * many bytes, with which a group of its own ends where a sector does.
   */
  readonly of: 'text' | 'bytes' | 'copy' | 'aligned'
}

export type Expectation = 'none' | 'right' | 'wrong'

/** A call of the store. Logs are named by their index in the settings. */
export type PlannedCall =
  | {
      readonly call: 'append'
      readonly log: number
      readonly record: PlannedRecord
      readonly expect: Expectation
      /** Calls `abort` on its signal right after the call. */
      readonly isWithdrawn: boolean
      readonly whenFull: 'wait' | 'reject'
    }
  | { readonly call: 'batch'; readonly log: number; readonly records: readonly PlannedRecord[] }
  | {
      readonly call: 'many'
      readonly entries: readonly {
        readonly log: number
        readonly record: PlannedRecord
        readonly expect: Expectation
      }[]
    }
  /** `keep`: how many records stay. */
  | { readonly call: 'trim'; readonly log: number; readonly keep: number }
  | { readonly call: 'seal'; readonly log: number; readonly reason: string | undefined }
  | { readonly call: 'create'; readonly log: number }
  | { readonly call: 'delete'; readonly log: number }

export type Step =
  /** Calls in one tick. Without `waits` the next step is taken while they are under way. */
  | { readonly step: 'calls'; readonly calls: readonly PlannedCall[]; readonly waits: boolean }
  /** Appends until the segment has rolled, or it is given up. */
  | { readonly step: 'roll'; readonly log: number }
  /** A reader follows a log from here on. */
  | { readonly step: 'read'; readonly log: number }
  /** Everything is read and compared, also by the follower. */
  | { readonly step: 'look' }
  /** So many operations are called, while calls are under way. */
  | { readonly step: 'run'; readonly operations: number }
  /** A commit that is under way gets stuck on its way to the disk, while time passes. */
  | { readonly step: 'stall'; readonly ms: number }
  /** Time passes. */
  | { readonly step: 'pause'; readonly ms: number }
  /** The clock jumps. */
  | { readonly step: 'jump'; readonly ms: number }
  /** A copy of the machine loses its power now, and is opened. */
  | { readonly step: 'probe'; readonly kind: CrashKind }
  /** Closes and opens again. */
  | { readonly step: 'reopen' }

/** An operation that fails: the nth of those that match, counted from 1. */
export interface PlannedFault {
  readonly nth: number
  /** Default: any. */
  readonly kinds?: readonly OperationKind[]
  /** Default: any. */
  readonly pathEnd?: string
  readonly fault: Fault
  /** Whether all later ones fail too. */
  readonly isSticky: boolean
  /** From when on operations count. */
  readonly from: 'open' | 'work'
}

/** A life of a process, from open to its end. */
export interface Cycle {
  readonly faults: readonly PlannedFault[]
  /** A crash when the nth operation is about to take effect. */
  readonly crash: { readonly nth: number; readonly kind: CrashKind } | undefined
  readonly steps: readonly Step[]
  /** How it ends if nothing else ends it. */
  readonly end: CrashKind | 'close' | 'writer-kill'
}

export interface Settings {
  readonly logIds: readonly LogId[]
  readonly commitMode: CommitMode
  readonly segmentSizeBytes: number
  readonly reserveBytes: number
  readonly batchCommitCount: number
  readonly batchCommitBytes: number
  readonly batchCommitDelayMs: number
  readonly queueBytes: number
  readonly indexCacheBytes: number
  /** Undefined: no limit. */
  readonly capacityBytes: number | undefined
  /** Whether a second process follows the store. */
  readonly hasFollower: boolean
}

export interface Plan {
  /** Of the disk. */
  readonly seed: number
  readonly settings: Settings
  readonly cycles: readonly Cycle[]
}

export const DEFAULT_SETTINGS: Settings = {
  logIds: ['a', 'b', 'c'],
  commitMode: 'async',
  segmentSizeBytes: 64 * 1024,
  reserveBytes: 4096,
  batchCommitCount: 5000,
  batchCommitBytes: 8 * 1024 * 1024,
  batchCommitDelayMs: 0,
  queueBytes: 64 * 1024 * 1024,
  indexCacheBytes: 32 * 1024 * 1024,
  capacityBytes: undefined,
  hasFollower: false,
}

/** How much a plan does: what shrinking makes less of. */
export function sizeOf({ cycles }: Plan): number {
  return cycles.reduce(
    (sum, { steps, faults, crash }) =>
      sum + 1 + faults.length + (crash === undefined ? 0 : 1) + steps.reduce(countCalls, 0),
    0,
  )
}

function countCalls(sum: number, step: Step): number {
  return sum + 1 + (step.step === 'calls' ? step.calls.length : 0)
}

/** A plan in a few lines. */
export function formatPlan({ seed, settings, cycles }: Plan): string {
  const changed = Object.entries(settings).filter(
    ([key, value]) => JSON.stringify(value) !== JSON.stringify(DEFAULT_SETTINGS[key as 'logIds']),
  )
  const lines = cycles.flatMap((cycle, i) => [
    `  cycle ${i}, ends with ${cycle.end}${formatCrash(cycle)}`,
    ...cycle.faults.map((fault) => `    fault ${JSON.stringify(fault)}`),
    ...cycle.steps.map((step) => `    ${formatStep(step)}`),
  ])
  return [`plan with seed ${seed}, ${JSON.stringify(Object.fromEntries(changed))}`, ...lines].join(
    '\n',
  )
}

function formatCrash({ crash }: Cycle): string {
  return crash === undefined ? '' : `, or ${crash.kind} at operation ${crash.nth}`
}

function formatStep({ step, ...rest }: Step): string {
  if (!('calls' in rest)) return `${step} ${JSON.stringify(rest)}`
  const calls = rest.calls.map(({ call, ...of }) => `\n      ${call} ${JSON.stringify(of)}`)
  return `${rest.waits ? 'calls' : 'calls, not waited for'}${calls.join('')}`
}
