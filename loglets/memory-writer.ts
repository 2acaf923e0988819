/**
 * The queue of an in-memory store, and its group commit: what was queued since the last turn of the
 * event loop becomes one group, is judged in queue order, and is told the outcome together. There
 * is no disk, so a group never fails and what is not queued any more is committed.
 *
 *     submit ──▶ waiting (no room) ──▶ queued ──▶ a group ──▶ settled
 *                   └────────── withdrawn ──────────────────────▲
 */
import { aborted, type LogError } from '../codec/errors.ts'
import { Histogram } from '../engine/histogram.ts'
import type { Metrics } from '../engine/metrics.ts'
import { onAbort } from '../engine/on-abort.ts'
import { queueFull } from './errors.ts'
import { IDLE_METRICS } from './idle-reports.ts'

/** Something to be done in queue order. */
export abstract class MemoryCommand {
  /** What it takes of the queue. */
  readonly bytes: number
  /** How many records it appends. */
  readonly records: number
  isSettled = false
  /** Told when the outcome is told. */
  onSettled: (() => void) | undefined
  /** Why it was refused, once it was judged. */
  refusal: LogError | undefined
  readonly #calledAt = performance.now()

  constructor(bytes: number, records: number) {
    this.bytes = bytes
    this.records = records
  }

  /** How long ago it was called, in nanoseconds. */
  get ageNanos(): number {
    return Math.round((performance.now() - this.#calledAt) * 1e6)
  }

  /** Does it, or returns why not. Nothing of it is told before `settle`. */
  abstract apply(): LogError | undefined
  protected abstract succeed(): void
  protected abstract reject(error: LogError): void

  settle(): void {
    if (this.refusal !== undefined) this.fail(this.refusal)
    else if (this.#settled()) this.succeed()
  }

  fail(error: LogError): void {
    if (this.#settled()) this.reject(error)
  }

  #settled(): boolean {
    if (this.isSettled) return false
    this.isSettled = true
    this.onSettled?.()
    return true
  }
}

/** Does what can be done with a promise: trims, seals, creations, deletions. */
export class StateCommand<T> extends MemoryCommand {
  readonly promise: Promise<T>
  readonly #judge: () => LogError | undefined
  readonly #result: () => T
  #resolve: ((value: T) => void) | undefined
  #reject: ((error: LogError) => void) | undefined

  constructor(judge: () => LogError | undefined, result: () => T) {
    super(0, 0)
    this.#judge = judge
    this.#result = result
    this.promise = new Promise<T>((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  apply(): LogError | undefined {
    return this.#judge()
  }

  protected succeed(): void {
    this.#resolve?.(this.#result())
  }

  protected reject(error: LogError): void {
    this.#reject?.(error)
  }
}

export interface MemoryLimits {
  readonly queueBytes: number
  readonly batchCommitCount: number
  readonly batchCommitBytes: number
}

/** Runs a function a little later: once everything that is ready now had its turn. */
export type Schedule = (run: () => void) => void

export class MemoryWriter {
  readonly #limits: MemoryLimits
  readonly #schedule: Schedule
  #queued: MemoryCommand[] = []
  #waiting: MemoryCommand[] = []
  #queuedBytes = 0
  #waitingBytes = 0
  #isScheduled = false
  /** Loglets that the group in formation changed; their watchers are told once it is done. */
  readonly #changed = new Set<() => void>()
  #appends = 0
  #trims = 0
  readonly #durations = new Histogram()
  readonly #counts = new Histogram()
  readonly #sizes = new Histogram()

  constructor(limits: MemoryLimits, schedule: Schedule) {
    this.#limits = limits
    this.#schedule = schedule
  }

  /** Queues a command; without room it waits, or fails with QUEUE_FULL. */
  submit(
    command: MemoryCommand,
    whenFull: 'wait' | 'reject' | undefined,
    signal: AbortSignal | undefined,
  ): void {
    if (signal?.aborted === true) return command.fail(aborted(signal))
    const hasRoom = this.#waiting.length === 0 && this.#fits(command)
    if (!hasRoom && whenFull === 'reject') return command.fail(queueFull(this.#limits.queueBytes))
    if (signal !== undefined) this.#watchAbort(command, signal)
    if (hasRoom) this.#admit(command)
    else this.#wait(command)
    this.#commitLater()
  }

  /** Does something in queue order, whatever the room. */
  perform<T>(judge: () => LogError | undefined, result: () => T): Promise<T> {
    const command = new StateCommand(judge, result)
    this.submit(command, 'wait', undefined)
    return command.promise
  }

  /** Called by loglets whose state changed in this group; `release` tells their watchers. */
  changed(release: () => void): void {
    this.#changed.add(release)
  }

  countTrim(): void {
    this.#trims++
  }

  /** Commits everything that was submitted, and shows everything that changed, now. */
  flush(): void {
    do this.#commitGroup()
    while (this.#queued.length > 0)
  }

  #fits(command: MemoryCommand): boolean {
    return this.#queued.length === 0 || this.#queuedBytes + command.bytes <= this.#limits.queueBytes
  }

  #admit(command: MemoryCommand): void {
    this.#queued.push(command)
    this.#queuedBytes += command.bytes
  }

  #wait(command: MemoryCommand): void {
    this.#waiting.push(command)
    this.#waitingBytes += command.bytes
  }

  #watchAbort(command: MemoryCommand, signal: AbortSignal): void {
    command.onSettled = onAbort(signal, () => command.fail(aborted(signal)))
  }

  #commitLater(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#schedule(() => {
      this.#isScheduled = false
      this.#commitGroup()
      if (this.#queued.length > 0) this.#commitLater()
    })
  }

  #commitGroup(): void {
    const group = this.#take()
    for (const command of group) command.refusal = command.apply()
    const releases = [...this.#changed]
    this.#changed.clear()
    this.#record(group)
    for (const release of releases) release()
    for (const command of group) command.settle()
  }

  /** The next commands, within the limits of a group, without those that were withdrawn. */
  #take(): MemoryCommand[] {
    let bytes = 0
    let count = 0
    for (const command of this.#queued) {
      if (count >= this.#limits.batchCommitCount) break
      if (count > 0 && bytes + command.bytes > this.#limits.batchCommitBytes) break
      bytes += command.bytes
      count++
    }
    const taken = this.#queued.splice(0, count)
    this.#queuedBytes -= bytes
    this.#admitWaiting()
    return taken.filter((command) => !command.isSettled)
  }

  #admitWaiting(): void {
    let admitted = 0
    for (const command of this.#waiting) {
      if (!command.isSettled) {
        if (!this.#fits(command)) break
        this.#admit(command)
      }
      this.#waitingBytes -= command.bytes
      admitted++
    }
    this.#waiting.splice(0, admitted)
  }

  #record(group: readonly MemoryCommand[]): void {
    let records = 0
    let bytes = 0
    for (const command of group) {
      if (command.refusal !== undefined || command.records === 0) continue
      records += command.records
      bytes += command.bytes
      this.#durations.record(command.ageNanos)
    }
    if (records === 0) return
    this.#appends += records
    this.#counts.record(records)
    this.#sizes.record(bytes)
  }

  metrics(): Metrics {
    return {
      ...IDLE_METRICS,
      bifrost_localloglet_appends_total: this.#appends,
      bifrost_localloglet_append_duration_seconds: this.#durations.snapshot(1e-9),
      bifrost_localloglet_write_batch_count: this.#counts.snapshot(),
      bifrost_localloglet_write_batch_size_bytes: this.#sizes.snapshot(),
      bifrost_localloglet_queue_bytes: this.#queuedBytes,
      bifrost_localloglet_waiting_bytes: this.#waitingBytes,
      bifrost_localloglet_trims_total: this.#trims,
    }
  }
}
