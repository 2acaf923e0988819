/** Waiting for what is bound to come, without saying when. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'

/** Far more than anything takes; a test that waits so long has failed. */
const PATIENCE_MS = 60_000

export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const endsAtMs = performance.now() + PATIENCE_MS
  while (!(await condition())) {
    assert.ok(performance.now() < endsAtMs, 'what was waited for did not come')
    await sleep(20)
  }
}
