/**
 * Explores from the command line: fresh seeds for a time, or one seed again.
 *
 *   node explore-main.js [--seconds 20] [--from 1] [--count n] [--seed n] [--profile name]
 */
import { parseArgs } from 'node:util'
import { Coverage } from './explore-coverage.ts'
import { planOf, type Profile } from './explore-generate.ts'
import { formatPlan } from './explore-plan.ts'
import { shrink } from './explore-shrink.ts'
import { Failure, runPlan } from './explore-run.ts'

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '20' },
    from: { type: 'string', default: '1' },
    count: { type: 'string', default: 'Infinity' },
    seed: { type: 'string' },
    profile: { type: 'string' },
    shrink: { type: 'string', default: '600' },
    json: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
  },
})
let current = 0
process.on('uncaughtExceptionMonitor', () => console.error(`uncaught, with seed ${current}`))
const profile = values.profile as Profile | undefined
const first = Number(values.seed ?? values.from)
const count = values.seed === undefined ? Number(values.count) : 1
const coverage = new Coverage()
const until = performance.now() + Number(values.seconds) * 1000
const started = performance.now()
let cycles = 0
let operations = 0
for (current = first; current < first + count && performance.now() < until; current++) {
  try {
    const result = await runPlan(planOf(current, profile), { coverage })
    cycles += result.cycles
    operations += result.operations
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    console.log(`seed ${current}: ${error.message}`)
    if (!values.keep) {
      const smallest = await shrink(error, {}, { runs: Number(values.shrink) })
      console.log(`${smallest.message}\n${formatPlan(smallest.plan)}\n${smallest.trace}`)
      if (values.json) console.log(JSON.stringify(smallest.plan))
      process.exitCode = 1
      break
    }
  }
}
const seconds = (performance.now() - started) / 1000
console.log(`${current - first} seeds, ${cycles} cycles, ${operations} operations in ${seconds.toFixed(1)} s`)
console.log(String(coverage))
console.log('missing', coverage.missing())
