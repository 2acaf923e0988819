/** All that a store shows of itself, to compare one recovery with another. */
import assert from 'node:assert/strict'
import type { LogId } from '../../codec/errors.ts'
import { decodeRecord } from '../../codec/record.ts'
import type { Store } from '../../engine/store.ts'
import type { LogletCell } from '../../engine/store-state.ts'

/** One log: its records by offset, and everything that holds about it. */
export interface LogView {
  readonly logId: LogId
  readonly tail: number
  readonly trimPoint: number
  readonly seal: string | undefined
  readonly isSealed: boolean
  readonly records: readonly (readonly [offset: number, payload: unknown, createdAt: bigint])[]
  /** What was lost: the first and the last offset of each gap. */
  readonly losses: readonly (readonly [from: number, to: number])[]
}

/** Reads everything that is durable, log by log, in the order of their creation. */
export async function viewOf(store: Store): Promise<LogView[]> {
  const views: LogView[] = []
  for (const { logId, links } of store.logs()) {
    const cell = store.cell(links[0]?.loglet ?? 0)
    assert.ok(cell, `there is a loglet for ${logId}`)
    views.push(await viewOfLog(store, logId, cell))
  }
  return views
}

async function viewOfLog(store: Store, logId: LogId, cell: LogletCell): Promise<LogView> {
  const { tail, trimPoint, seal } = cell.facts
  const records: LogView['records'][number][] = []
  const losses: LogView['losses'][number][] = []
  for (let from = trimPoint + 1; from < tail;) {
    const visit = (offset: number, bytes: Uint8Array, start: number, end: number): boolean => {
      const { payload, createdAt } = decodeRecord(bytes, start, end)
      records.push([offset, payload, createdAt])
      return true
    }
    const request = { from, to: tail - 1, maxBytes: 1024 * 1024, visit }
    const outcome = await store.read(cell, request)
    if (outcome.kind === 'data') from = outcome.next
    else if (outcome.kind === 'data-loss-gap') {
      losses.push([from, outcome.until])
      from = outcome.until + 1
    } else assert.fail(`${logId} has a ${outcome.kind} at ${from}`)
  }
  return {
    logId,
    tail,
    trimPoint,
    seal: seal?.reason,
    isSealed: seal !== undefined,
    records,
    losses,
  }
}
