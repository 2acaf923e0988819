/** A disk without room, on real files: what would make a file longer fails, what overwrites does not. */
import fs from 'node:fs'
import type { Injection, Operation } from './faults.ts'
import type { TestStore } from './test-store.ts'

/** Whether an operation would make its file longer. */
export function isGrowth({ kind, path, position = 0, length = 0 }: Operation): boolean {
  if (kind !== 'write' && kind !== 'commit' && kind !== 'commitSync') return false
  return position + length > sizeOf(path)
}

function sizeOf(path: string): number {
  try {
    return fs.statSync(path).size
  } catch {
    return 0
  }
}

/** Fills the disk beneath a store; there is room again once it is removed. */
export function fillDisk(store: TestStore, code = 'ENOSPC'): Injection {
  return store.faults.fail(isGrowth, { code }, Infinity)
}
