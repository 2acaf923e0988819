/** Tasks that look at what the process takes. */
import { setTimeout as sleep } from 'node:timers/promises'
import { processBytes } from '../support/machine.ts'
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
    for await (const _record of reader) await sleep(SLOW_READ_MS)
  })()
  return {
    stop: async () => {
      await reader.return()
      await reading
    },
  }
}

export interface Usage {
  readonly rss: number
  readonly written: number
  readonly read: number
}

/** What this process holds, and has moved from and to the device so far. */
export function usage(): Usage {
  return { rss: process.memoryUsage.rss(), ...processBytes() }
}
