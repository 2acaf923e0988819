/** The command line of the main job. */
import { statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { parseArgs } from 'node:util'

export interface JobOptions {
  /** Where the working directory is made. */
  readonly dir: string
  /** Whether the working directory stays when the job has ended. */
  readonly keep: boolean
  /** Appends under way at any time. */
  readonly callers: number
  /** How long the load runs before it is killed. */
  readonly seconds: number
}

export const USAGE = `Usage: npm start -- [options]

  --seconds <n>   how long the load runs before it is killed (default 5)
  --callers <n>   concurrent callers, each with one batch under way (default and least 64)
  --dir <path>    make the working directory in here (default: the system's temporary directory)
  --keep          leave the working directory behind
  --help          show this
`

const LEAST_CALLERS = 64
const MOST_CALLERS = 4096
const MOST_SECONDS = 600

/** Reads the arguments; undefined if help is asked for. Throws an Error that says what is wrong. */
export function readOptions(args: string[]): JobOptions | undefined {
  const { values } = parseArgs({
    args,
    options: {
      seconds: { type: 'string', default: '5' },
      callers: { type: 'string', default: String(LEAST_CALLERS) },
      dir: { type: 'string', default: tmpdir() },
      keep: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return undefined
  return {
    dir: existingDirectory('--dir', values.dir),
    keep: values.keep,
    callers: wholeNumber('--callers', values.callers, LEAST_CALLERS, MOST_CALLERS),
    seconds: wholeNumber('--seconds', values.seconds, 1, MOST_SECONDS),
  }
}

function wholeNumber(name: string, text: string, least: number, most: number): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && value >= least && value <= most) return value
  throw new Error(`${name} takes a whole number from ${least} to ${most}, not ${text}`)
}

function existingDirectory(name: string, path: string): string {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return path
  throw new Error(`${name} takes a directory that is there, not ${path}`)
}
