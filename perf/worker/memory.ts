/** A task that looks at what the process takes. */
import { setTimeout as sleep } from 'node:timers/promises'
import { fill } from './appends.ts'
import type { Session } from './session.ts'

export interface GrowthArguments {
  readonly records: number
  readonly size: number
  readonly callers: number
  /** The resident set is looked at after each so many records. */
  readonly every: number
  /** Whether somebody reads the log from its start, a record every few milliseconds. */
  readonly slowReader?: boolean | undefined
}

const SLOW_READ_MS = 10

/** Appends, and resolves with the resident set after each step, in bytes. */
export async function growth(session: Session, args: GrowthArguments): Promise<number[]> {
  const reader = args.slowReader === true ? slowReader(session) : undefined
  const sizes: number[] = []
  for (let done = 0; done < args.records; done += args.every) {
    await fill(session, { ...args, records: args.every })
    sizes.push(process.memoryUsage.rss())
  }
  await reader?.stop()
  return sizes
}

function slowReader(session: Session): { stop(): Promise<void> } {
  const reader = session.bifrost.reader(0, true)
  const reading = (async () => {
    while ((await reader.readNext()) !== undefined) await sleep(SLOW_READ_MS)
  })()
  return {
    stop: async () => {
      await reader.return()
      await reading
    },
  }
}
