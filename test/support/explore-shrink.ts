/**
 * Makes a plan that fails smaller, as long as it fails in the same way. What is left out shifts all
 * the chances that the disk draws, so each smaller plan is tried with a few seeds.
 */
import {
  DEFAULT_SETTINGS,
  sizeOf,
  type Cycle,
  type Plan,
  type Settings,
  type Step,
} from './explore-plan.ts'
import { Failure, type RunOptions } from './explore-kinds.ts'
import { runPlan } from './explore-run.ts'

const SEEDS = 6

export interface ShrinkLimits {
  /** Plans to run at most. */
  readonly runs: number
}

/** The smallest failing plan that was found, as its failure. */
export async function shrink(
  found: Failure,
  options: RunOptions,
  limits: ShrinkLimits,
): Promise<Failure> {
  let smallest = found
  let runs = 0
  for (let isShrinking = true; isShrinking;) {
    isShrinking = false
    for (const plan of smallerThan(smallest.plan)) {
      for (let i = 0; i < SEEDS && runs < limits.runs; i++, runs++) {
        const failure = await failureOf({ ...plan, seed: plan.seed + i }, options)
        if (failure === undefined || kindOf(failure) !== kindOf(found)) continue
        smallest = failure
        isShrinking = true
        break
      }
      if (isShrinking) break
    }
  }
  return smallest
}

async function failureOf(plan: Plan, options: RunOptions): Promise<Failure | undefined> {
  try {
    await runPlan(plan, options)
    return undefined
  } catch (error) {
    if (error instanceof Failure) return error
    throw error
  }
}

/** What went wrong, whatever the numbers. */
function kindOf({ message }: Failure): string {
  const [first = ''] = message.split('\n')
  return first.replaceAll(/[0-9]+|\(.*\)/g, '').slice(0, 60)
}

/** Plans that do a little less, the smallest first. */
function smallerThan(plan: Plan): Plan[] {
  const { cycles } = plan
  const smaller = [
    ...without(cycles).map((fewer) => ({ ...plan, cycles: fewer })),
    ...cycles.flatMap((cycle, i) =>
      smallerCycles(cycle).map((less) => ({ ...plan, cycles: cycles.with(i, less) })),
    ),
    ...simplerSettings(plan),
  ]
  return smaller.sort((a, b) => sizeOf(a) - sizeOf(b))
}

function smallerCycles(cycle: Cycle): Cycle[] {
  const { steps, faults, crash } = cycle
  return [
    ...(steps.length > 3 ? halves(steps).map((half) => ({ ...cycle, steps: half })) : []),
    ...without(steps).map((fewer) => ({ ...cycle, steps: fewer })),
    ...without(faults).map((fewer) => ({ ...cycle, faults: fewer })),
    ...(crash === undefined ? [] : [{ ...cycle, crash: undefined }]),
    ...steps.flatMap((step, i) =>
      smallerSteps(step).map((less) => ({ ...cycle, steps: steps.with(i, less) })),
    ),
  ]
}

function smallerSteps(step: Step): Step[] {
  if (step.step !== 'calls' || step.calls.length === 1) return []
  return without(step.calls).map((calls) => ({ ...step, calls }))
}

function simplerSettings(plan: Plan): Plan[] {
  const { settings } = plan
  const usual: readonly [string, unknown][] = Object.entries(DEFAULT_SETTINGS)
  return usual
    .filter(([key, value]) => key !== 'logIds' && settings[key as keyof Settings] !== value)
    .map(([key, value]) => ({ ...plan, settings: { ...settings, [key]: value } }))
}

/** The list without each of its items in turn. */
function without<T>(items: readonly T[]): T[][] {
  return items.map((_, i) => items.filter((__, at) => at !== i))
}

function halves<T>(items: readonly T[]): T[][] {
  const middle = items.length >> 1
  return [items.slice(middle), items.slice(0, middle)]
}
