/** RocksDB through the npm package rocksdb: a synced batch for each group, one batch in flight. */
import { mkdirSync } from 'node:fs'
import { promisify } from 'node:util'
import { GroupCommit } from './group-commit.ts'
import { putsOf, type Put } from './keys.ts'
import { requirePeer } from './peer-packages.ts'
import type { Counters, Sink, Store, StoreSpec } from './store.ts'

type Callback = (error?: Error | null) => void

interface RocksIterator {
  next(callback: (error: Error | null, key?: Uint8Array, value?: Uint8Array) => void): void
  end(callback: Callback): void
}

interface Rocks {
  open(options: object, callback: Callback): void
  batch(puts: readonly Put[], options: { readonly sync: boolean }, callback: Callback): void
  iterator(options: object): RocksIterator
  close(callback: Callback): void
}

export async function openRocksdb({ dir }: StoreSpec): Promise<Store> {
  mkdirSync(dir, { recursive: true })
  const rocks = requirePeer<(path: string) => Rocks>('rocksdb')(dir)
  await promisify(rocks.open.bind(rocks))({ createIfMissing: true })
  return new RocksStore(rocks)
}

class RocksStore implements Store {
  readonly #rocks: Rocks
  readonly #groups: GroupCommit

  constructor(rocks: Rocks) {
    this.#rocks = rocks
    const batch = promisify(rocks.batch.bind(rocks))
    this.#groups = new GroupCommit((payloads, firstKey) =>
      batch(putsOf(payloads, firstKey), { sync: true }),
    )
  }

  append(_log: number, payload: Uint8Array): Promise<void> {
    return this.#groups.append(payload)
  }

  async scan(sink: Sink): Promise<void> {
    const iterator = this.#rocks.iterator({ keys: false, keyAsBuffer: true, valueAsBuffer: true })
    await new Promise<void>((resolve, reject) => {
      const step = (error: Error | null, _key?: Uint8Array, value?: Uint8Array): void => {
        if (error !== null && (error as Error | undefined) !== undefined) reject(error)
        else if (value === undefined) resolve()
        else {
          sink(value)
          iterator.next(step)
        }
      }
      iterator.next(step)
    })
    await promisify(iterator.end.bind(iterator))()
  }

  counters(): Counters {
    return { records: this.#groups.records, syncs: this.#groups.groups }
  }

  async close(): Promise<void> {
    await promisify(this.#rocks.close.bind(this.#rocks))()
  }
}
