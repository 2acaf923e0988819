/**
 * Fails one operation after the other of a life in which everything is done, until a run completes
 * untouched: each kind of failure, once and from there on. Whatever fails, every promise settles
 * with a documented error, nothing acknowledged is lost, and after that everything works again.
 */
import type { Fault } from './faults.ts'
import {
  DEFAULT_SETTINGS,
  type Cycle,
  type Expectation,
  type Plan,
  type PlannedCall,
  type Settings,
  type Step,
} from './explore-plan.ts'
import type { RunOptions } from './explore-kinds.ts'
import { runPlan } from './explore-run.ts'
import type { Base } from './explore-scene.ts'

/** By the names of tests. */
export const SWEPT_FAULTS: Readonly<Record<string, Fault>> = {
  EIO: { code: 'EIO' },
  'EIO after the effect': { code: 'EIO', afterEffect: true },
  ENOSPC: { code: 'ENOSPC' },
  EMFILE: { code: 'EMFILE' },
  'a short write': { short: true },
  'a short write, then ENOSPC': { short: true, code: 'ENOSPC' },
}

const SMALL = { bytes: 600, of: 'text' } as const

function append(expect: Expectation): PlannedCall {
  return { call: 'append', log: 0, record: SMALL, expect, isWithdrawn: false, whenFull: 'wait' }
}

const BATCH: PlannedCall = { call: 'batch', log: 1, records: [SMALL, SMALL, SMALL] }
const MANY: PlannedCall = {
  call: 'many',
  entries: [0, 1, 0].map((log) => ({ log, record: SMALL, expect: 'none' })),
}

function calls(...all: PlannedCall[]): Step {
  return { step: 'calls', calls: all, waits: true }
}

const LIFE: readonly Step[] = [
  calls(...[0, 1, 2].map((log) => ({ call: 'create', log }) as const)),
  { step: 'read', log: 0 },
  calls(append('none'), BATCH, append('wrong')),
  calls(MANY, { call: 'trim', log: 1, keep: 1 }),
  { step: 'roll', log: 0 },
  calls({ call: 'trim', log: 0, keep: 1 }, { call: 'delete', log: 2 }),
  calls({ call: 'seal', log: 1, reason: 'done' }, BATCH),
  { step: 'pause', ms: 600 },
  { step: 'look' },
  { step: 'reopen' },
  calls(append('right'), { call: 'create', log: 2 }),
]

const ENDS: readonly Cycle['end'][] = ['close', 'kill', 'power']

export interface Swept {
  readonly fault: Fault
  readonly isSticky: boolean
  readonly base?: Base
  readonly settings?: Partial<Settings>
}

/** Sweeps over a life from its first operation on. Returns how many operations were failed. */
export async function sweep({ fault, isSticky, base, settings }: Swept): Promise<number> {
  for (let nth = 1; ; nth++) {
    const plan: Plan = {
      seed: nth,
      settings: { ...DEFAULT_SETTINGS, ...settings },
      cycles: [
        {
          faults: [{ nth, fault, isSticky, from: 'open' }],
          crash: undefined,
          steps: LIFE,
          end: ENDS[nth % ENDS.length] as Cycle['end'],
        },
      ],
    }
    const options: RunOptions = { shows: 'works', ...(base === undefined ? {} : { base }) }
    const { wasFaulty } = await runPlan(plan, options)
    if (!wasFaulty) return nth - 1
  }
}
