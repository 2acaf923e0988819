/** Runs many seeds for a test, and says all that is needed when one of them fails. */
import { formatPlan } from './explore-plan.ts'
import { Failure, type RunOptions, type RunResult } from './explore-kinds.ts'
import { shrink } from './explore-shrink.ts'

/** How the seed of a failure is run again. */
export const SEED_VARIABLE = 'EXPLORE_SEED'

export interface SuiteResult {
  readonly seeds: number
  readonly cycles: number
  readonly operations: number
}

export interface SuiteLimits {
  readonly from: number
  /** Seeds to run at most. */
  readonly count?: number
  readonly seconds?: number
}

const SHRINK = { runs: 300 }

/** Runs seeds one after the other; rejects with a report at the first that fails. */
export async function runSeeds(
  run: (seed: number) => Promise<RunResult>,
  { from, count = Infinity, seconds = Infinity }: SuiteLimits,
  options: RunOptions = {},
): Promise<SuiteResult> {
  const until = performance.now() + seconds * 1000
  let cycles = 0
  let operations = 0
  let seed = from
  const tell = (): void => console.error(`uncaught, while seed ${seed} was run`)
  process.on('uncaughtExceptionMonitor', tell)
  try {
    for (; seed < from + count && performance.now() < until; seed++) {
      const result = await run(seed)
      cycles += result.cycles
      operations += result.operations
    }
  } catch (error) {
    throw await reported(seed, error, options)
  } finally {
    process.off('uncaughtExceptionMonitor', tell)
  }
  return { seeds: seed - from, cycles, operations }
}

async function reported(seed: number, error: unknown, options: RunOptions): Promise<unknown> {
  if (!(error instanceof Failure)) return new Error(`seed ${seed}`, { cause: error })
  const smallest = options.between === undefined ? await shrink(error, options, SHRINK) : error
  const again = `${SEED_VARIABLE}=${seed} runs it again`
  return new Error(
    `seed ${seed}: ${error.message} (${again})\n\n` +
      `the smallest plan: ${smallest.message}\n${formatPlan(smallest.plan)}\n${smallest.trace}`,
    { cause: error.cause },
  )
}

/** The number that an environment variable gives: seconds, mostly. Greater in a long run. */
export function numberOf(variable: string, usual: number, long: number): number {
  const given = process.env[variable]
  if (given !== undefined) return Number(given)
  return process.env['BIFROST_LONG'] === undefined ? usual : long
}
