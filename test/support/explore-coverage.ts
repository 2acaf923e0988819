/** Counts what explorations have met, so that a suite can show that it met everything it is about. */

/** What lives and crashes must meet. */
export const LIFE_MILESTONES = [
  'opened',
  'opened after a clean close',
  'crashed while opening',
  'crashed while closing',
  'lost its power',
  'was killed',
  'open refused',
  'rolled',
  'rolled to a segment prepared ahead',
  'rolled to a segment prepared on demand',
  'torn bytes dropped',
  'group torn',
  'group of many frames torn',
  'unacked group kept',
  'no room',
  'put back',
  'rescued in place',
  'rescued in the reserve',
  'store failed',
  'read after a failure',
  'verdict',
  'withdrawn',
  'queue full',
  'unknown log',
  'log deleted',
  'segment freed',
  'reader saw a record',
  'reader saw a gap',
  'follower saw a record',
  'follower stepped',
  'follower outlived the writer',
  'probed',
  'R1',
  'R2',
  'R3',
  'R5',
  'R9',
] as const

/** What damage must meet. */
export const DAMAGE_MILESTONES = [
  'opened after damage',
  'refused',
  'read refused',
  'last group lost',
  'metadata rebuilt',
  'R4',
  'R6',
  'R7',
  'R8',
] as const

/** What repairs must meet. */
export const REPAIR_MILESTONES = [
  'repaired',
  'crashed in repair',
  'repair refused',
  'loss gap',
] as const

export type Milestone = (
  typeof LIFE_MILESTONES | typeof DAMAGE_MILESTONES | typeof REPAIR_MILESTONES
)[number]

const ALL: ReadonlySet<string> = new Set([
  ...LIFE_MILESTONES,
  ...DAMAGE_MILESTONES,
  ...REPAIR_MILESTONES,
])

export class Coverage {
  readonly #counts = new Map<string, number>()

  hit(milestone: Milestone): void {
    this.#counts.set(milestone, this.count(milestone) + 1)
  }

  count(milestone: string): number {
    return this.#counts.get(milestone) ?? 0
  }

  /** What was not met. */
  missing(milestones: readonly Milestone[]): Milestone[] {
    return milestones.filter((milestone) => this.count(milestone) === 0)
  }

  toString(): string {
    const entries = [...this.#counts].sort(([a], [b]) => (a < b ? -1 : 1))
    return entries.map(([name, count]) => `${name} ${count}`).join(', ')
  }
}

/** Whether a text names something to be met. */
export function isMilestone(text: string): text is Milestone {
  return ALL.has(text)
}
