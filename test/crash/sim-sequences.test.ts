/**
 * Every short sequence of the basic operations, crashed at every operation it leads to; the longer
 * ones at a sample of them, unless `EXPLORE_SEQUENCES=4` asks for all (which takes minutes).
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { baseOfSequences, crashSequence, sequencesOf } from '../support/explore-sequences.ts'
import { numberOf } from '../support/explore-suite.ts'

/** Up to this length every operation is crashed; of the longer ones, one in so many. */
const EXHAUSTIVE_LENGTH = numberOf('EXPLORE_SEQUENCES', 2, 2)
const SAMPLED_LENGTH = 4
const ONE_IN = process.env['BIFROST_LONG'] === undefined ? 60 : 12

describe('A crash at any operation of a short sequence keeps every promise:', () => {
  for (let length = 1; length <= EXHAUSTIVE_LENGTH; length++) {
    test(`all sequences of ${length}, at every operation`, async (t) => {
      const base = await baseOfSequences()
      let crashes = 0
      for (const sequence of sequencesOf(length)) crashes += await crashSequence(sequence, base)
      t.diagnostic(`${crashes} crashes`)
      assert.ok(crashes > sequencesOf(length).length)
    })
  }
  for (let length = EXHAUSTIVE_LENGTH + 1; length <= SAMPLED_LENGTH; length++) {
    test(`all sequences of ${length}, at one in ${ONE_IN} operations`, async (t) => {
      const base = await baseOfSequences()
      let crashes = 0
      for (const [i, sequence] of sequencesOf(length).entries()) {
        crashes += await crashSequence(sequence, base, ONE_IN, i)
      }
      t.diagnostic(`${crashes} crashes`)
    })
  }
})
