/**
 * Damaged disks: a bit, a sector or a page that is not what it was, a file that was cut or is gone,
 * versions of the future, copies that were mixed. Never a wrong or missing record in silence.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Coverage, DAMAGE_MILESTONES } from '../support/explore-coverage.ts'
import { runDamage } from '../support/explore-damage.ts'
import { checkDecoders } from '../support/explore-codec.ts'
import { runSeeds, numberOf } from '../support/explore-suite.ts'
import { runTwins } from '../support/explore-twins.ts'

const SECONDS = numberOf('EXPLORE_SECONDS', 20, 60) / 4

test('Damage is an error or a gap, and never silent', async (t) => {
  const coverage = new Coverage()
  const options = { coverage }
  const fixed = await runSeeds((seed) => runDamage(seed, options), { from: 1, count: 60 })
  assert.deepEqual(coverage.missing(DAMAGE_MILESTONES), [])
  const from = Date.now() % 2 ** 30
  const fresh = await runSeeds((seed) => runDamage(seed, options), { from, seconds: SECONDS })
  t.diagnostic(`seeds from ${from}; ${fixed.cycles + fresh.cycles} lives and damages`)
})

test('Two copies that were written apart and then mixed are not taken for one', async () => {
  await runSeeds((seed) => runTwins(seed, {}), { from: 1, count: 100 })
})

test('A group or frame checks in its own place only, and with all its bits', async () => {
  await runSeeds((seed) => checkDecoders(seed), { from: 1, count: 2000 })
})
