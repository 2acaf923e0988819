/**
 * Decides what happens next in a simulation. Operations of the file system and timers wait here;
 * one generator picks which of them goes on. Nothing else may interleave, so a seed replays
 * exactly. Time is what the scheduler says: it passes a little with every step, and jumps to the
 * next timer when nothing else can happen.
 *
 * An operation is a generator: it takes effect step by step, and between two steps others may take
 * theirs. Whoever called it hears of it only after its last step.
 */
import assert from 'node:assert/strict'
import { errorCode } from './fs-error.ts'
import type { FaultPlan, Operation } from './faults.ts'
import type { Random } from './random.ts'

/** Whoever calls operations and sets timers. Nothing reaches one that is dead. */
export interface Owner {
  readonly isAlive: boolean
}

export type Steps<T> = Generator<undefined, T, undefined>

export interface Task<T = unknown> {
  readonly owner: Owner
  readonly operation: Operation
  readonly steps: Steps<T>
  resolve(value: T): void
  reject(error: Error): void
}

type Outcome = { readonly value: unknown } | { readonly error: Error }

interface Waiting {
  readonly task: Task
  isStarted: boolean
  /** How often it is passed over while others can go on. */
  patience: number
  /** Set when it took its last step and its caller doesn't know yet. */
  outcome: Outcome | undefined
}

interface Timer {
  readonly owner: Owner
  readonly dueUs: number
  readonly callback: () => void
}

/** Rejects what runs when the simulated machine or process crashes. */
export class SimCrash extends Error {
  override readonly name = 'SimCrash'
}

/** Every so many operations one is slow, to be overtaken by many. */
const ONE_IN_SLOW = 16
const SLOW_PATIENCE = 20
const MAX_STEP_US = 200
/** Turns of the event loop without anything to do before time is moved on. */
const IDLE_TURNS = 3
const MAX_RUN_STEPS = 5_000_000

/** A Monday in 2026, so that times in traces look like times. */
const START_US = Date.UTC(2026, 0, 5) * 1000

export class SimScheduler {
  readonly #random: Random
  readonly #faults: FaultPlan
  /** Called before the first step of each; true if that crashed it. */
  readonly #crashes: (operation: Operation) => boolean
  #waiting: Waiting[] = []
  #timers: Timer[] = []
  #nowUs = START_US
  #steps = 0
  #isRunning = false
  #crash: SimCrash | undefined

  constructor(random: Random, faults: FaultPlan, crashes: (operation: Operation) => boolean) {
    this.#random = random
    this.#faults = faults
    this.#crashes = crashes
  }

  get nowMs(): number {
    return Math.floor(this.#nowUs / 1000)
  }

  /** Moves the clock, also back; timers keep their distance. */
  jump(ms: number): void {
    this.#nowUs += ms * 1000
    this.#timers = this.#timers.map((timer) => ({ ...timer, dueUs: timer.dueUs + ms * 1000 }))
  }

  /** The operations that are called and have not ended. */
  get pending(): readonly Operation[] {
    return this.#waiting.map(({ task }) => task.operation)
  }

  get timerCount(): number {
    return this.#timers.length
  }

  add<T>(task: Task<T>): void {
    this.#waiting.push(waitingFor(task, this.#random.below(ONE_IN_SLOW) === 0 ? SLOW_PATIENCE : 0))
  }

  /** Takes all steps of an operation now; those that are under way may take some of theirs. */
  runNow<T>(task: Task<T>): T {
    const waiting = waitingFor(task, 0)
    this.#waiting.push(waiting)
    if (this.#crashes(task.operation)) throw new SimCrash('The process crashed in this call')
    this.#waiting.pop()
    this.#advanceSome()
    while (waiting.outcome === undefined) this.#takeStep(waiting)
    if ('error' in waiting.outcome) throw waiting.outcome.error
    return waiting.outcome.value as T
  }

  addTimer(owner: Owner, callback: () => void, ms: number): object {
    const timer = { owner, callback, dueUs: this.#nowUs + Math.max(1, ms) * 1000 }
    if (owner.isAlive) this.#timers.push(timer)
    return timer
  }

  clearTimer(timer: unknown): void {
    this.#timers = this.#timers.filter((candidate) => candidate !== timer)
  }

  /**
   * Lets operations and timers happen until the promise settles; settles as it does. Rejects with
   * SimCrash if a crash comes first, and with an error that tells why if nothing can go on.
   */
  async run<T>(promise: Promise<T>, describe: () => string): Promise<T> {
    assert(!this.#isRunning, 'Only one thing can be run at a time')
    this.#isRunning = true
    this.#crash = undefined
    try {
      return await this.#runUntilSettled(promise, describe)
    } finally {
      this.#isRunning = false
    }
  }

  async #runUntilSettled<T>(promise: Promise<T>, describe: () => string): Promise<T> {
    const progress = { isSettled: false }
    const settle = (): void => {
      progress.isSettled = true
    }
    promise.then(settle, settle)
    const limit = this.#steps + MAX_RUN_STEPS
    for (let idle = 0; ; idle++) {
      await turn()
      // A crash may have come from a call that was made in this turn.
      if (this.#crash !== undefined) throw this.#crash as Error
      if (progress.isSettled) return promise
      if (this.#advance()) idle = 0
      else if (idle >= IDLE_TURNS && !this.#fireTimer(Infinity)) {
        throw new Error(`Nothing can go on, and the promise is not settled\n${describe()}`)
      }
      if (this.#steps > limit) throw new Error(`Still running after many steps\n${describe()}`)
    }
  }

  /**
   * What was under way when the owners died took some of its steps or all, and nobody will hear of
   * it. Their timers never fire.
   */
  crash(reason: string): void {
    const dying = this.#waiting.filter(({ task }) => !task.owner.isAlive)
    this.#waiting = this.#waiting.filter(({ task }) => task.owner.isAlive)
    this.#timers = this.#timers.filter(({ owner }) => owner.isAlive)
    for (const waiting of this.#random.shuffled(dying)) {
      while (waiting.outcome === undefined && this.#random.chance(0.6)) this.#takeStep(waiting)
      this.#faults.end(waiting.task.operation, 'crash')
    }
    if (this.#isRunning) this.#crash = new SimCrash(reason)
  }

  /** Takes steps until somebody may have been woken; false if there was no step to take. */
  #advance(): boolean {
    for (;;) {
      const ready = this.#waiting.filter(({ task }) => !this.#faults.isHeld(task.operation))
      const isTimerDue = this.#timers.some((timer) => timer.dueUs <= this.#nowUs)
      if (ready.length === 0) return isTimerDue && this.#fireTimer(this.#nowUs)
      if (isTimerDue && this.#random.below(ready.length + 1) === 0) {
        return this.#fireTimer(this.#nowUs)
      }
      if (this.#goOn(this.#pick(ready))) return true
    }
  }

  #pick(ready: readonly Waiting[]): Waiting {
    for (;;) {
      const waiting = this.#random.pick(ready)
      if (ready.length === 1 || waiting.patience === 0) return waiting
      waiting.patience -= 1
    }
  }

  /** One step of one operation; true if its caller was told, or died. */
  #goOn(waiting: Waiting): boolean {
    if (!waiting.isStarted && this.#crashes(waiting.task.operation)) return true
    if (waiting.outcome === undefined) this.#takeStep(waiting)
    if (waiting.outcome === undefined) return false
    this.#waiting.splice(this.#waiting.indexOf(waiting), 1)
    if ('error' in waiting.outcome) waiting.task.reject(waiting.outcome.error)
    else waiting.task.resolve(waiting.outcome.value)
    return true
  }

  #takeStep(waiting: Waiting): void {
    waiting.isStarted = true
    this.#steps += 1
    this.#nowUs += this.#random.between(1, MAX_STEP_US)
    const { operation, steps } = waiting.task
    try {
      const { done, value } = steps.next()
      if (done !== true) return
      waiting.outcome = { value }
      this.#faults.end(operation, typeof value === 'number' ? String(value) : 'ok')
    } catch (error) {
      assert(error instanceof Error)
      if (error instanceof assert.AssertionError) throw error
      waiting.outcome = { error }
      this.#faults.end(operation, errorCode(error))
    }
  }

  #advanceSome(): void {
    for (const waiting of this.#random.shuffled(this.#waiting)) {
      const isUnderWay = waiting.isStarted && waiting.outcome === undefined
      if (!isUnderWay || this.#faults.isHeld(waiting.task.operation)) continue
      if (this.#random.chance(0.25)) this.#takeStep(waiting)
    }
  }

  /** Fires the earliest timer that is due by then; time moves on to it. */
  #fireTimer(byUs: number): boolean {
    const [first] = [...this.#timers].sort((a, b) => a.dueUs - b.dueUs)
    if (first === undefined || first.dueUs > byUs) return false
    this.#timers.splice(this.#timers.indexOf(first), 1)
    this.#nowUs = Math.max(this.#nowUs, first.dueUs)
    this.#steps += 1
    first.callback()
    return true
  }
}

function waitingFor(task: Task, patience: number): Waiting {
  return { task, patience, isStarted: false, outcome: undefined }
}

/** Lets all that was woken run: promises, ticks, and immediates that were set before. */
function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}
