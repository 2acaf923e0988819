/** How the resident set grows with what is appended. */
import { execFileSync } from 'node:child_process'
import type { Arena, Contents } from './arena.ts'

const SIZE = 100
const CALLERS = 256

export interface Growth {
  readonly name: string
  /** Resident bytes of a process that does nothing. */
  readonly empty: number
  /** Resident bytes after each step. */
  readonly sizes: readonly number[]
  readonly every: number
}

export interface GrowthCase {
  readonly name: string
  readonly contents: Contents
  readonly records: number
  readonly steps: number
  readonly slowReader?: boolean
}

export async function growth(arena: Arena, growthCase: GrowthCase): Promise<Growth> {
  const { name, contents, steps, slowReader } = growthCase
  const side = await arena.enter(name, contents)
  const every = Math.ceil(arena.records(growthCase.records) / steps)
  arena.report.progress(name)
  const sizes = await side.ask('growth', {
    records: every * steps,
    every,
    size: SIZE,
    callers: CALLERS,
    slowReader,
  })
  await arena.clear()
  return { name, empty: emptyProcess(), sizes, every }
}

function emptyProcess(): number {
  const script = 'process.stdout.write(String(process.memoryUsage.rss()))'
  return Number(execFileSync(process.execPath, ['-e', script], { encoding: 'utf8' }))
}
