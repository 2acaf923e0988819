/** A loglet in a durable store: the store's cell, seen through the loglet contract. */
import type { Offset } from '../codec/offset.ts'
import type { Keys } from '../codec/record.ts'
import type { Store } from '../engine/store.ts'
import type { LogletCell } from '../engine/store-state.ts'
import type {
  AppendListener,
  Loglet,
  LogletAppendOptions,
  LogletReadOutcome,
  LogletReadRequest,
  LogletRecord,
  LogletState,
} from './loglet.ts'

export class LocalLoglet implements Loglet {
  /** The store's own view of this loglet. */
  readonly cell: LogletCell
  readonly #store: Store

  constructor(store: Store, cell: LogletCell) {
    this.#store = store
    this.cell = cell
  }

  get state(): LogletState {
    const { facts, ended } = this.cell
    const { tail, trimPoint, seal } = facts
    return { tail, trimPoint, sealed: seal !== undefined, reason: seal?.reason, ended }
  }

  append(
    payload: unknown,
    keys: Keys | undefined,
    options: LogletAppendOptions | undefined,
    listener: AppendListener,
  ): void {
    this.#store.append(this.cell, payload, keys, options, listener)
  }

  appendBatch(
    records: readonly LogletRecord[],
    options: LogletAppendOptions | undefined,
    listener: AppendListener,
  ): void {
    this.#store.appendBatch(this.cell, records, options, listener)
  }

  trim(upTo: Offset): Promise<Offset> {
    return this.#store.trim(this.cell, upTo)
  }

  async seal(reason: string | undefined): Promise<LogletState> {
    await this.#store.seal(this.cell, reason)
    return this.state
  }

  read(request: LogletReadRequest): Promise<LogletReadOutcome> {
    return this.#store.read(this.cell, request)
  }

  watch(listener: () => void): () => void {
    return this.cell.watch(listener)
  }
}
