/** One caller who blocks the thread for each sync, against better-sqlite3, which always does. */
import type { Contents } from '../measures/arena.ts'
import { contest, type Outcome } from '../measures/contest.ts'
import { readyPeers } from '../stores/peer-packages.ts'
import { ratioOf } from '../support/statistics.ts'
import type { Target } from './target.ts'
import { atLeast } from './verdict.ts'

const AIM = 1
const WORK = { callers: 1, size: 100 }
const PEER = 'better-sqlite3-single'
const INLINE: Contents = { kind: 'bifrost', options: { commitMode: 'inline' } }

export const INLINE_TARGET: Target = {
  name: 'inline',
  async measure(arena) {
    if (readyPeers([PEER]).length === 0) return []
    const outcomes = await contest(arena, [
      { name: 'inline', contents: INLINE, work: WORK },
      { name: PEER, contents: { kind: PEER }, work: WORK },
    ])
    arena.report.keep('inline', outcomes)
    const [ours, theirs] = outcomes as [Outcome, Outcome]
    const work = "1 caller, 100 B, commitMode 'inline': of better-sqlite3's single transactions"
    return [atLeast(work, AIM, ratioOf(ours.rates, theirs.rates))]
  },
}
