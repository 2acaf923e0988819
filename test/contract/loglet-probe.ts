/** What the loglet contract is asked through: a provider that a suite opens, and short questions. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { LogError, LogId } from '../../codec/errors.ts'
import { MAX_POSITION, type Offset } from '../../codec/offset.ts'
import { decodeRecord, type Keys, type StoredRecord } from '../../codec/record.ts'
import type { StoreOptions } from '../../engine/options.ts'
import type {
  Loglet,
  LogletAppendOptions,
  LogletReadOutcome,
  LogletReadRequest,
} from '../../loglets/loglet.ts'
import type { LogletProvider, ManyRecord } from '../../loglets/loglet-provider.ts'

/** The limits that a test may set. */
export type ContractOptions = Omit<StoreOptions, 'dir'>

/** Opens a started provider that is shut down, and whose traces go away, when the test ends. */
export type OpenProvider = (t: TestContext, options?: ContractOptions) => Promise<LogletProvider>

/** Makes a log and returns its loglet. */
export async function newLoglet(provider: LogletProvider, logId: LogId = 'log'): Promise<Loglet> {
  await provider.chains.createLogs([logId])
  return logletOf(provider, logId)
}

export function logletOf(provider: LogletProvider, logId: LogId): Loglet {
  const link = provider.chains.chain(logId)?.at(-1)
  assert.ok(link, `there is a log ${logId}`)
  return link.loglet
}

export function append(
  loglet: Loglet,
  payload: unknown,
  options?: LogletAppendOptions & { readonly keys?: Keys },
): Promise<Offset> {
  return new Promise((committed, failed) => {
    loglet.append(payload, options?.keys, options, { committed, failed })
  })
}

export function appendBatch(
  loglet: Loglet,
  payloads: readonly unknown[],
  options?: LogletAppendOptions,
): Promise<Offset> {
  const records = payloads.map((payload) => ({ payload, keys: undefined }))
  return new Promise((committed, failed) => {
    loglet.appendBatch(records, options, { committed, failed })
  })
}

/** A refusal of an `appendMany`, with the index of the record that it is about. */
export interface ManyRefusal {
  readonly error: LogError
  readonly at: number | undefined
}

export type ManyOutcome = { readonly offsets: Offset[] } | ManyRefusal

export function appendMany(
  provider: LogletProvider,
  records: readonly (Omit<ManyRecord, 'keys'> & { readonly keys?: Keys })[],
): Promise<ManyOutcome> {
  const complete = records.map((record) => ({ keys: undefined, ...record }))
  return new Promise((resolve) => {
    provider.appendMany(complete, undefined, {
      committed: (offsets) => resolve({ offsets }),
      failed: (error, at) => resolve({ error, at }),
    })
  })
}

export interface ReadResult {
  readonly outcome: LogletReadOutcome
  readonly records: StoredRecord[]
}

/** One read, decoded; everything that it gives in one go unless told otherwise. */
export async function readOnce(
  loglet: Loglet,
  from: Offset,
  request: Partial<Omit<LogletReadRequest, 'from' | 'visit'>> = {},
): Promise<ReadResult> {
  const records: StoredRecord[] = []
  let expected = from
  const outcome = await loglet.read({
    from,
    to: MAX_POSITION,
    maxBytes: Infinity,
    ...request,
    visit: (offset, bytes, start, end) => {
      assert.equal(offset, expected++, 'offsets are visited without a gap')
      records.push(decodeRecord(bytes, start, end))
      return true
    },
  })
  if (outcome.kind === 'data') assert.equal(outcome.next, from + records.length)
  return { outcome, records }
}

/** All payloads from an offset on; fails on gaps. */
export async function payloadsFrom(loglet: Loglet, from: Offset): Promise<unknown[]> {
  const payloads: unknown[] = []
  let next = from
  for (;;) {
    const { outcome, records } = await readOnce(loglet, next)
    if (outcome.kind === 'tail' || outcome.kind === 'end') return payloads
    assert.equal(outcome.kind, 'data')
    payloads.push(...records.map(({ payload }) => payload))
    next += records.length
  }
}

/** Resolves once the loglet's state is as wanted. */
export function stateWhere(loglet: Loglet, isWanted: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => {
      if (!isWanted()) return
      stop()
      resolve()
    }
    const stop = loglet.watch(look)
    look()
  })
}
