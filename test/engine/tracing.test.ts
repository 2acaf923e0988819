/** What the tracing channels tell. */
import assert from 'node:assert/strict'
import { tracingChannel } from 'node:diagnostics_channel'
import { test } from 'node:test'
import { Bifrost } from '../../index.ts'
import type { AppendTrace, CommitTrace } from '../../engine/tracing.ts'
import { temporaryDirectory } from '../support/temp-dir.ts'

test('bifrost:append and bifrost:commit tell of each append and each group', async (t) => {
  const bifrost = await Bifrost.open({ dir: await temporaryDirectory(t), logs: ['a', 'b'] })
  t.after(() => bifrost.close())
  const events: string[] = []
  const appends = {
    start: (message: object) => {
      const { logId, records } = message as AppendTrace
      events.push(`append ${logId} ${records}`)
    },
    asyncEnd: (message: object) => {
      const { logId, first, error } = message as AppendTrace
      events.push(`appended ${logId} ${first ?? (error as { code: string }).code}`)
    },
  }
  const commits = {
    start: (message: object) => {
      const { segment, records, bytes } = message as CommitTrace
      assert.ok(bytes > 0)
      events.push(`commit ${records} in segment ${segment}`)
    },
    asyncEnd: () => events.push('committed'),
  }
  tracingChannel('bifrost:append').subscribe(appends as never)
  tracingChannel('bifrost:commit').subscribe(commits as never)
  await Promise.all([bifrost.appendBatch('a', [1, 2]), bifrost.append('b', 3)])
  await bifrost.appendMany([
    { logId: 'a', payload: 4 },
    { logId: 'b', payload: 5 },
  ])
  await assert.rejects(bifrost.append('a', 6, { expectedTail: 1 }))
  tracingChannel('bifrost:append').unsubscribe(appends as never)
  tracingChannel('bifrost:commit').unsubscribe(commits as never)
  await bifrost.append('a', 7)
  assert.deepEqual(events, [
    'append a 2',
    'append b 1',
    'commit 3 in segment 1',
    'committed',
    'appended a 1',
    'appended b 1',
    'append a 1',
    'append b 1',
    'commit 2 in segment 1',
    'committed',
    'appended a 3',
    'appended b 2',
    'append a 1',
    'appended a TAIL_MISMATCH',
  ])
})
