/** What a worker does when it is asked. Arguments and results are sent between processes. */
import { appends, fill } from './appends.ts'
import { coldReads } from './cold-reads.ts'
import { growth } from './memory.ts'
import { scan, writeToRead } from './reads.ts'
import type { Session } from './session.ts'

export const TASKS = {
  open: (session: Session, _args: undefined): Promise<number> => session.open(),
  close: (session: Session, _args: undefined): Promise<void> => session.close(),
  metrics: (session: Session, _args: undefined) => session.bifrost.bifrost.metrics(),
  appends,
  fill,
  scan,
  writeToRead,
  coldReads,
  growth,
}

export type Tasks = typeof TASKS
export type TaskName = keyof Tasks
export type TaskArguments<N extends TaskName> = Tasks[N] extends (
  session: Session,
  args: infer A,
) => unknown
  ? A
  : undefined
export type TaskResult<N extends TaskName> = Awaited<ReturnType<Tasks[N]>>

/** What the parent asks. */
export interface Question {
  readonly id: number
  readonly task: TaskName
  readonly args: unknown
}

/** What came of it: a result, or why there is none. */
export type Outcome = { readonly result: unknown } | { readonly error: string }

/** What the worker answers. */
export type Answer = Outcome & { readonly id: number }
