/** Runs the command line as its users do: a process of its own, with what it prints and its exit code. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'

export const CLI = fileURLToPath(new URL('../../server/cli.js', import.meta.url))

export interface Ran {
  readonly code: number | string | null
  readonly stdout: string
  readonly stderr: string
}

const MAX_OUTPUT_BYTES = 64 * 1024 * 1024

/** Runs `bifrost` with these arguments, and resolves when it has ended, however it has. */
export function bifrostCommand(...args: readonly string[]): Promise<Ran> {
  return run(process.execPath, [CLI, ...args])
}

/** Runs a line of shell in which `bifrost` is the command. */
export function shell(line: string, ...args: readonly string[]): Promise<Ran> {
  const command = `NODE="$0"; CLI="$1"; shift; bifrost() { "$NODE" "$CLI" "$@"; }; ${line}`
  return run('bash', ['-c', command, process.execPath, CLI, ...args])
}

function run(file: string, args: readonly string[]): Promise<Ran> {
  return new Promise((resolve) => {
    const options = { maxBuffer: MAX_OUTPUT_BYTES, encoding: 'utf8' } as const
    execFile(file, args, options, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : (error.code ?? null), stdout, stderr })
    })
  })
}
