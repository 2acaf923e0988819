/**
 * `npm run perf:targets`: everything that is aimed at, measured in one run, side by side. Exits with
 * 1 if something was missed.
 */
import type { Arena } from './measures/arena.ts'
import { selected } from './support/arguments.ts'
import { main } from './support/main.ts'
import { APPEND_TARGETS } from './targets/appends.ts'
import { BURST_TARGET } from './targets/burst.ts'
import { BYTES_TARGET } from './targets/bytes.ts'
import { COLD_READS_TARGET } from './targets/cold-reads.ts'
import { EVENT_LOOP_TARGET } from './targets/event-loop.ts'
import { INLINE_TARGET } from './targets/inline.ts'
import { MANY_LOGS_TARGET } from './targets/many-logs.ts'
import { MEMORY_TARGET } from './targets/memory.ts'
import { INTERLEAVED_TARGET, READ_BACK_TARGET } from './targets/read-back.ts'
import { REOPEN_TARGET } from './targets/reopen.ts'
import type { Target } from './targets/target.ts'
import type { Verdict } from './targets/verdict.ts'
import { WRITE_TO_READ_TARGET } from './targets/write-to-read.ts'

const TARGETS: readonly Target[] = [
  ...APPEND_TARGETS,
  INLINE_TARGET,
  MANY_LOGS_TARGET,
  BURST_TARGET,
  WRITE_TO_READ_TARGET,
  READ_BACK_TARGET,
  INTERLEAVED_TARGET,
  REOPEN_TARGET,
  BYTES_TARGET,
  COLD_READS_TARGET,
  MEMORY_TARGET,
  EVENT_LOOP_TARGET,
]

const USAGE = `Usage: npm run perf:targets -- [names] [options]

Measures what is aimed at, or only what has one of the names in its own:
${TARGETS.map(({ name }) => `  ${name}`).join('\n')}
`

const HEADS = ['Work', 'Aim', 'Measured', 'Half of the rounds', 'Met']

function cells({ work, aim, measured, spread, met }: Verdict): string[] {
  return [work, aim, measured, spread, met ? 'yes' : 'NO']
}

async function run(arena: Arena): Promise<number> {
  const verdicts: Verdict[] = []
  for (const target of selected(TARGETS, arena.options.names)) {
    arena.report.text(target.name)
    const made = await target.measure(arena)
    for (const verdict of made) arena.report.text(`  ${cells(verdict).join('  ')}`)
    verdicts.push(...made)
  }
  arena.report.keep('verdicts', verdicts)
  const missed = verdicts.filter(({ met }) => !met).length
  arena.report.table(
    `${verdicts.length - missed} met, ${missed} missed`,
    HEADS,
    verdicts.map(cells),
  )
  return missed === 0 ? 0 : 1
}

await main({ name: 'targets', usage: USAGE, run })
