/**
 * Judges a store against the model. Commands take effect in the order of their calls, and a crash
 * leaves a prefix of them, so whatever a store shows must be the world after some prefix: one that
 * holds every command that was acknowledged and everything that anybody saw, and none that was
 * rejected. All invariants about acks, order, gaps, batches, trims, seals and logs follow from it.
 *
 *     ├────────── settled ──────────┼──── seen ────┼─────── requested ───────┤
 *       told their outcome, durable   by a follower   may be there after a crash
 */
import { LogError, type LogErrorCode, type LogId } from '../../codec/errors.ts'
import type { Lsn } from '../../codec/offset.ts'
import {
  formatCommand,
  samePayload,
  shortPayload,
  tailOf,
  World,
  type Command,
  type ModelLog,
  type ModelRecord,
  type Outcome,
  type Target,
} from './explore-world.ts'

/** A promise of the store was broken. */
export class Violation extends Error {
  override readonly name = 'Violation'
}

export interface SeenRecord {
  readonly lsn: Lsn
  readonly payload: unknown
  readonly createdAt: bigint
}

/** A log as the store shows it. */
export interface SeenLog {
  readonly logId: LogId
  readonly loglet: number
  readonly tail: Lsn
  readonly trimPoint: Lsn
  readonly seal: { readonly reason: string | undefined } | undefined
  /** From the one after the trim point to the tail. */
  readonly records: readonly SeenRecord[]
  /** Records that can't be read, by an error that says so; both ends inclusive. */
  readonly unreadable?: readonly LsnRange[]
}

export interface LsnRange {
  readonly from: Lsn
  readonly to: Lsn
}

/** How far a log had come at some moment. */
export interface LogExtent {
  readonly incarnation: number
  readonly tail: Lsn
  readonly trimPoint: Lsn
  readonly isSealed: boolean
}

/** How far all logs had come. */
export type Extent = ReadonlyMap<LogId, LogExtent>

interface Issued {
  readonly command: Command
  /**
   * Applied: its outcome is settled and part of the world. Void: it did not happen and never will.
   * Unknown: its caller was told that nobody knows.
   */
  state: 'pending' | 'unknown' | 'applied' | 'void'
  predicted: Outcome | undefined
  isTold: boolean
}

/** Told at once, or with a promise that nothing was written. */
const NOTHING_HAPPENED: ReadonlySet<LogErrorCode> = new Set([
  'WRITE_FAILED',
  'QUEUE_FULL',
  'ABORTED',
  'CLOSED',
  'RECORD_TOO_LARGE',
  'BATCH_TOO_LARGE',
  'EMPTY_BATCH',
  'ENCODE_FAILED',
])
/** Judged in the order of the queue, and told once all before it is durable. */
const VERDICTS: ReadonlySet<LogErrorCode> = new Set(['SEALED', 'TAIL_MISMATCH', 'UNKNOWN_LOG'])

export class Oracle {
  #world = new World()
  readonly #issued: Issued[] = []
  /** Commands before this one are settled. */
  #settled = 0
  /** Commands before this one are durable: somebody saw what they did. */
  #seen = 0
  readonly #loglets = new Map<number, number>()
  readonly #usedLoglets = new Set<number>()
  /** Names of which a log was ever deleted. */
  readonly #deleted = new Set<LogId>()

  /** A copy that goes its own way. Nobody may have a call under way. */
  fork(): Oracle {
    const copy = new Oracle()
    copy.#world = this.#world.clone()
    copy.#issued.push(...this.#issued)
    copy.#settled = copy.#seen = this.#settled
    for (const [incarnation, loglet] of this.#loglets) copy.#loglets.set(incarnation, loglet)
    for (const loglet of this.#usedLoglets) copy.#usedLoglets.add(loglet)
    for (const logId of this.#deleted) copy.#deleted.add(logId)
    return copy
  }

  /** What is settled. */
  get world(): World {
    return this.#world
  }

  /** How many commands are settled or void. */
  get settledCount(): number {
    return this.#settled
  }

  get issuedCount(): number {
    return this.#issued.length
  }

  /** The log of this name as a call that is made now finds it. */
  target(logId: LogId): Target {
    return this.#world.logs.get(logId)?.incarnation
  }

  /** Behind all records of a log that are known to be there. */
  tailOf(logId: LogId): Lsn {
    const log = this.#world.logs.get(logId)
    return log === undefined ? 1 : tailOf(log)
  }

  /** Whether a log's deletion was called, and nobody knows yet whether it took place. */
  isPerhapsDeleted(logId: LogId): boolean {
    return this.#issued.some(({ command, state }) => {
      return command.kind === 'delete' && command.logId === logId && state === 'pending'
    })
  }

  /** The loglet of a log, if it was ever seen. */
  logletOf(logId: LogId): number | undefined {
    const incarnation = this.target(logId)
    return incarnation === undefined ? undefined : this.#loglets.get(incarnation)
  }

  /** A command is called; returns its number. One that the store must refuse at once is void. */
  issue(command: Command, isRefused: boolean): number {
    if (command.kind === 'delete') this.#deleted.add(command.logId)
    const state = isRefused ? 'void' : 'pending'
    this.#issued.push({ command, state, predicted: undefined, isTold: false })
    return this.#issued.length - 1
  }

  /** The command's promise was resolved: it is durable, and so is everything before it. */
  succeeded(number: number, value: unknown): void {
    this.#settleUpTo(number)
    this.#compareOutcome(number, { value })
  }

  /** The command's promise was rejected. */
  failed(number: number, error: unknown): void {
    const issued = this.#get(number)
    if (!(error instanceof LogError)) {
      this.#violate(`${this.#name(number)} was rejected with no LogError: ${String(error)}`)
    }
    const { code } = error
    issued.isTold = true
    if (issued.state === 'void') return
    if (VERDICTS.has(code) && !this.#isUnknownAtOnce(issued.command, code)) {
      this.#settleUpTo(number)
      this.#compareOutcome(number, error)
      return
    }
    const isNothing = NOTHING_HAPPENED.has(code) || code === 'UNKNOWN_LOG'
    if (!isNothing && code !== 'STORE_FAILED') {
      this.#violate(`${this.#name(number)} was rejected with ${code}: ${error.message}`)
    }
    if (issued.state === 'applied') {
      this.#violate(`${this.#name(number)} was rejected with ${code} after a later one was acked`)
    }
    issued.state = isNothing ? 'void' : 'unknown'
  }

  /** Nothing is queued for a log that was not there when the call was made. */
  #isUnknownAtOnce(command: Command, code: LogErrorCode): boolean {
    if (code !== 'UNKNOWN_LOG' || command.kind === 'create' || command.kind === 'delete') {
      return false
    }
    if (command.kind !== 'many') return command.target === undefined
    return command.entries.some(({ target }) => target === undefined)
  }

  #settleUpTo(number: number): void {
    for (; this.#settled <= number; this.#settled++) {
      const issued = this.#get(this.#settled)
      if (issued.state === 'void') continue
      if (issued.state === 'unknown') {
        this.#violate(
          `${this.#name(number)} was acked after ${this.#name(this.#settled)} met a failure`,
        )
      }
      issued.state = 'applied'
      issued.predicted = this.#world.apply(issued.command, this.#settled)
    }
  }

  #compareOutcome(number: number, told: Outcome): void {
    const issued = this.#get(number)
    issued.isTold = true
    if (issued.predicted === undefined) {
      this.#violate(`${this.#name(number)} was told ${format(told)} after it had failed`)
    }
    if (sameOutcome(issued.predicted, told)) return
    this.#violate(`${this.#name(number)} was told ${format(told)}, not ${format(issued.predicted)}`)
  }

  #get(number: number): Issued {
    const issued = this.#issued[number]
    if (issued === undefined) throw new RangeError(`There is no command ${number}`)
    return issued
  }

  #name(number: number): string {
    return `#${number} (${formatCommand(this.#get(number).command)})`
  }

  /** All promises must have been settled: the store was closed. */
  requireAllTold(): void {
    const silent = this.#issued.findIndex(({ isTold }) => !isTold)
    if (silent !== -1) this.#violate(`${this.#name(silent)} was never told its outcome`)
  }

  /** The process is gone: nobody will hear of what is pending. */
  forgetCallers(): void {
    for (const issued of this.#issued) issued.isTold = true
  }

  /**
   * A store was opened and read whole: what it shows is what is there from now on. Returns how many
   * commands took effect without anybody having been told.
   */
  reopened(seen: readonly SeenLog[]): number {
    const { world, prefix } = this.#match(seen)
    let untold = 0
    for (let i = this.#settled; i < this.#issued.length; i++) {
      const issued = this.#get(i)
      if (issued.state === 'void') continue
      issued.state = i < prefix ? 'applied' : 'void'
      if (i < prefix) untold++
    }
    this.#world = world
    this.#settled = this.#seen = this.#issued.length
    this.#learn(seen)
    return untold
  }

  /** What an open store shows must be the settled world, and nothing else. */
  requireSettled(seen: readonly SeenLog[]): void {
    const difference = this.#difference(this.#world, seen)
    if (difference !== undefined) this.#violate(difference)
    this.#learn(seen)
  }

  /** What another machine shows after a crash must be a legal outcome here. */
  requireLegal(seen: readonly SeenLog[]): void {
    this.#match(seen)
  }

  /** How far everything has come that is settled. */
  extent(): Extent {
    const logs = [...this.#world.logs.values()].map((log) => {
      const { incarnation, trimPoint, seal } = log
      const extent = { incarnation, tail: tailOf(log), trimPoint, isSealed: seal !== undefined }
      return [log.logId, extent] as const
    })
    return new Map(logs)
  }

  /** After damage: no log may have lost what it had in `extent`, and nothing may be wrong. */
  requireExtent(extent: Extent, seen: readonly SeenLog[]): void {
    for (const [logId, due] of extent) {
      const log = this.#world.logs.get(logId)
      if (log?.incarnation !== due.incarnation) continue
      const found = seen.find((candidate) => candidate.logId === logId)
      if (found === undefined) this.#violate(`damage made the log ${logId} go, and nobody says so`)
      const problem = extentProblem(due, found)
      if (problem !== undefined) this.#violate(`damage was not noticed: ${logId}: ${problem}`)
    }
    this.requireRight(seen)
  }

  /** No record may be another one than was appended there. */
  requireRight(seen: readonly SeenLog[]): void {
    for (const { logId, loglet, records } of seen) {
      const log = this.#world.logs.get(logId)
      // Damage may have brought an earlier log of the name back, with what that had.
      if (log === undefined || this.#loglets.get(log.incarnation) !== loglet) continue
      const wrong = records.find(
        ({ lsn, payload }) => !samePayload(payload, log.records[lsn - 1]?.payload ?? ''),
      )
      if (wrong !== undefined && wrong.lsn < tailOf(log)) {
        this.#violate(`damage gave ${logId} another record ${wrong.lsn}`)
      }
    }
  }

  #match(seen: readonly SeenLog[]): { readonly world: World; readonly prefix: number } {
    const world = this.#world.clone()
    const required = Math.max(this.#seen, this.#settled)
    let prefix = this.#settled
    for (; prefix < required; prefix++) this.#replay(world, prefix)
    const first = this.#difference(world, seen)
    if (first === undefined) return { world, prefix }
    for (; prefix < this.#issued.length; prefix++) {
      if (!this.#replay(world, prefix)) continue
      if (this.#difference(world, seen) === undefined) return { world, prefix: prefix + 1 }
    }
    const last = this.#difference(world, seen)
    return this.#violate(`no prefix fits. By what is due: ${first}. By all requests: ${last}`)
  }

  /** Applies a pending command; false if it is void. */
  #replay(world: World, number: number): boolean {
    const { command, state } = this.#get(number)
    if (state === 'void') return false
    world.apply(command, number)
    return true
  }

  #learn(seen: readonly SeenLog[]): void {
    for (const { logId, loglet, records } of seen) {
      const log = this.#world.logs.get(logId) as ModelLog
      this.#loglets.set(log.incarnation, loglet)
      this.#usedLoglets.add(loglet)
      for (const { lsn, createdAt } of records) recordAt(log, lsn).createdAt = createdAt
    }
  }

  /** The first way in which a store is not this world. */
  #difference(world: World, seen: readonly SeenLog[]): string | undefined {
    const expected = [...world.logs.keys()].join(' ')
    const found = seen.map(({ logId }) => logId).join(' ')
    if (expected !== found) return `the logs are [${found}], not [${expected}]`
    for (const log of seen) {
      const difference = this.#logDifference(world.logs.get(log.logId) as ModelLog, log)
      if (difference !== undefined) return `${log.logId}: ${difference}`
    }
    return undefined
  }

  #logDifference(log: ModelLog, seen: SeenLog): string | undefined {
    if (seen.tail !== tailOf(log)) return `the tail is ${seen.tail}, not ${tailOf(log)}`
    if (seen.trimPoint !== log.trimPoint) {
      return `the trim point is ${seen.trimPoint}, not ${log.trimPoint}`
    }
    if (!sameSeal(seen.seal, log.seal)) {
      return `the seal is ${JSON.stringify(seen.seal)}, not ${JSON.stringify(log.seal)}`
    }
    return this.#logletProblem(log, seen.loglet) ?? recordsProblem(log, seen)
  }

  #logletProblem({ incarnation }: ModelLog, loglet: number): string | undefined {
    const known = this.#loglets.get(incarnation)
    if (known === loglet) return undefined
    if (known !== undefined) return `its loglet is ${loglet}, and was ${known}`
    return this.#usedLoglets.has(loglet) ? `loglet ${loglet} is used a second time` : undefined
  }

  /** A reader of an open store got a record. */
  sawRecord(logId: LogId, incarnation: number, { lsn, payload, createdAt }: SeenRecord): void {
    const log = this.#world.logs.get(logId)
    // Who reads a log while it is deleted may still get what it had.
    if (log?.incarnation !== incarnation) return
    const record = log.records[lsn - 1]
    if (record === undefined || !samePayload(payload, record.payload)) {
      const due = record === undefined ? 'which nobody was told of' : shortPayload(record.payload)
      this.#violate(`a reader of ${logId} saw ${shortPayload(payload)} at ${lsn}, not ${due}`)
    }
    const before = log.records[lsn - 2]?.createdAt
    if (before !== undefined && before > createdAt) {
      this.#violate(`${logId}: the time goes back at ${lsn}`)
    }
    record.createdAt ??= createdAt
  }

  /** A reader of an open store got a trim gap. */
  sawGap(logId: LogId, incarnation: number, until: Lsn): void {
    const log = this.#world.logs.get(logId)
    if (log?.incarnation !== incarnation || until <= log.trimPoint) return
    this.#violate(`a reader of ${logId} saw it trimmed up to ${until}, not ${log.trimPoint}`)
  }

  /** A reader came to an end after which nothing comes. */
  sawSealedEnd(logId: LogId, incarnation: number): void {
    const log = this.#world.logs.get(logId)
    if (log?.incarnation !== incarnation || log.seal !== undefined) return
    this.#violate(`a reader of ${logId} ended though the log is not sealed`)
  }

  /** A reader learned that its log was deleted. */
  sawDeleted(logId: LogId, incarnation: number): void {
    if (this.#world.logs.get(logId)?.incarnation !== incarnation) return
    this.#violate(`a reader of ${logId} was told that there is no such log`)
  }

  /** A follower shows this log so: it must be durable, though nobody may have been told yet. */
  followerSaw(seen: SeenLog): void {
    const known = [...this.#loglets].find(([, loglet]) => loglet === seen.loglet)?.[0]
    const current = this.#world.logs.get(seen.logId)?.incarnation
    // It may be behind a delete, also that of a log that was never looked at.
    const isBehind = known === undefined ? this.#deleted.has(seen.logId) : known !== current
    if (isBehind) return
    const shows = (world: World): boolean => contains(world.logs.get(seen.logId), seen)
    const tails = `tail ${seen.tail}, trim point ${seen.trimPoint}`
    this.#require(shows, `a follower shows ${seen.logId} with ${tails} and other records`)
  }

  /** A follower showed a log, and doesn't any more. */
  followerMisses(logId: LogId, loglet: number): void {
    const isGone = (world: World): boolean => {
      const incarnation = world.logs.get(logId)?.incarnation
      return incarnation === undefined || this.#loglets.get(incarnation) !== loglet
    }
    this.#require(isGone, `a follower misses ${logId}, which nobody deleted`)
  }

  /** Notes how far the commands must be durable for this to be so. */
  #require(holds: (world: World) => boolean, problem: string): void {
    if (holds(this.#world)) return
    const world = this.#world.clone()
    for (let i = this.#settled; i < this.#issued.length; i++) {
      if (!this.#replay(world, i) || !holds(world)) continue
      this.#seen = Math.max(this.#seen, i + 1)
      return
    }
    this.#violate(problem)
  }

  #violate(what: string): never {
    throw new Violation(what)
  }

  /** The last commands and what became of them. */
  describe(lines: number): string {
    const from = Math.max(0, this.#issued.length - lines)
    const shown = this.#issued.slice(from).map((issued, i) => {
      const mark = from + i < this.#settled ? '' : ' …'
      return `  ${issued.state.padEnd(8)}${mark} ${this.#name(from + i)}`
    })
    return shown.join('\n')
  }
}

function recordAt(log: ModelLog, lsn: Lsn): ModelRecord {
  const record = log.records[lsn - 1]
  if (record === undefined) throw new RangeError(`There is no record ${lsn}`)
  return record
}

function recordsProblem(log: ModelLog, seen: SeenLog): string | undefined {
  const { unreadable = [] } = seen
  const skip = (lsn: Lsn): Lsn => {
    const range = unreadable.find(({ from, to }) => from <= lsn && lsn <= to)
    return range === undefined ? lsn : skip(range.to + 1)
  }
  let next = skip(log.trimPoint + 1)
  let time = log.records[log.trimPoint - 1]?.createdAt ?? 0n
  for (const { lsn, payload, createdAt } of seen.records) {
    const due = next
    next = skip(lsn + 1)
    if (lsn !== due) return `record ${lsn} comes where ${due} is due`
    const record = recordAt(log, lsn)
    if (!samePayload(payload, record.payload)) {
      return `record ${lsn} is ${shortPayload(payload)}, not ${shortPayload(record.payload)}`
    }
    if (createdAt < time) return `the time goes back at ${lsn}`
    if ((record.createdAt ?? createdAt) !== createdAt) return `the time of ${lsn} has changed`
    time = createdAt
  }
  return next === tailOf(log) ? undefined : `the records end before ${next}`
}

function extentProblem(due: LogExtent, found: SeenLog): string | undefined {
  if (found.tail < due.tail) return `the tail is ${found.tail}, and was ${due.tail}`
  if (found.trimPoint < due.trimPoint) return `the trim point is ${found.trimPoint}`
  return due.isSealed && found.seal === undefined ? 'the seal is gone' : undefined
}

/** Whether a log has come as far as it was seen to be, with the records that were seen. */
function contains(log: ModelLog | undefined, seen: SeenLog): boolean {
  if (log === undefined || tailOf(log) < seen.tail || log.trimPoint < seen.trimPoint) return false
  if (seen.seal !== undefined && !sameSeal(seen.seal, log.seal)) return false
  return seen.records.every(({ lsn, payload }) => samePayload(payload, recordAt(log, lsn).payload))
}

function sameSeal(a: SeenLog['seal'], b: SeenLog['seal']): boolean {
  return a === undefined || b === undefined ? a === b : a.reason === b.reason
}

function sameOutcome(a: Outcome, b: Outcome): boolean {
  if ('code' in a && 'code' in b) {
    return a.code === b.code && a.tail === b.tail && a.reason === b.reason
  }
  if ('code' in a || 'code' in b) return false
  return JSON.stringify(a.value) === JSON.stringify(b.value)
}

function format(outcome: Outcome): string {
  if (!('code' in outcome))
    return outcome.value === undefined ? 'done' : JSON.stringify(outcome.value)
  const { code, tail, reason } = outcome
  return JSON.stringify({ code, tail, reason })
}
