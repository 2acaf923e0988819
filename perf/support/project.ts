/** Where the project is. npm runs every script there, wherever it is called from. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A path in the project's folder. */
export function projectPath(...names: string[]): string {
  return join(process.cwd(), ...names)
}

/** Throws an Error unless the process runs in the project's folder. */
export function requireProject(): void {
  if (nameIn(projectPath('package.json')) === 'bifrost-log') return
  throw new Error(`This is run in the project's folder, by npm run; not in ${process.cwd()}`)
}

function nameIn(packageFile: string): unknown {
  try {
    return (JSON.parse(readFileSync(packageFile, 'utf8')) as { name?: unknown }).name
  } catch {
    return undefined
  }
}
