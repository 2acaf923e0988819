/** What the commands of the command line share: how they are called, and how options are read. */
import { parseArgs, type ParseArgsConfig } from 'node:util'

export interface Command {
  readonly usage: string
  /** Resolves with the exit code. */
  run(args: readonly string[]): Promise<number>
}

/** The command line makes no sense. */
export class UsageError extends Error {}

type Options = NonNullable<ParseArgsConfig['options']>
type Values<O extends Options> = ReturnType<
  typeof parseArgs<{ options: O; allowPositionals: true; strict: true }>
>['values']

export interface ParsedArgs<O extends Options> {
  readonly values: Values<O>
  readonly positionals: readonly string[]
}

/** Reads options; throws UsageError for one that is unknown. */
export function readArgs<const O extends Options>(
  args: readonly string[],
  options: O,
  maxPositionals = 0,
): ParsedArgs<O> {
  let parsed: ParsedArgs<O>
  try {
    parsed = parseArgs({ args: [...args], options, allowPositionals: true, strict: true })
  } catch (error) {
    throw new UsageError(firstSentence(error instanceof Error ? error.message : String(error)))
  }
  const extra = parsed.positionals[maxPositionals]
  if (extra !== undefined) throw new UsageError(`What is ${JSON.stringify(extra)} for?`)
  return parsed
}

/** What the parser says of a wrong option goes on with advice on an unlikely wish. */
function firstSentence(message: string): string {
  return message.split('. ', 1)[0] ?? message
}

/** The value of a number option, in its range. */
export function readNumber(
  name: string,
  text: string | undefined,
  min: number,
  max: number = Number.MAX_SAFE_INTEGER,
): number | undefined {
  if (text === undefined) return undefined
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (Number.isSafeInteger(value) && value >= min && value <= max) return value
  throw new UsageError(`--${name} is a whole number from ${min} to ${max}`)
}

/** The directory of the store: there is no default for where somebody's data is. */
export function requireDir(dir: string | undefined): string {
  if (dir === undefined || dir === '') throw new UsageError('The directory of a store is missing')
  return dir
}

/** The directory of the store, for commands that take it with `--dir` or without. */
export function readDir(dir: string | undefined, positionals: readonly string[]): string {
  const [bare] = positionals
  if (dir !== undefined && bare !== undefined) throw new UsageError('There are two directories')
  return requireDir(dir ?? bare)
}

/** A value as JSON on one line, or indented. No character of it moves a terminal's cursor. */
export function jsonText(value: unknown, indent?: number): string {
  return JSON.stringify(value, undefined, indent).replace(CONTROLS, (character) => {
    return `\\u00${character.charCodeAt(0).toString(16)}`
  })
}

/** Those that JSON doesn't escape. */
const CONTROLS = /[\u007f-\u009f]/g

/** Writes to stdout, and waits while that is full. */
export async function print(text: string): Promise<void> {
  if (process.stdout.write(text)) return
  await new Promise((resolve) => process.stdout.once('drain', resolve))
}
