/**
 * Gives space back: finds the oldest segments in which nothing is needed any more, says so in a
 * durable frame, and only then unlinks them. What was meant to be unlinked and could not be is
 * tried again on the next occasion, and at the next open.
 */
import type { Background } from './background.ts'
import { indexPath, segmentPath } from './file-names.ts'
import type { FileSystem } from './file-system.ts'
import { unlinkIfThere } from './index-file.ts'
import type { SegmentIndex } from './segment-index.ts'
import type { SegmentSet } from './segment-set.ts'
import type { LogletCell, StoreState } from './store-state.ts'

export interface DeadSegmentsOptions {
  readonly fileSystem: FileSystem
  readonly dir: string
  readonly background: Background
  readonly state: StoreState
  readonly segments: SegmentSet
  /** Makes durable that the segments up to one are dead. */
  readonly declare: (last: number) => Promise<void>
  /** Room was made. */
  readonly onFreed: () => void
}

/** Whether a loglet has records, in the segment of an index, that are not trimmed. */
export function needsSegment({ facts }: LogletCell, index: SegmentIndex): boolean {
  const runs = index.find(facts.id)
  if (runs === undefined || runs.count === 0) return false
  return runs.endTail - 1 > facts.trimPoint
}

export class DeadSegments {
  readonly #options: DeadSegmentsOptions
  /** A loglet that keeps the oldest segment alive: while it does, nothing else is looked at. */
  #keeper: { readonly segment: number; readonly loglet: number } | undefined
  #isRunning = false
  #isWanted = false
  #isStopped = false
  readonly #toUnlink = new Set<number>()

  constructor(options: DeadSegmentsOptions) {
    this.#options = options
  }

  /** Something was trimmed or deleted, or a segment is no longer the tail. */
  look(): void {
    this.#isWanted = true
    if (this.#isRunning || this.#isStopped) return
    this.#isRunning = true
    this.#options.background.run('Giving space back', async () => {
      try {
        while (this.#takeWish()) await this.#collect()
      } finally {
        this.#isRunning = false
      }
    })
  }

  #takeWish(): boolean {
    const isWanted = this.#isWanted && !this.#isStopped
    this.#isWanted = false
    return isWanted
  }

  async #collect(): Promise<void> {
    const last = await this.#lastDead()
    if (last !== undefined) {
      await this.#options.declare(last)
      for (const { segment } of await this.#options.segments.drop(last)) this.#toUnlink.add(segment)
    }
    await this.#unlinkDead()
  }

  /** The last of the oldest segments that are dead without a gap; the tail never is. */
  async #lastDead(): Promise<number | undefined> {
    let last: number | undefined
    for (const { segment } of this.#options.segments.live.slice(0, -1)) {
      if (!(await this.#isDead(segment))) break
      last = segment
    }
    return last
  }

  async #isDead(segment: number): Promise<boolean> {
    const { state, segments } = this.#options
    const { index, damagedAt } = await segments.index(segment)
    // What is behind damage may be needed: only a repair may give it up.
    if (damagedAt !== undefined) return false
    if (this.#keeper?.segment === segment) {
      const cell = state.cell(this.#keeper.loglet)
      if (cell !== undefined && needsSegment(cell, index)) return false
    }
    for (const cell of state.cells()) {
      if (!needsSegment(cell, index)) continue
      this.#keeper = { segment, loglet: cell.facts.id }
      return false
    }
    return true
  }

  async #unlinkDead(): Promise<void> {
    if (this.#toUnlink.size === 0) return
    const { fileSystem, dir } = this.#options
    for (const segment of [...this.#toUnlink].sort((a, b) => a - b)) {
      await unlinkIfThere(fileSystem, segmentPath(dir, segment))
      await unlinkIfThere(fileSystem, indexPath(dir, segment))
      this.#toUnlink.delete(segment)
    }
    await fileSystem.syncDirectory(dir)
    this.#options.onFreed()
  }

  /** Starts nothing new. */
  stop(): void {
    this.#isStopped = true
  }
}
