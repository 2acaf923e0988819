/** `npm run perf`: how fast, how late, and how much at once. */
import { APPEND_LATENCY } from './bench/append-latency.ts'
import type { Benchmark } from './bench/benchmark.ts'
import { BURST } from './bench/burst.ts'
import { CONCURRENT_MULTI_LOG } from './bench/concurrent-multi-log.ts'
import { CONCURRENT_SINGLE_LOG } from './bench/concurrent-single-log.ts'
import { LIMITS } from './bench/limits.ts'
import { MEMORY } from './bench/memory.ts'
import { READ_BACK } from './bench/read-back.ts'
import { REOPEN } from './bench/reopen.ts'
import { WRITE_TO_READ } from './bench/write-to-read.ts'
import type { Arena } from './measures/arena.ts'
import { selected } from './support/arguments.ts'
import { main } from './support/main.ts'

const BENCHMARKS: readonly Benchmark[] = [
  LIMITS,
  APPEND_LATENCY,
  CONCURRENT_SINGLE_LOG,
  CONCURRENT_MULTI_LOG,
  BURST,
  WRITE_TO_READ,
  READ_BACK,
  REOPEN,
  MEMORY,
]

const USAGE = `Usage: npm run perf -- [names] [options]

Runs all benchmarks, or only what has one of the names in its own:
${BENCHMARKS.map(({ name, about }) => `  ${name.padEnd(24)}${about}`).join('\n')}
`

async function run(arena: Arena): Promise<number> {
  for (const benchmark of selected(BENCHMARKS, arena.options.names)) await benchmark.run(arena)
  return 0
}

await main({ name: 'perf', usage: USAGE, run })
