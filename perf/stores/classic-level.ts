/** LevelDB through classic-level: a synced batch for each group, one batch in flight. */
import { GroupCommit } from './group-commit.ts'
import { putsOf, type Put } from './keys.ts'
import { requirePeer } from './peer-packages.ts'
import type { Counters, Sink, Store, StoreSpec } from './store.ts'

const SCAN_RECORDS = 1000
/** As much as a scan step carries; the default is a tenth of it, and half as fast. */
const SCAN_BYTES = 1 << 20

interface Level {
  open(): Promise<void>
  batch(puts: readonly Put[], options: { readonly sync: boolean }): Promise<void>
  values(options: object): { nextv(size: number): Promise<Uint8Array[]>; close(): Promise<void> }
  close(): Promise<void>
}

interface LevelPackage {
  readonly ClassicLevel: new (path: string, options: object) => Level
}

export async function openClassicLevel({ dir }: StoreSpec): Promise<Store> {
  const { ClassicLevel } = requirePeer<LevelPackage>('classic-level')
  const level = new ClassicLevel(dir, { keyEncoding: 'buffer', valueEncoding: 'buffer' })
  await level.open()
  return new LevelStore(level)
}

class LevelStore implements Store {
  readonly #level: Level
  readonly #groups = new GroupCommit((payloads, firstKey) =>
    this.#level.batch(putsOf(payloads, firstKey), { sync: true }),
  )

  constructor(level: Level) {
    this.#level = level
  }

  append(_log: number, payload: Uint8Array): Promise<void> {
    return this.#groups.append(payload)
  }

  async scan(sink: Sink): Promise<void> {
    const values = this.#level.values({ highWaterMarkBytes: SCAN_BYTES })
    for (;;) {
      const payloads = await values.nextv(SCAN_RECORDS)
      if (payloads.length === 0) break
      for (const payload of payloads) sink(payload)
    }
    await values.close()
  }

  counters(): Counters {
    return { records: this.#groups.records, syncs: this.#groups.groups }
  }

  close(): Promise<void> {
    return this.#level.close()
  }
}
