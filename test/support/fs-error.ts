/** Errors with the shape of those of node:fs, for disks that don't exist and faults that are injected. */
import { constants } from 'node:os'
import { getSystemErrorMap } from 'node:util'

const ERRORS: ReadonlyMap<string, { readonly errno: number; readonly message: string }> = new Map(
  [...getSystemErrorMap()].map(([errno, [code, message]]) => [code, { errno, message }]),
)

/** The error that node:fs gives for this system error, system call and path. */
export function fsError(name: string, syscall: string, path: string): NodeJS.ErrnoException {
  const { code, errno, message } = describe(name)
  const error = new Error(`${code}: ${message}, ${syscall} '${path}'`)
  return Object.assign(error, { code, errno, syscall, path })
}

/** Node.js has no name for some errors, EDQUOT among them: only their number tells what they are. */
function describe(name: string): { code: string; errno: number; message: string } {
  const known = ERRORS.get(name)
  if (known !== undefined) return { code: name, ...known }
  const number = (constants.errno as Readonly<Record<string, number>>)[name]
  if (number === undefined) throw new RangeError(`There is no system error ${name}`)
  const code = `Unknown system error -${number}`
  return { code, errno: -number, message: code }
}

/** The `code` of an error, or the error's text if it has none. */
export function errorCode(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' ? code : String(error)
}
