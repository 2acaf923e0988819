/** What a plan makes fail, and so whether a failure has an excuse. */
import type { PlannedFault } from './explore-plan.ts'
import type { FaultPlan, Injection, Operation, OperationKind } from './faults.ts'

/** What can be cut short. */
const WRITES: readonly OperationKind[] = ['write', 'commit', 'commitSync']

export class Troubles {
  readonly #faults: FaultPlan
  readonly #isSmallDisk: boolean
  #armed: Injection[] = []
  /** What was met in this life by faults that are not armed any more. */
  #hits = 0
  #wasFaulty = false

  constructor(faults: FaultPlan, isSmallDisk: boolean) {
    this.#faults = faults
    this.#isSmallDisk = isSmallDisk
  }

  /** Whether something was made to fail in this life. */
  get isFaulty(): boolean {
    return this.#hits + this.#armedHits > 0
  }

  /** Whether something was ever made to fail. */
  get wasFaulty(): boolean {
    return this.#wasFaulty || this.isFaulty
  }

  /** Whether nothing was ever made to fail, and there was always room. */
  get isWell(): boolean {
    return !this.wasFaulty && !this.#isSmallDisk
  }

  /** Whether a command may fail: something was made to, or there may be no room. */
  get isExcused(): boolean {
    return this.isFaulty || this.#isSmallDisk
  }

  get isSmallDisk(): boolean {
    return this.#isSmallDisk
  }

  get #armedHits(): number {
    return this.#armed.reduce((sum, { hits }) => sum + hits, 0)
  }

  /** Another process takes over: what failed before is no excuse for it. */
  nextLife(): void {
    this.#wasFaulty = this.wasFaulty
    this.#hits = 0
  }

  arm(faults: readonly PlannedFault[], from: PlannedFault['from']): void {
    const due = faults.filter((fault) => fault.from === from)
    this.#armed.push(...due.map((fault) => this.#arm(fault)))
  }

  #arm({ nth, kinds, pathEnd, fault, isSticky }: PlannedFault): Injection {
    let seen = 0
    const matches = ({ kind, path }: Operation): boolean => {
      // An open that fails leaves no descriptor behind.
      if (kind === 'open' && fault.afterEffect === true) return false
      if (fault.short === true && !WRITES.includes(kind)) return false
      if (kinds?.includes(kind) === false || !path.endsWith(pathEnd ?? '')) return false
      seen++
      return isSticky ? seen >= nth : seen === nth
    }
    return this.#faults.fail(matches, fault, isSticky ? Infinity : 1)
  }

  disarm(): void {
    this.#hits += this.#armedHits
    for (const fault of this.#armed) fault.remove()
    this.#armed = []
  }
}
