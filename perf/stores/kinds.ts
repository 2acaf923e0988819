/** The driver of each kind of store, loaded only in the process that uses it. */
import type { Store, StoreKind, StoreSpec } from './store.ts'

type Open = (spec: StoreSpec) => Store | Promise<Store>

const KINDS: Readonly<Record<StoreKind, () => Promise<Open>>> = {
  bifrost: async () => (await import('./bifrost.ts')).openBifrost,
  floor: async () => (await import('./floor.ts')).openFloor,
  'better-sqlite3': async () => (await import('./better-sqlite3.ts')).openGrouped,
  'better-sqlite3-single': async () => (await import('./better-sqlite3.ts')).openSingle,
  lmdb: async () => (await import('./lmdb.ts')).openLmdb,
  'classic-level': async () => (await import('./classic-level.ts')).openClassicLevel,
  rocksdb: async () => (await import('./rocksdb.ts')).openRocksdb,
  redis: async () => (await import('./redis.ts')).openRedis,
  'append-fsync': async () => (await import('./append-fsync.ts')).openAppendFsync,
}

export async function openStore(spec: StoreSpec): Promise<Store> {
  const open = await KINDS[spec.kind]()
  return open(spec)
}
