/** Errors with the shape of those of node:fs, for disks that don't exist and faults that are injected. */
import { getSystemErrorMap } from 'node:util'

const ERRORS: ReadonlyMap<string, { readonly errno: number; readonly message: string }> = new Map(
  [...getSystemErrorMap()].map(([errno, [code, message]]) => [code, { errno, message }]),
)

/** The error that node:fs gives for this code, system call and path. */
export function fsError(code: string, syscall: string, path: string): NodeJS.ErrnoException {
  const known = ERRORS.get(code)
  if (known === undefined) throw new RangeError(`There is no system error ${code}`)
  const error = new Error(`${code}: ${known.message}, ${syscall} '${path}'`)
  return Object.assign(error, { code, errno: known.errno, syscall, path })
}

/** The `code` of an error, or the error's text if it has none. */
export function errorCode(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' ? code : String(error)
}
