/**
 * The suite is worth what it notices: engines that are broken on purpose, each in one way, run
 * against it. One that nobody notices fails the build. All of them run in a long run only; a short
 * one is content with those that a misbehaving file system makes.
 */
import assert from 'node:assert/strict'
import os from 'node:os'
import { describe, test } from 'node:test'
import { MUTANTS } from '../support/mutant-list.ts'
import { judgeMutant } from '../support/mutant-tree.ts'

const LIMITS = { seeds: 3000, seconds: 120 }
const isLong = process.env['BIFROST_LONG'] !== undefined
const CHOSEN = MUTANTS.filter(({ layer }) => isLong || layer !== undefined)

test('The list of broken engines is long enough, and names each once', () => {
  const names = MUTANTS.map(({ name }) => name)
  assert.ok(names.length >= 20)
  assert.equal(new Set(names).size, names.length)
})

test('An engine that is not broken is not noticed', async () => {
  const { caught } = await judgeMutant({ name: 'none' }, { seeds: 20, seconds: 60 })
  assert.equal(caught, undefined)
})

describe('Broken engines are noticed:', { concurrency: os.availableParallelism() }, () => {
  for (const mutant of CHOSEN) {
    test(mutant.name, async (t) => {
      const { caught } = await judgeMutant(mutant, LIMITS)
      assert.ok(caught !== undefined, `nobody noticed: ${mutant.name}`)
      t.diagnostic(caught)
    })
  }
})
