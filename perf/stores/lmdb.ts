/**
 * lmdb-js, which batches by itself. A `put` resolves after the transaction was synced (seen with
 * strace), unless `separateFlushed` is asked for.
 */
import { requirePeer } from './peer-packages.ts'
import type { Sink, Store, StoreSpec } from './store.ts'

interface Lmdb {
  put(key: number, value: Uint8Array): Promise<boolean>
  getRange(): Iterable<{ readonly value: Uint8Array }>
  close(): Promise<void>
}

interface LmdbPackage {
  readonly open: (options: object) => Lmdb
}

export function openLmdb({ dir }: StoreSpec): Store {
  const { open } = requirePeer<LmdbPackage>('lmdb')
  return new LmdbStore(open({ path: dir, encoding: 'binary', keyEncoding: 'uint32' }))
}

class LmdbStore implements Store {
  readonly #database: Lmdb
  #nextKey = 1

  constructor(database: Lmdb) {
    this.#database = database
  }

  append(_log: number, payload: Uint8Array): Promise<boolean> {
    return this.#database.put(this.#nextKey++, payload)
  }

  async scan(sink: Sink): Promise<void> {
    for (const { value } of this.#database.getRange()) sink(value)
  }

  counters(): undefined {
    return undefined
  }

  close(): Promise<void> {
    return this.#database.close()
  }
}
