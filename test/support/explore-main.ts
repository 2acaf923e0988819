/**
 * Explores from the command line: fresh seeds for a time, or one seed again. Exits with 1 when a
 * promise was broken, after printing the smallest plan that breaks it.
 *
 *   node explore-main.js [--seconds 20] [--from 1] [--count n] [--seed n] [--profile name]
 *     [--suite explore|damage|repair|twins|codec] [--layer name] [--shrink runs] [--json] [--mutant] [--keep]
 */
import { parseArgs } from 'node:util'
import { checkDecoders } from './explore-codec.ts'
import { Coverage, LIFE_MILESTONES } from './explore-coverage.ts'
import { runDamage } from './explore-damage.ts'
import { planOf, type Profile } from './explore-generate.ts'
import { Violation } from './explore-oracle.ts'
import { formatPlan } from './explore-plan.ts'
import { Failure, type RunOptions, type RunResult } from './explore-kinds.ts'
import { runPlan } from './explore-run.ts'
import { shrink } from './explore-shrink.ts'
import { runTwins } from './explore-twins.ts'
import { MUTANT_LAYERS } from './mutant-layers.ts'

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '20' },
    from: { type: 'string', default: '1' },
    count: { type: 'string', default: 'Infinity' },
    seed: { type: 'string' },
    profile: { type: 'string' },
    suite: { type: 'string', default: 'explore' },
    layer: { type: 'string' },
    shrink: { type: 'string', default: '600' },
    json: { type: 'boolean', default: false },
    /** Says what is wrong in one line, and that's it. */
    mutant: { type: 'boolean', default: false },
    /** Goes on after a failure, and says only what it was. */
    keep: { type: 'boolean', default: false },
  },
})
const profile = values.profile as Profile | undefined
const layer = values.layer === undefined ? undefined : MUTANT_LAYERS[values.layer]
if (values.layer !== undefined && layer === undefined) throw new Error('there is no such layer')
const coverage = new Coverage()
const options: RunOptions = layer === undefined ? { coverage } : { coverage, layer }

function runSeed(seed: number): Promise<RunResult> {
  if (values.suite === 'damage') return runDamage(seed, options)
  if (values.suite === 'repair') return runDamage(seed, options, true)
  if (values.suite === 'twins') return runTwins(seed, options)
  if (values.suite === 'codec') return checkDecoders(seed)
  return runPlan(planOf(seed, profile), options)
}

async function report(failure: Failure): Promise<void> {
  if (values.keep || values.mutant) return
  const smallest = values.suite === 'explore' ? await shrink(failure, options, limits()) : failure
  console.log(`${smallest.message}\n${formatPlan(smallest.plan)}\n${smallest.trace}`)
  if (values.json) console.log(JSON.stringify(smallest.plan))
}

function limits(): { runs: number } {
  return { runs: Number(values.shrink) }
}

let current = 0
process.on('uncaughtExceptionMonitor', () => console.error(`uncaught, with seed ${current}`))
const first = Number(values.seed ?? values.from)
const count = values.seed === undefined ? Number(values.count) : 1
const startedAt = performance.now()
const elapsed = (): number => (performance.now() - startedAt) / 1000
let cycles = 0
let operations = 0
for (current = first; current < first + count && elapsed() < Number(values.seconds); current++) {
  try {
    const result = await runSeed(current)
    cycles += result.cycles
    operations += result.operations
  } catch (error) {
    if (!(error instanceof Failure || error instanceof Violation)) throw error
    console.log(`seed ${current}: ${error.message}`)
    process.exitCode = 1
    if (error instanceof Failure) await report(error)
    if (!values.keep) break
  }
}
if (!values.mutant) {
  const seeds = current - first
  console.log(`${seeds} seeds, ${cycles} cycles, ${operations} operations in ${elapsed()} s`)
  console.log(String(coverage))
  console.log('not met:', coverage.missing(LIFE_MILESTONES).join(', '))
}
