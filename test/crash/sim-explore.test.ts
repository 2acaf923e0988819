/**
 * Random lives of a store on a simulated disk: many logs, crashes at any operation and in recovery,
 * faults of every kind, a full disk, readers and a follower; an oracle judges all that anybody is
 * told or shows. `EXPLORE_SECONDS` sets the time for fresh seeds, `EXPLORE_SEED=n` runs one again.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Coverage, LIFE_MILESTONES } from '../support/explore-coverage.ts'
import { planOf, PROFILE_NAMES } from '../support/explore-generate.ts'
import { runPlan } from '../support/explore-run.ts'
import { runSeeds, numberOf, SEED_VARIABLE } from '../support/explore-suite.ts'

const SECONDS = numberOf('EXPLORE_SECONDS', 20, 60)
const SEEDS_PER_PROFILE = 60
const again = process.env[SEED_VARIABLE]
const skip = again === undefined ? false : `${SEED_VARIABLE} asks for one seed only`

const coverage = new Coverage()

test('The seed that is asked for', { skip: again === undefined }, async () => {
  await runSeeds((seed) => runPlan(planOf(seed)), { from: Number(again), count: 1 })
})

for (const profile of PROFILE_NAMES) {
  test(`Fixed seeds, ${profile}: every promise is kept`, { skip }, async (t) => {
    const run = (seed: number): ReturnType<typeof runPlan> =>
      runPlan(planOf(seed, profile), { coverage })
    const { cycles } = await runSeeds(run, { from: 1, count: SEEDS_PER_PROFILE })
    t.diagnostic(`${cycles} cycles`)
  })
}

test('Fixed seeds meet everything that the suite is about', { skip }, (t) => {
  t.diagnostic(String(coverage))
  assert.deepEqual(coverage.missing(LIFE_MILESTONES), [])
})

test(`Fresh seeds for ${SECONDS} s: every promise is kept`, { skip }, async (t) => {
  const from = Date.now() % 2 ** 30
  t.diagnostic(`seeds from ${from}`)
  const result = await runSeeds((seed) => runPlan(planOf(seed)), { from, seconds: SECONDS })
  t.diagnostic(`${result.seeds} seeds, ${result.cycles} cycles, ${result.operations} operations`)
})
