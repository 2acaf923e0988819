/** One operation after the other fails, in every way in which it can, once and from there on. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { SWEPT_FAULTS, sweep } from '../support/explore-sweep.ts'

const COMMIT_MODES = ['async', 'inline'] as const
/** A life has more operations than this; a sweep that ends earlier has not failed each of them. */
const LEAST_OPERATIONS = 100

describe('Whatever fails, nothing acknowledged is lost and everything works again:', () => {
  for (const [name, fault] of Object.entries(SWEPT_FAULTS)) {
    for (const isSticky of [false, true]) {
      const [commitMode] = isSticky ? ['inline' as const] : COMMIT_MODES
      test(`${name}, ${isSticky ? 'from there on' : 'once'}`, async (t) => {
        const failed = await sweep({ fault, isSticky, settings: { commitMode } })
        t.diagnostic(`${failed} operations`)
        // A short write is one of few operations.
        if (fault.short !== true) assert.ok(failed > LEAST_OPERATIONS)
      })
    }
  }
})
