/**
 * What a store should be: the trivial model that simulated stores are compared with. A world is the
 * logs as a prefix of the commands leaves them; applying one command predicts its outcome. Every
 * rule here is the public contract's, none is the engine's.
 */
import type { LogErrorCode, LogId } from '../../codec/errors.ts'
import type { Lsn } from '../../codec/offset.ts'

/** What is appended, and must come back as it is. */
export type Payload = string | Uint8Array

export interface ModelRecord {
  readonly payload: Payload
  /** The command that appended it. */
  readonly command: number
  /** Known once a reader has seen it. */
  createdAt: bigint | undefined
}

export interface ModelLog {
  readonly logId: LogId
  /** The command that created it: a log created again under the name is another one. */
  readonly incarnation: number
  /** The record at index i has LSN i + 1, trimmed or not. */
  readonly records: ModelRecord[]
  trimPoint: Lsn
  seal: { readonly reason: string | undefined } | undefined
}

/** A log as it was found when a command was called; undefined if there was none of that name. */
export type Target = number | undefined

export interface Entry {
  readonly logId: LogId
  readonly target: Target
  readonly payload: Payload
  readonly expectedTail: Lsn | undefined
}

export type Command =
  | {
      readonly kind: 'append'
      readonly logId: LogId
      readonly target: Target
      readonly payloads: readonly Payload[]
      readonly expectedTail: Lsn | undefined
    }
  | { readonly kind: 'many'; readonly entries: readonly Entry[] }
  | {
      readonly kind: 'trim'
      readonly logId: LogId
      readonly target: Target
      readonly upTo: Lsn
    }
  | {
      readonly kind: 'seal'
      readonly logId: LogId
      readonly target: Target
      readonly reason: string | undefined
    }
  | { readonly kind: 'create'; readonly logId: LogId }
  | { readonly kind: 'delete'; readonly logId: LogId }

/** What a command comes to: a value as the API gives it, or a refusal with its typed fields. */
export type Outcome =
  | { readonly value: unknown }
  | { readonly code: LogErrorCode; readonly tail?: Lsn; readonly reason?: string | undefined }

const UNKNOWN_LOG: Outcome = { code: 'UNKNOWN_LOG' }

export function tailOf(log: ModelLog): Lsn {
  return log.records.length + 1
}

export class World {
  readonly logs: Map<LogId, ModelLog>

  constructor(logs = new Map<LogId, ModelLog>()) {
    this.logs = logs
  }

  clone(): World {
    const copies = new Map<LogId, ModelLog>()
    for (const [logId, log] of this.logs) copies.set(logId, { ...log, records: [...log.records] })
    return new World(copies)
  }

  /** Does what the command of this number asks for, and says what its caller is told. */
  apply(command: Command, number: number): Outcome {
    switch (command.kind) {
      case 'append':
        return this.#append(command, number)
      case 'many':
        return this.#many(command.entries, number)
      case 'trim':
        return this.#trim(command)
      case 'seal':
        return this.#seal(command)
      case 'create':
        return this.#create(command.logId, number)
      case 'delete':
        return this.logs.delete(command.logId) ? { value: undefined } : UNKNOWN_LOG
    }
  }

  #find(logId: LogId, target: Target): ModelLog | undefined {
    const log = this.logs.get(logId)
    return log?.incarnation === target ? log : undefined
  }

  /** Why records can't be appended here, if they can't. `told` is the tail that a refusal names. */
  #refusal(
    log: ModelLog | undefined,
    expectedTail: Lsn | undefined,
    told?: Lsn,
  ): Outcome | undefined {
    if (log === undefined) return UNKNOWN_LOG
    const tail = tailOf(log)
    if (log.seal !== undefined) return { code: 'SEALED', tail, reason: log.seal.reason }
    if (expectedTail === undefined || expectedTail === tail) return undefined
    return { code: 'TAIL_MISMATCH', tail: told ?? tail }
  }

  #append(command: Command & { kind: 'append' }, number: number): Outcome {
    const { logId, target, payloads, expectedTail } = command
    const log = this.#find(logId, target)
    const refusal = this.#refusal(log, expectedTail)
    if (refusal !== undefined || log === undefined) return refusal ?? UNKNOWN_LOG
    const first = tailOf(log)
    for (const payload of payloads) push(log, payload, number)
    return { value: first }
  }

  /** All or none; a refusal names the tail without the records of this very call. */
  #many(entries: readonly Entry[], number: number): Outcome {
    const before = new Map<ModelLog, Lsn>()
    const lsns: Lsn[] = []
    for (const { logId, target, payload, expectedTail } of entries) {
      const log = this.#find(logId, target)
      if (log !== undefined && !before.has(log)) before.set(log, tailOf(log))
      const refusal = this.#refusal(log, expectedTail, log && before.get(log))
      if (refusal !== undefined || log === undefined) {
        for (const [touched, tail] of before) touched.records.length = tail - 1
        return refusal ?? UNKNOWN_LOG
      }
      lsns.push(tailOf(log))
      push(log, payload, number)
    }
    return { value: lsns }
  }

  #trim({ logId, target, upTo }: Command & { kind: 'trim' }): Outcome {
    const log = this.#find(logId, target)
    if (log === undefined) return UNKNOWN_LOG
    log.trimPoint = Math.max(log.trimPoint, Math.min(upTo, tailOf(log) - 1))
    return { value: log.trimPoint }
  }

  #seal({ logId, target, reason }: Command & { kind: 'seal' }): Outcome {
    const log = this.#find(logId, target)
    if (log === undefined) return UNKNOWN_LOG
    log.seal ??= { reason }
    return { value: { tail: tailOf(log), reason: log.seal.reason } }
  }

  #create(logId: LogId, number: number): Outcome {
    if (!this.logs.has(logId)) {
      const log = { logId, incarnation: number, records: [], trimPoint: 0, seal: undefined }
      this.logs.set(logId, log)
    }
    return { value: undefined }
  }
}

function push(log: ModelLog, payload: Payload, command: number): void {
  log.records.push({ payload, command, createdAt: undefined })
}

export function samePayload(a: unknown, b: Payload): boolean {
  if (typeof a === 'string' || typeof b === 'string') return a === b
  return a instanceof Uint8Array && Buffer.compare(a, b) === 0
}

/** Enough of a payload to recognize it in a message. */
export function shortPayload(payload: unknown): string {
  if (typeof payload === 'string') return `${payload.slice(0, 12)}… of ${payload.length}`
  if (!(payload instanceof Uint8Array)) return String(payload)
  return `bytes ${Buffer.from(payload.subarray(0, 8)).toString('hex')}… of ${payload.length}`
}

/** A command in a line of a trace. */
export function formatCommand(command: Command): string {
  switch (command.kind) {
    case 'append':
      return `append ${command.logId} ${command.payloads.map(shortPayload).join(' ')}${expecting(command.expectedTail)}`
    case 'many':
      return `many ${command.entries.map(({ logId, payload, expectedTail }) => `${logId} ${shortPayload(payload)}${expecting(expectedTail)}`).join(', ')}`
    case 'trim':
      return `trim ${command.logId} up to ${command.upTo}`
    case 'seal':
      return `seal ${command.logId} ${String(command.reason)}`
    case 'create':
    case 'delete':
      return `${command.kind} ${command.logId}`
  }
}

function expecting(tail: Lsn | undefined): string {
  return tail === undefined ? '' : ` expecting ${tail}`
}
