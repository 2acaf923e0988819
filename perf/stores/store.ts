/**
 * What a store under test can do. One driver per kind of store; each acknowledges an append only
 * after it was synced.
 */
import type { BifrostOptions } from '../../index.ts'

export type PeerKind =
  | 'better-sqlite3'
  | 'better-sqlite3-single'
  | 'lmdb'
  | 'classic-level'
  | 'rocksdb'
  | 'redis'
  | 'append-fsync'

export type StoreKind = 'bifrost' | 'floor' | PeerKind

/** What a store is made from; it is sent to the process that opens it. */
export interface StoreSpec {
  readonly kind: StoreKind
  readonly dir: string
  /** Bifrost: how many logs there are. The others have one, whatever is asked for. Default 1. */
  readonly logs?: number | undefined
  /** Bifrost: the path of another build's index.js. Default: this build. */
  readonly library?: string | undefined
  readonly options?: BifrostOptions | undefined
}

/** How far a store has come: the difference of two of them tells of what lies between. */
export interface Counters {
  readonly records: number
  readonly syncs: number
}

/** Gets every record that is read, in order. */
export type Sink = (payload: Uint8Array) => void

export interface Store {
  /** Resolves when the record is durable. The payload is not changed until then. */
  append(log: number, payload: Uint8Array): Promise<unknown>
  /** Reads everything from the oldest record on, in the way that is fastest for this store. */
  scan(sink: Sink): Promise<void>
  /** Undefined if the store does not count. */
  counters(): Counters | undefined
  close(): Promise<void>
}
