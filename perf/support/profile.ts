/** What a CPU profile of V8 says, in a few lines. */
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'

export interface Profile {
  readonly nodes: readonly {
    readonly id: number
    readonly callFrame: {
      readonly functionName: string
      readonly url: string
      readonly lineNumber: number
    }
  }[]
  /** The node that was found at each sample, and the microseconds since the one before. */
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

export interface Spent {
  readonly where: string
  /** Of the time in which the thread was not idle. */
  readonly share: number
}

/** What the profiler calls a thread that waits. */
const IDLE = '(idle)'

export function readProfile(path: string): Profile {
  return JSON.parse(readFileSync(path, 'utf8')) as Profile
}

/** The functions that took the most time themselves, without what they called. */
export function mostSpent(profile: Profile, count: number): Spent[] {
  const micros = new Map<string, number>()
  const places = new Map(profile.nodes.map((node) => [node.id, placeOf(node.callFrame)]))
  profile.samples.forEach((id, index) => {
    const where = places.get(id) ?? '(unknown)'
    micros.set(where, (micros.get(where) ?? 0) + (profile.timeDeltas[index] ?? 0))
  })
  micros.delete(IDLE)
  const total = [...micros.values()].reduce((sum, value) => sum + value, 0)
  return [...micros]
    .map(([where, spent]) => ({ where, share: spent / total }))
    .sort((a, b) => b.share - a.share)
    .slice(0, count)
}

/** 'append log-store.js:120'; '(garbage collector)' and the like stand as they are. */
function placeOf({ functionName, url, lineNumber }: Profile['nodes'][number]['callFrame']): string {
  const name = functionName === '' ? '(anonymous)' : functionName
  return url === '' ? name : `${name} ${basename(url)}:${lineNumber + 1}`
}
