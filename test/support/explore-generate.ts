/**
 * Makes plans from seeds: workloads over many logs, crashes at any operation, and faults. A profile
 * decides what is likely; everything possible stays possible in most of them.
 */
import type { LogId } from '../../codec/errors.ts'
import type { Fault } from './faults.ts'
import {
  DEFAULT_SETTINGS,
  type Cycle,
  type Expectation,
  type Plan,
  type PlannedCall,
  type PlannedFault,
  type PlannedRecord,
  type Settings,
  type Step,
} from './explore-plan.ts'
import { Random } from './random.ts'

export type Profile = keyof typeof PROFILES

interface ProfileTraits {
  /** The chance that a cycle meets a fault, is crashed, or the disk is small. */
  readonly faults: number
  readonly crashes: number
  readonly smallDisk: number
  readonly follower: number
  /** The chance that a record is large enough to roll soon. */
  readonly large: number
  /** All records have the same size. */
  readonly isUniform: boolean
  /** Groups have one record and end where a sector does. */
  readonly isAligned: boolean
  /** The chance of calls about logs and their states rather than appends. */
  readonly changes: number
}

const ANY: ProfileTraits = {
  faults: 0.4,
  crashes: 0.7,
  smallDisk: 0.15,
  follower: 0.15,
  large: 0.15,
  isUniform: false,
  isAligned: false,
  changes: 0.35,
}

const PROFILES = {
  any: ANY,
  /** Crashes only. */
  crashes: { ...ANY, faults: 0, smallDisk: 0, crashes: 0.9, follower: 0 },
  /** Segments come and go. */
  rolls: { ...ANY, faults: 0.1, smallDisk: 0, large: 0.7, follower: 0.3, changes: 0.5 },
  /** Groups of one size: what an earlier life wrote lies where the next life writes. */
  uniform: { ...ANY, faults: 0.2, smallDisk: 0, large: 0, isUniform: true, changes: 0.05 },
  /** Groups and sectors coincide, so that each group is on the disk whole or not at all. */
  aligned: { ...ANY, faults: 0.1, smallDisk: 0, large: 0, isAligned: true, changes: 0.02 },
  /** Commits fail. */
  failures: { ...ANY, faults: 1, smallDisk: 0, crashes: 0.3, follower: 0 },
  /** Another process follows. */
  follower: { ...ANY, faults: 0, smallDisk: 0, follower: 1, crashes: 0.3, large: 0.3 },
  /** The disk is full. */
  full: { ...ANY, faults: 0, smallDisk: 1, crashes: 0.4, large: 0.5, follower: 0, changes: 0.45 },
} as const satisfies Record<string, ProfileTraits>

export const PROFILE_NAMES = Object.keys(PROFILES) as readonly Profile[]

/** What `explore` runs when nobody asks for one profile. */
const MIX: readonly Profile[] = [
  ...(['any', 'any', 'any', 'any', 'crashes', 'rolls', 'rolls', 'uniform', 'aligned'] as const),
  ...(['failures', 'failures', 'full'] as const),
]

/** The plan of a seed. Without a profile the seed picks one. */
export function planOf(seed: number, profile?: Profile): Plan {
  const random = new Random(Math.imul(seed, 0x9e3779b1) ^ 0x5eed)
  return new Generator(random, PROFILES[profile ?? random.pick(MIX)]).plan(seed)
}

const KIB = 1024
const LONG_NAME = 'a-log-with-a-rather-long-name-'.padEnd(200, 'x')
const FAULTS: readonly Fault[] = [
  { code: 'EIO' },
  { code: 'EIO' },
  { code: 'EIO', afterEffect: true },
  { code: 'ENOSPC' },
  { code: 'ENOSPC' },
  { code: 'EDQUOT' },
  { code: 'EFBIG' },
  { code: 'EMFILE' },
  { short: true },
  { short: true, code: 'ENOSPC' },
  { short: true, code: 'EIO' },
]

class Generator {
  readonly #random: Random
  readonly #traits: ProfileTraits
  #uniformBytes = 0
  #logs = 0
  #hasFollower = false

  constructor(random: Random, traits: ProfileTraits) {
    this.#random = random
    this.#traits = traits
  }

  plan(seed: number): Plan {
    const random = this.#random
    const settings = this.#settings()
    this.#logs = settings.logIds.length
    this.#hasFollower = settings.hasFollower
    this.#uniformBytes = random.pick([16, 100, 400, 1000, 4000])
    const cycles = Array.from({ length: random.between(2, 7) }, (_, i) => this.#cycle(i))
    return { seed, settings, cycles }
  }

  #settings(): Settings {
    const random = this.#random
    const { smallDisk, follower, isAligned } = this.#traits
    return {
      logIds: this.#logIds(),
      commitMode: random.chance(0.2) ? 'inline' : 'async',
      segmentSizeBytes: DEFAULT_SETTINGS.segmentSizeBytes,
      reserveBytes: random.chance(0.8) ? 4 * KIB : 32 * KIB,
      batchCommitCount: isAligned ? 1 : random.pick([1, 2, 5000, 5000]),
      batchCommitBytes: random.pick([100, 4 * KIB, 8 * KIB * KIB, 8 * KIB * KIB]),
      batchCommitDelayMs: random.chance(0.1) ? 5 : 0,
      queueBytes: random.chance(0.15) ? 2 * KIB : DEFAULT_SETTINGS.queueBytes,
      indexCacheBytes: random.chance(0.3) ? 0 : DEFAULT_SETTINGS.indexCacheBytes,
      capacityBytes: random.chance(smallDisk) ? random.between(20, 160) * 4 * KIB : undefined,
      hasFollower: random.chance(follower),
    }
  }

  #logIds(): LogId[] {
    const count = this.#random.pick([1, 2, 3, 6])
    const isLong = this.#random.chance(0.1)
    return Array.from({ length: count }, (_, i) => (isLong ? `${LONG_NAME}${i}` : `log${i}`))
  }

  #cycle(index: number): Cycle {
    const random = this.#random
    const { faults, crashes } = this.#traits
    const steps = random.chance(0.15) ? 0 : random.between(1, random.chance(0.3) ? 16 : 6)
    const nth = 1 + random.below(random.chance(0.4) ? 45 : 160)
    const kind = random.chance(0.5) ? 'power' : 'kill'
    return {
      faults: random.chance(faults) ? this.#faults() : [],
      crash: random.chance(crashes) ? { nth, kind } : undefined,
      steps: [
        ...(index === 0 || random.chance(0.85) ? [this.#createAll()] : []),
        ...Array.from({ length: steps }, () => this.#step()),
        ...(random.chance(this.#hasFollower ? 0.8 : 0.05) ? this.#stall() : []),
        ...(random.chance(0.6) ? this.#lastCalls() : []),
      ],
      end: random.pick(['power', 'kill', 'close', 'writer-kill']),
    }
  }

  /** Calls that the end of the cycle will interrupt. */
  #lastCalls(): Step[] {
    const random = this.#random
    return [
      { step: 'calls', calls: this.#someCalls(), waits: false },
      { step: 'run', operations: random.pick([1, 1, 1, 2, 4]) },
    ]
  }

  #stall(): Step[] {
    const calls = this.#someCalls()
    return [
      { step: 'calls', calls, waits: false },
      { step: 'stall', ms: this.#random.pick([60, 200, 1500]) },
      { step: 'look' },
    ]
  }

  #createAll(): Step {
    const calls = Array.from({ length: this.#logs }, (_, log) => ({ call: 'create', log }) as const)
    return { step: 'calls', calls, waits: true }
  }

  #faults(): PlannedFault[] {
    const random = this.#random
    return Array.from({ length: random.pick([1, 1, 2]) }, () => {
      const from = random.chance(0.4) ? ('open' as const) : ('work' as const)
      const common = { fault: random.pick(FAULTS), isSticky: random.chance(0.25), from }
      switch (random.below(4)) {
        case 0:
          return { ...common, nth: random.between(1, 6), kinds: ['commit', 'commitSync'] }
        case 1:
          return { ...common, nth: random.between(1, 3), kinds: ['sync', 'syncDirectory'] }
        case 2:
          return { ...common, nth: random.between(1, 20), pathEnd: '.segment' }
        default:
          return { ...common, nth: random.between(1, random.chance(0.5) ? 40 : 150) }
      }
    })
  }

  #step(): Step {
    const random = this.#random
    const log = random.below(this.#logs)
    const dice = random.below(100)
    if (dice < 4) return { step: 'pause', ms: random.pick([1, 40, 600, 3000]) }
    if (dice < 7) return { step: 'jump', ms: random.pick([-3_600_000, -5, 2000, 86_400_000]) }
    if (dice < 14) return { step: 'read', log }
    if (dice < 17 || (this.#hasFollower && dice > 80)) return { step: 'look' }
    if (dice < 22) return { step: 'probe', kind: random.chance(0.8) ? 'power' : 'kill' }
    if (dice < 25) return { step: 'reopen' }
    if (dice < 27 && this.#traits.large > 0) return { step: 'roll', log }
    return { step: 'calls', calls: this.#someCalls(), waits: random.chance(0.8) }
  }

  #someCalls(): PlannedCall[] {
    const count = this.#random.pick([1, 1, 1, 2, 3, 6])
    return Array.from({ length: count }, () => this.#call())
  }

  #call(): PlannedCall {
    const random = this.#random
    const log = random.below(this.#logs)
    if (random.chance(this.#traits.changes)) return this.#change(log)
    const dice = this.#traits.isAligned ? 0 : random.below(10)
    if (dice < 6) {
      return {
        call: 'append',
        log,
        record: this.#record(),
        expect: this.#expectation(),
        isWithdrawn: random.chance(0.05),
        whenFull: random.chance(0.2) ? 'reject' : 'wait',
      }
    }
    const count = random.pick([1, 2, 4, 10])
    if (dice < 8) {
      const records = Array.from({ length: count }, () => this.#record())
      return { call: 'batch', log, records }
    }
    const entries = Array.from({ length: count }, () => ({
      log: random.below(this.#logs),
      record: this.#record(),
      expect: this.#expectation(),
    }))
    return { call: 'many', entries }
  }

  #change(log: number): PlannedCall {
    const random = this.#random
    const dice = random.below(40)
    if (dice < 20) return { call: 'trim', log, keep: random.pick([0, 0, 1, 3, 10]) }
    if (dice < 34) return { call: 'create', log }
    if (dice < 38) return { call: 'delete', log }
    return { call: 'seal', log, reason: random.pick([undefined, 'done', 'a reason']) }
  }

  #expectation(): Expectation {
    const dice = this.#random.below(20)
    return dice < 16 ? 'none' : dice < 18 ? 'right' : 'wrong'
  }

  #record(): PlannedRecord {
    const random = this.#random
    const { isUniform, isAligned, large } = this.#traits
    if (isAligned) return { bytes: random.pick([256, 256, 700]), of: 'aligned' }
    if (isUniform) return { bytes: this.#uniformBytes, of: 'text' }
    const of = random.pick(['text', 'text', 'bytes', 'copy'] as const)
    if (random.chance(large)) return { bytes: random.between(5, 40) * KIB, of }
    return { bytes: random.below(random.chance(0.5) ? 3000 : 250) + 16, of }
  }
}
