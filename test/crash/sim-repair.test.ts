/**
 * Repairs of damaged stores on the simulated disk, with crashes in between: all that checks is
 * kept, all that is lost is said, and no LSN is used twice.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Coverage } from '../support/explore-coverage.ts'
import { runDamage } from '../support/explore-damage.ts'
import { numberOf, runSeeds } from '../support/explore-suite.ts'

/** Seeds that each found a mistake of their own. */
const REGRESSIONS = [271, 365, 525, 711, 1272, 1486, 5278, 261369017]
const FIXED_SEEDS = numberOf('REPAIR_SEEDS', 40, 120)

test('A repaired store has every record that checks, and says what it lost', async (t) => {
  const coverage = new Coverage()
  const run = (seed: number): ReturnType<typeof runDamage> => runDamage(seed, { coverage }, true)
  const fixed = await runSeeds(run, { from: 1, count: FIXED_SEEDS })
  assert.deepEqual(coverage.missing(['repaired', 'crashed in repair', 'loss gap']), [])
  for (const seed of REGRESSIONS) await runSeeds(run, { from: seed, count: 1 })
  t.diagnostic(`${fixed.cycles} lives and damages`)
})
