/**
 * A store against a trivial model: random sequences of everything that changes or reads logs, each
 * answer compared with what arrays in memory say. A failure prints its seed and its commands.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { LogError, type LogErrorCode, type LogId } from '../../codec/errors.ts'
import type { Keys } from '../../codec/record.ts'
import type { Bifrost } from '../../loglets/bifrost.ts'
import type { LogRecord } from '../../loglets/log-record.ts'
import type { LogReader } from '../../loglets/read-stream.ts'

/** What is tested: a store, and perhaps a way to close it and open it again. */
export interface ModelStore {
  bifrost: Bifrost
  /** Puts what was opened again into `bifrost`. Absent if nothing outlives a close. */
  readonly reopen?: () => Promise<void>
  readonly dispose: () => Promise<void>
}

interface ModelRecord {
  readonly payload: unknown
  readonly keys: Keys
}

/** One incarnation of a log. */
interface ModelLog {
  readonly records: ModelRecord[]
  trimPoint: number
  seal: { readonly reason: string | undefined } | undefined
}

interface ModelReader {
  readonly log: ModelLog
  next: number
  /** What every later call gives, once it is over: the first reason wins. */
  final: Expected | undefined
}

interface Model {
  readonly logs: Map<LogId, ModelLog>
  readonly readers: ModelReader[]
}

interface Real {
  readonly store: ModelStore
  readonly readers: LogReader<LogRecord>[]
}

type Command = fc.AsyncCommand<Model, Real>
type Expected =
  { readonly value: unknown } | { readonly code: LogErrorCode; readonly tail?: number }

const LOG_IDS = ['a', '../b', '🦉']
const KEYS = ['x', 'y']

async function outcome(promise: Promise<unknown>): Promise<Expected> {
  try {
    return { value: await promise }
  } catch (error) {
    assert.ok(error instanceof LogError, String(error))
    const isAboutTail = LogError.is(error, 'TAIL_MISMATCH') || LogError.is(error, 'SEALED')
    return isAboutTail ? { code: error.code, tail: error.tail } : { code: error.code }
  }
}

function tailOf(log: ModelLog): number {
  return log.records.length + 1
}

/** What a tail's state is expected to be. */
function tailState(log: ModelLog): unknown {
  const lsn = tailOf(log)
  const last = lsn - 1 > log.trimPoint ? lsn - 1 : undefined
  return { sealed: log.seal !== undefined, reason: log.seal?.reason, lsn, last }
}

/** Why an append of one log is refused, if it is. */
function refusal(
  log: ModelLog | undefined,
  expectedTail: number | undefined,
): Expected | undefined {
  if (log === undefined) return { code: 'UNKNOWN_LOG' }
  const tail = tailOf(log)
  if (log.seal !== undefined) return { code: 'SEALED', tail }
  if (expectedTail !== undefined && expectedTail !== tail) return { code: 'TAIL_MISMATCH', tail }
  return undefined
}

/** `off` is how far the expected tail is from the right one; undefined for no expectation. */
interface Append {
  readonly logId: LogId
  readonly records: readonly ModelRecord[]
  readonly off: number | undefined
}

function expectedTail({ logs }: Model, { logId, off }: Append): number | undefined {
  const log = logs.get(logId)
  return off === undefined ? undefined : Math.max(1, (log ? tailOf(log) : 1) + off)
}

/** What an append is expected to give, and does to the model. */
function applyAppend(model: Model, append: Append, tail: number | undefined): Expected {
  const log = model.logs.get(append.logId)
  const refused = refusal(log, tail)
  if (refused !== undefined || log === undefined) return refused ?? { code: 'UNKNOWN_LOG' }
  const first = tailOf(log)
  log.records.push(...append.records)
  return { value: first }
}

function callAppend({ store }: Real, append: Append, tail: number | undefined): Promise<number> {
  const { logId, records } = append
  const [record] = records
  const options = tail === undefined ? {} : { expectedTail: tail }
  if (record !== undefined && records.length === 1) {
    return store.bifrost.append(logId, record.payload, { ...options, keys: record.keys })
  }
  const keys = (_payload: unknown, index: number): Keys => records[index]?.keys ?? []
  const payloads = records.map(({ payload }) => payload)
  return store.bifrost.appendBatch(logId, payloads, { ...options, keys })
}

/** Appends of one tick, to any logs: answered as if they had come one after the other. */
class AppendBurst implements Command {
  readonly #appends: readonly Append[]

  constructor(appends: readonly Append[]) {
    this.#appends = appends
  }

  check(): boolean {
    return true
  }

  async run(model: Model, real: Real): Promise<void> {
    const expected: Expected[] = []
    const calls: Promise<Expected>[] = []
    for (const append of this.#appends) {
      const tail = expectedTail(model, append)
      calls.push(outcome(callAppend(real, append, tail)))
      expected.push(applyAppend(model, append, tail))
    }
    assert.deepEqual(await Promise.all(calls), expected)
  }

  toString(): string {
    const appends = this.#appends.map(({ logId, records, off }) => [logId, records.length, off])
    return `append ${JSON.stringify(appends)}`
  }
}

class AppendMany implements Command {
  readonly #entries: readonly Append[]

  constructor(entries: readonly Append[]) {
    this.#entries = entries
  }

  check(): boolean {
    return true
  }

  async run(model: Model, { store }: Real): Promise<void> {
    const { draft, entries, expected } = this.#judge(model)
    const call = outcome(store.bifrost.appendMany(entries))
    assert.deepEqual(await call, expected)
    if ('code' in expected) return
    for (const [logId, records] of draft) model.logs.get(logId)?.records.push(...records)
  }

  #judge(model: Model) {
    const draft = new Map<LogId, ModelRecord[]>()
    const lsns: number[] = []
    let refused: Expected | undefined
    const entries = this.#entries.map((entry) => {
      const { logId, records, off } = entry
      const [{ payload, keys }] = records as [ModelRecord]
      const log = model.logs.get(logId)
      const added = draft.get(logId) ?? []
      const next = (log ? tailOf(log) : 1) + added.length
      const wanted = off === undefined ? undefined : Math.max(1, next + off)
      const isMismatch = wanted !== undefined && wanted !== next
      const tail = isMismatch ? 0 : undefined
      refused ??= refusal(log, tail)
      lsns.push(next)
      draft.set(logId, [...added, { payload, keys }])
      return { logId, payload, keys, expectedTail: wanted }
    })
    const unknown = this.#entries.some(({ logId }) => !model.logs.has(logId))
    const expected = unknown ? { code: 'UNKNOWN_LOG' as const } : (refused ?? { value: lsns })
    return { draft, entries, expected }
  }

  toString(): string {
    return `appendMany ${JSON.stringify(this.#entries.map(({ logId, off }) => [logId, off]))}`
  }
}

/** A command on one log with one number. */
abstract class LogCommand implements Command {
  readonly logId: LogId
  readonly number: number

  constructor(logId: LogId, number: number) {
    this.logId = logId
    this.number = number
  }

  check(): boolean {
    return true
  }

  abstract run(model: Model, real: Real): Promise<void>

  toString(): string {
    return `${this.constructor.name} ${this.logId} ${this.number}`
  }
}

class Create extends LogCommand {
  async run({ logs }: Model, { store }: Real): Promise<void> {
    await store.bifrost.createLog(this.logId)
    if (!logs.has(this.logId)) {
      logs.set(this.logId, { records: [], trimPoint: 0, seal: undefined })
    }
    assert.deepEqual(store.bifrost.logIds(), [...logs.keys()])
  }
}

class Delete extends LogCommand {
  async run({ logs, readers }: Model, { store }: Real): Promise<void> {
    const log = logs.get(this.logId)
    const found = await outcome(store.bifrost.deleteLog(this.logId))
    assert.deepEqual(found, log ? { value: undefined } : { code: 'UNKNOWN_LOG' })
    if (log === undefined) return
    for (const reader of readers) {
      if (reader.log === log) reader.final ??= { code: 'UNKNOWN_LOG' }
    }
    logs.delete(this.logId)
    assert.deepEqual(store.bifrost.logIds(), [...logs.keys()])
  }
}

class Trim extends LogCommand {
  async run({ logs }: Model, { store }: Real): Promise<void> {
    const log = logs.get(this.logId)
    const found = await outcome(store.bifrost.trim(this.logId, this.number))
    if (log === undefined) {
      assert.deepEqual(found, { code: 'UNKNOWN_LOG' })
      return
    }
    log.trimPoint = Math.max(log.trimPoint, Math.min(this.number, log.records.length))
    assert.deepEqual(found, { value: log.trimPoint })
  }
}

class Seal extends LogCommand {
  async run({ logs }: Model, { store }: Real): Promise<void> {
    const log = logs.get(this.logId)
    const reason = this.number % 2 === 0 ? undefined : `reason ${this.number}`
    const found = await outcome(store.bifrost.seal(this.logId, reason))
    if (log === undefined) {
      assert.deepEqual(found, { code: 'UNKNOWN_LOG' })
      return
    }
    log.seal ??= { reason }
    assert.deepEqual(found, { value: tailState(log) })
  }
}

class Ask extends LogCommand {
  async run({ logs }: Model, { store }: Real): Promise<void> {
    const log = logs.get(this.logId)
    const tail = await outcome(store.bifrost.findTail(this.logId))
    const trimPoint = await outcome(store.bifrost.getTrimPoint(this.logId))
    const unknown = { code: 'UNKNOWN_LOG' }
    assert.deepEqual(tail, log ? { value: tailState(log) } : unknown)
    assert.deepEqual(trimPoint, log ? { value: log.trimPoint } : unknown)
  }
}

/** Reads everything from an LSN on, with a filter on every other number. */
class ReadAll extends LogCommand {
  async run({ logs }: Model, { store }: Real): Promise<void> {
    const wanted = this.number % 2 === 0 ? undefined : ['x']
    const options = { from: this.number + 1, follow: false, keys: wanted }
    const found = await outcome(collect(store.bifrost.createReader(this.logId, options)))
    const log = logs.get(this.logId)
    if (log === undefined) {
      assert.deepEqual(found, { code: 'UNKNOWN_LOG' })
      return
    }
    if (log.seal !== undefined && this.number + 1 > tailOf(log)) {
      assert.deepEqual(found, { code: 'INVALID_LSN' })
      return
    }
    assert.deepEqual(found, { value: expectedRecords(log, this.number + 1, wanted) })
  }
}

function expectedRecords(log: ModelLog, from: number, wanted: Keys | undefined): unknown[] {
  const all: unknown[] = []
  const isGap = from <= log.trimPoint
  if (isGap) all.push({ kind: 'trim-gap', lsn: from, until: log.trimPoint })
  for (let lsn = Math.max(from, log.trimPoint + 1); lsn < tailOf(log); lsn++) {
    const { payload, keys } = log.records[lsn - 1] as ModelRecord
    const matches = wanted === undefined || keys.length === 0
    if (matches || keys.some((key) => wanted.includes(key))) all.push({ lsn, payload, keys })
  }
  return all
}

async function collect(reader: LogReader<LogRecord>): Promise<unknown[]> {
  const all: unknown[] = []
  let createdAt = 0n
  for await (const record of reader) {
    all.push(comparable(record))
    if (record.kind !== 'data') continue
    assert.ok(record.createdAt >= createdAt, 'createdAt never decreases')
    createdAt = record.createdAt
  }
  return all
}

function comparable(record: LogRecord): unknown {
  if (record.kind !== 'data') return record
  const { lsn, payload, keys } = record
  return { lsn, payload, keys }
}

/** Makes a reader that lives on while the log changes. */
class OpenReader extends LogCommand {
  async run({ logs, readers }: Model, real: Real): Promise<void> {
    const log = logs.get(this.logId)
    if (log === undefined || readers.length >= 8) return
    readers.push({ log, next: this.number + 1, final: undefined })
    real.readers.push(real.store.bifrost.createReader(this.logId, { from: this.number + 1 }))
  }
}

/** Takes what a living reader gives at once: data, one gap, nothing, or why it is over. */
class StepReader extends LogCommand {
  async run({ readers }: Model, real: Real): Promise<void> {
    if (readers.length === 0) return
    const at = this.number % readers.length
    const expected = readers[at] as ModelReader
    const found = await outcome((real.readers[at] as LogReader<LogRecord>).readNextOpt())
    expected.final ??= sealedOutcome(expected)
    if (expected.final === undefined) checkStep(expected, found)
    else assert.deepEqual(found, expected.final)
  }
}

function sealedOutcome({ log, next }: ModelReader): Expected | undefined {
  if (log.seal === undefined || next < tailOf(log)) return undefined
  return next === tailOf(log) ? { value: undefined } : { code: 'INVALID_LSN' }
}

function checkStep(expected: ModelReader, found: Expected): void {
  const { log, next } = expected
  assert.ok('value' in found)
  const read = found.value as LogRecord | undefined
  if (read === undefined) {
    assert.ok(next >= tailOf(log), 'nothing although there is')
    return
  }
  assert.equal(read.lsn, next)
  if (read.kind === 'data') {
    // What was read before a trim may still be given out after it.
    const { payload: data, keys } = log.records[next - 1] as ModelRecord
    assert.deepEqual(comparable(read), { lsn: next, payload: data, keys })
  } else {
    assert.ok(read.until >= next && read.until <= log.trimPoint)
  }
  expected.next = (read.kind === 'data' ? read.lsn : read.until) + 1
}

class Reopen extends LogCommand {
  async run({ logs, readers }: Model, { store }: Real): Promise<void> {
    if (store.reopen === undefined) return
    await store.reopen()
    for (const reader of readers) reader.final ??= { code: 'CLOSED' }
    assert.deepEqual(store.bifrost.logIds(), [...logs.keys()])
  }
}

const payload = fc.oneof(
  fc.integer(),
  fc.string({ unit: 'grapheme', maxLength: 20 }),
  fc.uint8Array({ maxLength: 300 }),
  fc.record({ id: fc.nat(), text: fc.string() }, { noNullPrototype: true }),
)
const record: fc.Arbitrary<ModelRecord> = fc.record({ payload, keys: fc.subarray(KEYS) })
const logId = fc.constantFrom(...LOG_IDS)
const off = fc.option(fc.constantFrom(0, 0, 0, -1, 1), { nil: undefined })
const append = fc.record({ logId, off, records: fc.array(record, { minLength: 1, maxLength: 5 }) })
const entry = fc.record({ logId, off, records: fc.tuple(record) })

function onLog(make: new (logId: LogId, number: number) => Command): fc.Arbitrary<Command> {
  return fc.tuple(logId, fc.nat({ max: 30 })).map(([id, number]) => new make(id, number))
}

function burst(maxLength: number): fc.Arbitrary<Command> {
  return fc.array(append, { minLength: 1, maxLength }).map((appends) => new AppendBurst(appends))
}

const many = fc
  .array(entry, { minLength: 1, maxLength: 6 })
  .map((entries): Command => new AppendMany(entries))

const COMMANDS: fc.Arbitrary<Command>[] = [
  burst(8),
  burst(3),
  many,
  onLog(Create),
  onLog(Create),
  onLog(Trim),
  onLog(Ask),
  onLog(ReadAll),
  onLog(OpenReader),
  onLog(StepReader),
  onLog(StepReader),
  onLog(Reopen),
  // Rarely, because they end much.
  fc.oneof({ weight: 4, arbitrary: onLog(Ask) }, { weight: 1, arbitrary: onLog(Delete) }),
  fc.oneof({ weight: 4, arbitrary: onLog(Ask) }, { weight: 1, arbitrary: onLog(Seal) }),
]

/** Runs random commands against what `open` opens, once for each run. */
export function runModelTest(
  name: string,
  open: () => Promise<ModelStore>,
  { numRuns = 100, maxCommands = 60 }: { numRuns?: number; maxCommands?: number } = {},
): void {
  test(`${name} store agrees with a trivial model`, async () => {
    const commands = fc.commands(COMMANDS, { maxCommands, size: 'max' })
    await fc.assert(
      fc.asyncProperty(commands, async (sequence) => {
        const store = await open()
        try {
          const model: Model = { logs: new Map(), readers: [] }
          await fc.asyncModelRun(() => ({ model, real: { store, readers: [] } }), sequence)
          for (const id of LOG_IDS) await new ReadAll(id, 0).run(model, { store, readers: [] })
        } finally {
          await store.dispose()
        }
      }),
      { numRuns },
    )
  })
}
