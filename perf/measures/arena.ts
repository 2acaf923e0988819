/** Where sides take turns: it starts their processes, lets one work at a time, and cleans up. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { StoreSpec } from '../stores/store.ts'
import type { BenchOptions } from '../support/arguments.ts'
import { byteSize, percent } from '../support/figures.ts'
import { mostSpent, readProfile } from '../support/profile.ts'
import type { Report } from '../support/report.ts'
import { removeFiles, type Scratch } from '../support/scratch.ts'
import { Side } from '../worker/side.ts'

/** For what a side does after its answer: closing files, freeing blocks, a journal commit. */
const SETTLE_MS = 50
const MOST_LEAD_MS = 100
const PROFILE_ROWS = 20

export type Contents = Omit<StoreSpec, 'dir'>

export class Arena {
  readonly options: BenchOptions
  readonly report: Report
  readonly scratch: Scratch
  /** Each with the path of its CPU profile, if one is taken. */
  readonly #sides = new Map<Side, string | undefined>()
  #profiles = 0

  constructor(options: BenchOptions, report: Report, scratch: Scratch) {
    this.options = options
    this.report = report
    this.scratch = scratch
  }

  /** How long a side works in one round. */
  get roundMs(): number {
    return (this.options.seconds * 1000) / this.options.rounds
  }

  /** How long it works before anything is counted in a round. */
  get leadMs(): number {
    return Math.min(MOST_LEAD_MS, this.roundMs / 4)
  }

  /** A number of records, fewer if the run is a quick one. */
  records(count: number): number {
    return Math.ceil(count / this.options.shrink)
  }

  /** A path for a store, in which there is nothing yet. */
  freshDir(name: string): string {
    return this.scratch.fresh(fileName(name))
  }

  /** Starts a process and opens a store in it: a new one, unless there is one in the directory. */
  async enter(name: string, contents: Contents, dir = this.freshDir(name)): Promise<Side> {
    const side = this.start(name, contents, dir)
    await side.ask('open')
    return side
  }

  /** Starts a process that is to open a store. */
  start(name: string, contents: Contents, dir: string): Side {
    const profile = this.options.profile ? this.#profilePath(name) : undefined
    const side = new Side(name, { ...contents, dir }, profile)
    this.#sides.set(side, profile)
    return side
  }

  /**
   * Lets each side work once in every round, the order being turned around every time. There is one
   * round more than is counted, in which everybody gets warm. Resolves with the results of each side.
   */
  async takeTurns<S, R>(
    sides: readonly S[],
    work: (side: S, round: number) => Promise<R>,
  ): Promise<R[][]> {
    const results = sides.map((): R[] => [])
    const order = sides.map((side, index) => ({ side, index }))
    for (let round = -1; round < this.options.rounds; round++) {
      this.report.progress(`round ${Math.max(0, round + 1)} of ${this.options.rounds}`)
      for (const { side, index } of round % 2 === 0 ? order : order.toReversed()) {
        await sleep(SETTLE_MS)
        const result = await work(side, round)
        if (round >= 0) results[index]?.push(result)
      }
    }
    return results
  }

  /** Ends every process, and removes what they have stored. */
  async clear(): Promise<void> {
    const sides = [...this.#sides]
    this.#sides.clear()
    for (const [side, profile] of sides) {
      await side.stop()
      if (profile !== undefined) this.#reportProfile(side.name, profile)
    }
    removeFiles(this.scratch.dir)
    this.scratch.make()
  }

  #profilePath(name: string): string {
    const file = `${++this.#profiles}-${fileName(name)}.cpuprofile`
    return this.report.path(file)
  }

  #reportProfile(name: string, path: string): void {
    const rows = mostSpent(readProfile(path), PROFILE_ROWS).map((spent) => [
      spent.where,
      percent(spent.share),
    ])
    this.report.table(`What ${name} spent its CPU time on`, ['Function, itself', 'Share'], rows)
  }

  /** Ends every process, whatever it has open. */
  async abandon(): Promise<void> {
    await Promise.all([...this.#sides.keys()].map((side) => side.abandon()))
    this.scratch.remove()
  }
}

function fileName(name: string): string {
  return name.replaceAll(/[^a-z0-9]+/gi, '-')
}

/** '256 callers, 100 B' */
export function caseName(callers: number, size: number): string {
  return `${callers} ${callers === 1 ? 'caller' : 'callers'}, ${byteSize(size)}`
}
