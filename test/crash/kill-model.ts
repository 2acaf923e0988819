/**
 * The trivial model of a store: what it must be after a sequence of operations. After a kill the
 * store must be the model after some prefix of the operations in the order of their calls, and a
 * prefix that holds everything that was acknowledged: so nothing is lost, nothing is partial, and
 * nothing is out of order.
 */
import type { KillOp, KillResult } from './kill-ops.ts'

/** A record, by the operation that appended it and its index there. */
export type RecordName = `${number}:${number}`

export interface ModelLog {
  tail: number
  trimPoint: number
  /** The reason; undefined while the log is open. */
  seal: string | undefined
  /** By LSN, those that are not trimmed. */
  readonly records: Map<number, RecordName>
}

export class ModelStore {
  readonly logs: Map<string, ModelLog> = new Map<string, ModelLog>()

  /** Does an operation; returns what it must resolve with. */
  apply(op: KillOp): KillResult {
    if (op.kind === 'create') return this.#create(op.log)
    if (op.kind === 'many') return this.#appendMany(op.n, op.logs)
    const log = this.logs.get(op.log)
    if (log === undefined) return { code: 'UNKNOWN_LOG' }
    switch (op.kind) {
      case 'append':
        return append(log, op.n, op.count)
      case 'trim':
        return trim(log, op.upTo)
      case 'seal':
        log.seal ??= op.reason
        return log.tail
      case 'delete':
        this.logs.delete(op.log)
        return null
    }
  }

  #create(name: string): null {
    if (this.logs.has(name)) return null
    this.logs.set(name, { tail: 1, trimPoint: 0, seal: undefined, records: new Map() })
    return null
  }

  #appendMany(n: number, names: readonly string[]): KillResult {
    const logs = names.map((name) => this.logs.get(name))
    if (logs.includes(undefined)) return { code: 'UNKNOWN_LOG' }
    if (logs.some((log) => log?.seal !== undefined)) return { code: 'SEALED' }
    return logs.map((log, i) => put(log as ModelLog, `${n}:${i}`))
  }

  /** All but the records, in a form that can be compared at once. */
  summary(): string {
    const logs = [...this.logs].map(([name, { tail, trimPoint, seal }]) =>
      [name, tail, trimPoint, seal ?? ''].join(' '),
    )
    return logs.sort().join('\n')
  }
}

function append(log: ModelLog, n: number, count: number): KillResult {
  if (log.seal !== undefined) return { code: 'SEALED' }
  const first = log.tail
  for (let i = 0; i < count; i++) put(log, `${n}:${i}`)
  return first
}

function put(log: ModelLog, record: RecordName): number {
  const lsn = log.tail++
  log.records.set(lsn, record)
  return lsn
}

function trim(log: ModelLog, upTo: number): number {
  const trimPoint = Math.max(log.trimPoint, Math.min(upTo, log.tail - 1))
  for (let lsn = log.trimPoint + 1; lsn <= trimPoint; lsn++) log.records.delete(lsn)
  log.trimPoint = trimPoint
  return trimPoint
}
