/** Kills a child over and over on one store, and holds what it left against the model. */
import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import type { RecoveryReport } from '../../index.ts'
import { wholeLines } from '../../perf/main-job/whole-lines.ts'
import { asModel, type DumpedLog } from './kill-dump.ts'
import { ModelStore } from './kill-model.ts'
import type { KillMode, KillOp, KillResult } from './kill-ops.ts'

/** When the child is killed: some time after it was started, or after it has opened the store. */
export interface KillMoment {
  readonly after: 'start' | 'state'
  readonly ms: number
}

interface Found {
  readonly recovery: RecoveryReport
  readonly logs: readonly DumpedLog[]
}

const CHILD = fileURLToPath(new URL('./kill-child.js', import.meta.url))
/** A child that hangs is killed after this long. */
const TIMEOUT_MS = 120_000
/** Operations of different children never share a number. */
const OPS_PER_CHILD = 1_000_000

export class KillRun {
  readonly counts: Map<string, number> = new Map<string, number>()
  readonly #dir: string
  #model = new ModelStore()
  /** What was called since the store was last seen, in the order of the calls. */
  #called: KillOp[] = []
  #results = new Map<number, KillResult>()
  /** Operations whose records a reader got: readers see what is durable, and nothing else. */
  readonly #seen = new Set<number>()
  #children = 0
  /** Whether the last child had closed the store before it ended. */
  #isClosed = false

  constructor(dir: string) {
    this.#dir = dir
  }

  /** Runs a child that loads the store until it is killed, or has closed it before. */
  async load(moment: KillMoment, seed: number, mode: 'load' | 'close' = 'load'): Promise<void> {
    const child = this.#spawn(mode, seed)
    const kill = (): void => void setTimeout(() => child.kill('SIGKILL'), moment.ms)
    if (moment.after === 'start') kill()
    const hasOpened = await this.#follow(child, () => {
      if (moment.after === 'state') kill()
    })
    assert.ok(hasOpened || moment.after === 'start', 'the child did not open the store in time')
    if (this.#isClosed) this.#count('closed before the kill')
    else if (mode === 'close') this.#count('kills around a close')
    else this.#count(moment.after === 'state' ? 'kills under load' : 'kills while opening')
  }

  /** Runs a child that opens the store and dies without closing it. */
  async open(): Promise<void> {
    await this.#follow(this.#spawn('open', 0), () => undefined)
    this.#count('deaths after recovery')
  }

  #spawn(mode: KillMode, seed: number): ChildProcess {
    this.#children++
    const firstOp = this.#children * OPS_PER_CHILD
    const args = ['--enable-source-maps', CHILD, this.#dir, mode, String(firstOp), String(seed)]
    return spawn(process.execPath, args, {
      stdio: ['ignore', 'ignore', 'inherit', 'pipe'],
      timeout: TIMEOUT_MS,
      killSignal: 'SIGKILL',
    })
  }

  /** Listens until the child is gone; resolves with whether it has opened the store. */
  async #follow(child: ChildProcess, onState: () => void): Promise<boolean> {
    let hasOpened = false
    // One that dies before it tells what it found may have written by then: opening gives space back.
    const wasClosed = this.#isClosed
    this.#isClosed = false
    const ended = new Promise<NodeJS.Signals | null>((resolve, reject) => {
      child.once('error', reject)
      child.once('exit', (_code, signal) => resolve(signal))
    })
    for await (const line of wholeLines(child.stdio[3] as Readable)) {
      const [word, rest] = cut(line)
      if (word === 'call') this.#called.push(JSON.parse(rest) as KillOp)
      else if (word === 'done') this.#take(rest)
      else if (word === 'seen') this.#seen.add(Number(rest))
      else if (word === 'closed') this.#isClosed = true
      else {
        this.settle(JSON.parse(rest) as Found, wasClosed)
        hasOpened = true
        onState()
      }
    }
    const signal = await ended
    const mayEnd = this.#isClosed && signal === null
    assert.ok(mayEnd || signal === 'SIGKILL', 'the child ended by itself; its message is above')
    return hasOpened
  }

  #take(rest: string): void {
    const [n, json] = cut(rest)
    this.#results.set(Number(n), JSON.parse(json) as KillResult)
    this.#count(isSuccess(this.#results.get(Number(n))) ? 'acknowledged' : 'refused')
  }

  /**
   * The store was opened: it must be the model after a prefix of what was called, and everything
   * that was acknowledged must be in that prefix.
   */
  settle({ recovery, logs }: Found, wasClosed = this.#isClosed): void {
    assert.equal(recovery.metadataRebuilt, false, 'a killed process leaves sound metadata')
    if (wasClosed) assert.deepEqual(recovery.findings, [], 'a closed store needs no recovery')
    for (const { label } of recovery.findings) this.#count(`${label} found`)
    const found = asModel(logs)
    const model = this.#model
    // What was refused by a store that was being closed was never queued.
    const called = this.#called.filter(({ n }) => !isClosed(this.#results.get(n)))
    const acknowledged = called.findLastIndex(
      ({ n }) => this.#seen.has(n) || isSuccess(this.#results.get(n)),
    )
    let done = 0
    while (done <= acknowledged || model.summary() !== found.summary()) {
      const op = called[done++]
      if (op === undefined) this.#fail(found, acknowledged)
      this.#apply(op)
    }
    for (const [name, log] of model.logs) {
      assert.deepEqual(found.logs.get(name)?.records, log.records, `the records of ${name}`)
    }
    this.#count('called', called.length)
    this.#count('there without an acknowledgement', done - 1 - acknowledged)
    this.#count('seen by readers', this.#seen.size)
    this.#called = []
    this.#results.clear()
    this.#seen.clear()
  }

  #apply(op: KillOp): void {
    const expected = this.#model.apply(op)
    const result = this.#results.get(op.n)
    if (result !== undefined) assert.deepEqual(result, expected, `outcome of ${JSON.stringify(op)}`)
    this.#count(`${op.kind} kept`)
  }

  #fail(found: ModelStore, acknowledged: number): never {
    const near = this.#called.slice(Math.max(0, acknowledged - 3), acknowledged + 4)
    assert.fail(
      `The store is not the model after any prefix of the calls that holds all acknowledgements.
Found:\n${found.summary()}\nThe model after all calls:\n${this.#model.summary()}
Calls around the last acknowledged one:\n${near.map((op) => JSON.stringify(op)).join('\n')}`,
    )
  }

  #count(what: string, by = 1): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + by)
  }

  /** The bytes of each segment file, without the zeros behind them. */
  segments(): Map<string, Buffer> {
    const names = readdirSync(this.#dir).filter((name) => name.endsWith('.segment'))
    return new Map(names.map((name) => [name, withoutZeros(readFileSync(join(this.#dir, name)))]))
  }
}

function withoutZeros(bytes: Buffer): Buffer {
  let end = bytes.length
  while (end > 0 && bytes[end - 1] === 0) end--
  return bytes.subarray(0, end)
}

function isClosed(result: KillResult | undefined): boolean {
  return (
    typeof result === 'object' && result !== null && 'code' in result && result.code === 'CLOSED'
  )
}

function isSuccess(result: KillResult | undefined): boolean {
  if (result === undefined) return false
  return !(typeof result === 'object' && result !== null && 'code' in result)
}

/** The first word, and the rest. */
function cut(line: string): [string, string] {
  const at = line.includes(' ') ? line.indexOf(' ') : line.length
  return [line.slice(0, at), line.slice(at + 1)]
}
