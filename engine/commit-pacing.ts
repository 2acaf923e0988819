/**
 * Decides when the next group is formed, by what the last ones took.
 *
 * With few appends the disk is what takes time: the next group waits until everybody who was
 * acknowledged has appended again, so that one sync serves all of them. With many, the callers'
 * own work between an acknowledgement and the next append takes as long as the sync. Then the
 * disk and the callers should not wait for each other: the callers are split into two halves, and
 * while the group of one half is written, the other half appends. That costs one sync more for
 * all of them, so it pays once their work takes longer than what a sync takes however few bytes.
 *
 *     one group:   ▒▒▒▒ callers ▒▒▒▒│████ sync ████│▒▒▒▒ callers ▒▒▒▒│████ sync ████│
 *     two halves:  ▒▒ A ▒▒│▒▒ B ▒▒│▒▒ A ▒▒│▒▒ B ▒▒│▒▒ A ▒▒│
 *                         │█ A ██│█ B ██│█ A ██│█ B ██│
 */

/** Fewer commands than this in a group are never split. */
const MIN_COMMANDS = 96
/** Splitting begins when the callers take so many times a sync of few bytes, and ends below. */
const SPLIT_FROM = 1.2
const SPLIT_UNTIL = 0.85
/** What a byte takes at least: what is left of a sync's time is what any sync takes. */
const MS_PER_BYTE = 1 / 1.5e6
/** How much the newest measurement counts. */
const WEIGHT = 0.1

export class CommitPacing {
  #syncMs = 0
  #callerMs = 0
  #lastCommands = 0
  #commands = 0
  #isSplit = false

  /** Whether the next group goes out at once if anything is queued when one has landed. */
  get isSplit(): boolean {
    return this.#isSplit
  }

  /** How many queued commands are enough for a group when nothing is in flight. */
  get enough(): number {
    return this.#isSplit ? Math.max(1, Math.ceil(this.#commands / 2)) : Number.POSITIVE_INFINITY
  }

  /** A group of `commands` and `bytes` was written and synced in `commitMs`. */
  landed(commands: number, bytes: number, commitMs: number): void {
    this.#syncMs = average(this.#syncMs, Math.max(0, commitMs - bytes * MS_PER_BYTE))
    this.#lastCommands = this.#commands
    this.#commands = commands
  }

  /** Those who were acknowledged have done what they do next; it took `callersMs` together. */
  resumed(callersMs: number): void {
    if (this.#commands === 0) return
    this.#callerMs = average(this.#callerMs, callersMs / this.#commands)
    const all = this.#isSplit ? this.#commands + this.#lastCommands : this.#commands
    const share = (all * this.#callerMs) / Math.max(this.#syncMs, Number.MIN_VALUE)
    this.#isSplit = all >= MIN_COMMANDS && share > (this.#isSplit ? SPLIT_UNTIL : SPLIT_FROM)
  }
}

function average(known: number, newest: number): number {
  return known === 0 ? newest : known + WEIGHT * (newest - known)
}
