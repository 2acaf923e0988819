/** One line of what is aimed at, or some that are measured together. */
import type { Arena } from '../measures/arena.ts'
import type { Verdict } from './verdict.ts'

export interface Target {
  readonly name: string
  measure(arena: Arena): Promise<readonly Verdict[]>
}
