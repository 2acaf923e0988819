/**
 * All short sequences of the basic operations, each crashed at every operation of the file system
 * that its last step leads to (what came before is the last step of a shorter sequence).
 */
import type { Cycle, Plan, PlannedCall, Settings, Step } from './explore-plan.ts'
import { DEFAULT_SETTINGS } from './explore-plan.ts'
import type { RunOptions } from './explore-kinds.ts'
import { prepareBase, runPlan } from './explore-run.ts'
import type { Base } from './explore-scene.ts'
import type { CrashKind } from './sim-disk.ts'

const SETTINGS: Settings = { ...DEFAULT_SETTINGS, logIds: ['a', 'b'] }
const SMALL = { bytes: 300, of: 'text' } as const
const NO_CRASH: Pick<Cycle, 'faults' | 'crash'> = { faults: [], crash: undefined }
const KINDS: readonly CrashKind[] = ['kill', 'power']
const APPEND: PlannedCall = {
  call: 'append',
  log: 0,
  record: SMALL,
  expect: 'none',
  isWithdrawn: false,
  whenFull: 'wait',
}
const BATCH: PlannedCall = { call: 'batch', log: 1, records: [SMALL, SMALL, SMALL] }

function calls(...all: PlannedCall[]): Step {
  return { step: 'calls', calls: all, waits: true }
}

/** What sequences are made of. */
export const BASIC_STEPS: Readonly<Record<string, Step>> = {
  append: calls(APPEND),
  batch: calls(BATCH),
  trim: calls({ call: 'trim', log: 0, keep: 0 }),
  seal: calls({ call: 'seal', log: 1, reason: 'done' }),
  roll: { step: 'roll', log: 0 },
  reopen: { step: 'reopen' },
}

export type Sequence = readonly string[]

/** All sequences of this length. */
export function sequencesOf(length: number): Sequence[] {
  if (length === 0) return [[]]
  return sequencesOf(length - 1).flatMap((shorter) =>
    Object.keys(BASIC_STEPS).map((step) => [...shorter, step]),
  )
}

/** A closed store with two logs and a few records. */
export function baseOfSequences(): Promise<Base> {
  const creates = calls({ call: 'create', log: 0 }, { call: 'create', log: 1 })
  const steps = [creates, calls(APPEND, BATCH), calls(APPEND)]
  return prepareBase({
    seed: 1,
    settings: SETTINGS,
    cycles: [{ ...NO_CRASH, steps, end: 'close' }],
  })
}

function planOfSequence(sequence: Sequence, seed: number, crash: Cycle['crash']): Plan {
  const steps = sequence.map((name) => BASIC_STEPS[name] as Step)
  const working: Cycle = { faults: [], crash, steps, end: 'close' }
  return { seed, settings: SETTINGS, cycles: [working] }
}

/** The operations that the last step leads to, counted from the open on: both ends inclusive. */
async function lastStepOf(
  sequence: Sequence,
  seed: number,
  options: RunOptions,
): Promise<{ readonly from: number; readonly to: number }> {
  const counts: number[] = []
  const onStep = (_cycle: number, _step: number, operations: number): void => {
    counts.push(operations)
  }
  const plan = planOfSequence(sequence, seed, undefined)
  await runPlan(plan, { ...options, onStep, shows: 'opens' })
  const [end = 0, start = 0] = counts.reverse()
  return { from: start + 1, to: end }
}

/**
 * Crashes a sequence at each operation of its last step in turn, in both ways; with `every` above 1
 * only at some of them. Returns how many crashes that were.
 */
export async function crashSequence(
  sequence: Sequence,
  base: Base,
  every = 1,
  phase = 0,
): Promise<number> {
  const options: RunOptions = { base, shows: 'opens' }
  const seed = 1 + hashOf(sequence)
  const { from, to } = await lastStepOf(sequence, seed, options)
  let crashes = 0
  for (let nth = from; nth <= to; nth++) {
    for (const kind of KINDS) {
      if ((nth * KINDS.length + KINDS.indexOf(kind)) % every !== phase % every) continue
      await runPlan(planOfSequence(sequence, seed, { nth, kind }), options)
      crashes++
    }
  }
  return crashes
}

function hashOf(sequence: Sequence): number {
  const names = Object.keys(BASIC_STEPS)
  return sequence.reduce((hash, name) => hash * 7 + names.indexOf(name) + 1, 0)
}
