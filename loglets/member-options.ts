/** Checks of what the members of a store and a log are given, shared by all of them. */
import { invalidOption } from '../engine/options.ts'
import { isTail, type Lsn } from './lsn.ts'

/** Throws INVALID_OPTION unless `options` is undefined, or an object with only these keys. */
export function requireOptions(options: unknown, names: ReadonlySet<string>): void {
  if (options === undefined) return
  if (typeof options !== 'object' || options === null) {
    throw invalidOption('The options must be an object')
  }
  for (const name in options) {
    if (!names.has(name)) throw invalidOption(`There is no option ${JSON.stringify(name)}`)
  }
}

/** The value if it is an AbortSignal or undefined. */
export function requireSignal(signal: unknown): AbortSignal | undefined {
  if (signal === undefined || signal instanceof AbortSignal) return signal
  throw invalidOption('signal must be an AbortSignal')
}

/** The value if a log's tail could be there, or undefined. */
export function requireExpectedTail(tail: unknown): Lsn | undefined {
  if (tail === undefined || isTail(tail)) return tail
  throw invalidOption('expectedTail must be an LSN')
}

/** The value if it is an array. */
export function requireArray<T>(name: string, value: readonly T[]): readonly T[] {
  if (Array.isArray(value)) return value as readonly T[]
  throw invalidOption(`${name} must be an array`)
}
