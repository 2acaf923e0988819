/** What is in a store's files, without knowing their format: zeros are room for what comes next. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

const BLOCK_BYTES = 512

/** Blocks of all files. */
export function allocatedBytes(dir: string): number {
  return sum(pathsIn(dir).map((path) => statSync(path).blocks * BLOCK_BYTES))
}

/** Bytes of all files, each up to the last one that is not zero. */
export function keptBytes(dir: string): number {
  return sum(pathsIn(dir).map(lengthWithoutZeros))
}

/** The same of the newest segment that has anything in it. */
export function tailSegmentBytes(dir: string): number {
  const segments = pathsIn(dir).filter((path) => path.endsWith('.segment'))
  for (const path of segments.sort().toReversed()) {
    const length = lengthWithoutZeros(path)
    if (length > 0) return length
  }
  return 0
}

function pathsIn(dir: string): string[] {
  return readdirSync(dir).map((name) => join(dir, name))
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

function lengthWithoutZeros(path: string): number {
  const bytes = readFileSync(path)
  let end = bytes.length
  while (end > 0 && bytes[end - 1] === 0) end--
  return end
}
