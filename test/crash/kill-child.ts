/**
 * The process that is killed, over and over, on one store. It opens the store, says what it found,
 * and then does random things from several workers until it is killed: that is the mode 'load'. In
 * mode 'close' it closes the store in the middle, and ends if it was not killed before. In mode
 * 'open' it kills itself at once.
 *
 *     state {JSON}      the store as it was found
 *     call {JSON}       an operation, just before it is called
 *     done <n> <JSON>   what it resolved with, or the code of its rejection
 *     seen <n>          a reader got a record of the operation
 *     closed            the store is closed
 *
 * Arguments: directory, mode, number of the first operation, seed.
 */
import { writeSync } from 'node:fs'
import { Bifrost, LogError, type Entry } from '../../index.ts'
import { Random } from '../support/random.ts'
import { dumpStore } from './kill-dump.ts'
import {
  payloadOf,
  type KillMode,
  type KillOp,
  type KillPayload,
  type KillResult,
} from './kill-ops.ts'
import { KILL_STORE } from './kill-store.ts'

const LEDGER = 3
const WORKERS = 24
const NAMES = Array.from({ length: 14 }, (_, i) => `log ${i}`)
const LEAST_LOGS = 6
const FOLLOWED_LOGS = 3

/** The load before a close lasts at most this long. */
const MAX_LOAD_MS = 200

type Arguments = [dir: string, mode: KillMode, firstOp: string, seed: string]
const [dir, mode, firstOp, seed] = process.argv.slice(2) as Arguments

/** Writes at once: what is told here outlives a kill in the next instruction. */
function tell(line: string): void {
  writeSync(LEDGER, `${line}\n`)
}

class Workload {
  readonly #bifrost: Bifrost
  readonly #random: Random
  /** Logs that certainly exist: their creation was acknowledged and no deletion was called. */
  readonly #live: string[]
  readonly #sealed = new Set<string>()
  readonly #busyNames = new Set<string>()
  readonly #lastLsn = new Map<string, number>()
  #nextOp: number

  constructor(bifrost: Bifrost, random: Random, nextOp: number) {
    this.#bifrost = bifrost
    this.#random = random
    this.#nextOp = nextOp
    this.#live = [...bifrost.logIds()]
  }

  /** Makes sure that there are enough logs; then several workers do what chance tells them. */
  async run(): Promise<void> {
    while (this.#live.length < LEAST_LOGS && this.#bifrost.status === 'open') await this.#step()
    await Promise.all(Array.from({ length: WORKERS }, () => this.#work()))
  }

  async #work(): Promise<void> {
    while (this.#bifrost.status === 'open') await this.#step()
  }

  /** Nothing comes between telling of the call and the call: the ledger has the order of calls. */
  async #step(): Promise<void> {
    const op = this.#choose(this.#nextOp++)
    tell(`call ${JSON.stringify(op)}`)
    const result = await this.#call(op).catch(codeOf)
    tell(`done ${op.n} ${JSON.stringify(result)}`)
    this.#learn(op, result)
  }

  #choose(n: number): KillOp {
    const random = this.#random
    const free = NAMES.filter((name) => !this.#live.includes(name) && !this.#busyNames.has(name))
    const wantsLog = this.#live.length < LEAST_LOGS || random.chance(0.01)
    if (free.length > 0 && wantsLog) return this.#chooseCreate(n, random.pick(free))
    const log = this.#pickLog()
    const dice = random.below(1000)
    if (dice < 550) return { kind: 'append', n, log, count: 1 }
    if (dice < 800) return { kind: 'append', n, log, count: random.between(2, 9) }
    if (dice < 930) return { kind: 'many', n, logs: this.#severalLogs() }
    if (dice < 985) return { kind: 'trim', n, log, upTo: this.#trimPoint(log) }
    if (dice < 988) return { kind: 'seal', n, log, reason: `by ${n}` }
    if (this.#live.length > LEAST_LOGS) return this.#chooseDelete(n, log)
    return { kind: 'append', n, log, count: 1 }
  }

  /** Mostly one that is not sealed. */
  #pickLog(): string {
    const log = this.#random.pick(this.#live)
    return this.#sealed.has(log) && this.#random.chance(0.9) ? this.#random.pick(this.#live) : log
  }

  #severalLogs(): string[] {
    return Array.from({ length: this.#random.between(2, 5) }, () => this.#pickLog())
  }

  /** Mostly close to the tail, so that the store stays small; sometimes far past it. */
  #trimPoint(log: string): number {
    const last = this.#lastLsn.get(log) ?? 1
    return Math.max(1, this.#random.chance(0.1) ? last + 1000 : last - this.#random.below(60))
  }

  #chooseCreate(n: number, log: string): KillOp {
    this.#busyNames.add(log)
    return { kind: 'create', n, log }
  }

  #chooseDelete(n: number, log: string): KillOp {
    this.#live.splice(this.#live.indexOf(log), 1)
    this.#busyNames.add(log)
    return { kind: 'delete', n, log }
  }

  async #call(op: KillOp): Promise<KillResult> {
    switch (op.kind) {
      case 'append':
        if (op.count === 1) return this.#bifrost.append(op.log, payloadOf(op.n, 0))
        return this.#bifrost.appendBatch(op.log, payloads(op.n, op.count))
      case 'many':
        return this.#bifrost.appendMany(entries(op.n, op.logs))
      case 'trim':
        return this.#bifrost.trim(op.log, op.upTo)
      case 'seal':
        return (await this.#bifrost.seal(op.log, op.reason)).lsn
      case 'create':
        await this.#bifrost.createLog(op.log)
        return null
      case 'delete':
        await this.#bifrost.deleteLog(op.log)
        return null
    }
  }

  #learn(op: KillOp, result: KillResult): void {
    if (op.kind === 'append' && typeof result === 'number') {
      this.#lastLsn.set(op.log, result + op.count - 1)
    } else if (op.kind === 'create') {
      this.#busyNames.delete(op.log)
      this.#lastLsn.delete(op.log)
      this.#sealed.delete(op.log)
      this.#live.push(op.log)
    } else if (op.kind === 'delete') this.#busyNames.delete(op.log)
    else if (op.kind === 'seal') this.#sealed.add(op.log)
  }
}

function payloads(n: number, count: number): unknown[] {
  return Array.from({ length: count }, (_, i) => payloadOf(n, i))
}

function entries(n: number, logs: readonly string[]): Entry[] {
  return logs.map((logId, i) => ({ logId, payload: payloadOf(n, i) }))
}

function codeOf(error: unknown): KillResult {
  if (error instanceof LogError) return { code: error.code }
  throw error
}

async function close(): Promise<void> {
  await bifrost.close()
  tell('closed')
}

/** Follows a log from its tail on, until the log is deleted or the store closed. */
async function follow(log: string): Promise<void> {
  const { lsn: from } = await bifrost.findTail(log)
  for await (const record of bifrost.createReader<KillPayload>(log, { from })) {
    if (record.kind === 'data') tell(`seen ${record.payload.n}`)
  }
}

const random = new Random(Number(seed))
const bifrost = await Bifrost.open({
  dir,
  ...KILL_STORE,
  commitMode: random.chance(0.3) ? 'inline' : 'async',
  batchCommitDelayMs: random.chance(0.2) ? 2 : 0,
})
tell(`state ${JSON.stringify({ recovery: bifrost.recovery, logs: await dumpStore(bifrost) })}`)
if (mode === 'open') process.kill(process.pid, 'SIGKILL')
if (mode === 'close') setTimeout(() => void close(), random.below(MAX_LOAD_MS))
for (const log of bifrost.logIds().slice(0, FOLLOWED_LOGS)) follow(log).catch(codeOf)
await new Workload(bifrost, random, Number(firstOp)).run()
