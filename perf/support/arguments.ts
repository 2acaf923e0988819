/** The command line that the benchmarks share. */
import { statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { parseArgs } from 'node:util'

export interface BenchOptions {
  /** What to run, by words of its name; everything if empty. */
  readonly names: readonly string[]
  /** How long each side of each case is measured, over all rounds. */
  readonly seconds: number
  readonly rounds: number
  /** Record counts and idle times are divided by this. */
  readonly shrink: number
  /** Where the stores are made. */
  readonly dir: string
  /** Whether each process's CPU profile is taken. */
  readonly profile: boolean
  /** HTTP: which server is loaded. */
  readonly server: string
}

/** What a command wants otherwise. */
export interface Defaults {
  readonly seconds?: number
  readonly rounds?: number
  /** Only a command that has one takes `--server`. */
  readonly server?: string
}

export const OPTIONS_USAGE = `  --seconds <n>   how long each side of each case is measured, over all rounds
  --rounds <n>    how many rounds the sides take turns for
  --quick         a look at whether it works: 2 short rounds, a hundredth of the records
  --profile       what each process spent its CPU time on, and its .cpuprofile in perf/results/
  --dir <path>    where the stores are made (default: the system's temporary directory)
  --help          show this
`

const NORMAL = { seconds: 4, rounds: 8, shrink: 1 }
const QUICK = { seconds: 0.4, rounds: 2, shrink: 100 }
const MOST_SECONDS = 3600
const MOST_ROUNDS = 1000

/** Reads the arguments; undefined if help is asked for. Throws an Error that says what is wrong. */
export function readArguments(
  args: readonly string[],
  defaults: Defaults = {},
): BenchOptions | undefined {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      seconds: { type: 'string' },
      rounds: { type: 'string' },
      quick: { type: 'boolean', default: false },
      profile: { type: 'boolean', default: false },
      dir: { type: 'string', default: tmpdir() },
      help: { type: 'boolean', default: false },
      server: { type: 'string' },
    },
  })
  if (values.help) return undefined
  if (values.server !== undefined && defaults.server === undefined) {
    throw new Error('--server is for the load over HTTP only')
  }
  const base = values.quick ? QUICK : { ...NORMAL, ...defaults }
  return {
    names: positionals,
    seconds: numberFrom('--seconds', values.seconds, base.seconds, 0.01, MOST_SECONDS),
    rounds: wholeNumberFrom('--rounds', values.rounds, base.rounds, 1, MOST_ROUNDS),
    shrink: base.shrink,
    dir: existingDirectory('--dir', values.dir),
    profile: values.profile,
    server: values.server ?? defaults.server ?? '',
  }
}

/** A number in a range, or the default if none was given. */
export function numberFrom(
  name: string,
  text: string | undefined,
  standard: number,
  least: number,
  most: number,
): number {
  if (text === undefined) return standard
  const value = Number(text)
  if (text.trim() !== '' && value >= least && value <= most) return value
  throw new Error(`${name} takes a number from ${least} to ${most}, not ${text}`)
}

export function wholeNumberFrom(
  name: string,
  text: string | undefined,
  standard: number,
  least: number,
  most: number,
): number {
  const value = numberFrom(name, text, standard, least, most)
  if (Number.isInteger(value)) return value
  throw new Error(`${name} takes a whole number, not ${value}`)
}

export function existingDirectory(name: string, path: string): string {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return path
  throw new Error(`${name} takes a directory that is there, not ${path}`)
}

/**
 * Those that are named: by a whole name, or else by a part of theirs. Throws an Error if a name
 * names nothing.
 */
export function selected<T extends { readonly name: string }>(
  all: readonly T[],
  names: readonly string[],
): readonly T[] {
  if (names.length === 0) return all
  const named = new Set(names.flatMap((name) => namedBy(all, name)))
  return all.filter((one) => named.has(one))
}

function namedBy<T extends { readonly name: string }>(all: readonly T[], wanted: string): T[] {
  const exact = all.filter(({ name }) => name === wanted)
  const found = exact.length > 0 ? exact : all.filter(({ name }) => name.includes(wanted))
  if (found.length > 0) return found
  const known = all.map(({ name }) => `  ${name}`).join('\n')
  throw new Error(`Nothing is called ${wanted}. There are:\n${known}`)
}
