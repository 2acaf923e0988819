/**
 * The process of one side of a comparison: it has one store open and does what its parent asks, so
 * that no side suffers from another one's garbage, threads or shapes. Run by side.ts.
 */
import type { StoreSpec } from '../stores/store.ts'
import { Session } from './session.ts'
import { TASKS, type Outcome, type Question, type TaskName } from './tasks.ts'

const session = new Session(JSON.parse(process.argv[2] as string) as StoreSpec)

process.on('message', (question: Question) => void answer(question))
process.once('disconnect', () => process.exit(1))

async function answer({ id, task, args }: Question): Promise<void> {
  const said = await outcomeOf(task, args)
  // Its garbage is gone before another side begins.
  globalThis.gc?.()
  process.send?.({ id, ...said })
}

async function outcomeOf(task: TaskName, args: unknown): Promise<Outcome> {
  try {
    const run = TASKS[task] as (session: Session, args: unknown) => unknown
    return { result: await run(session, args) }
  } catch (error) {
    return { error: error instanceof Error ? (error.stack ?? error.message) : String(error) }
  }
}
