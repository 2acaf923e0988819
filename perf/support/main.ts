/** What the commands of perf/ have in common: arguments in, a report out, errors in words. */
import { Arena } from '../measures/arena.ts'
import { OPTIONS_USAGE, readArguments, type BenchOptions, type Defaults } from './arguments.ts'
import { machineFacts } from './machine.ts'
import { requireProject } from './project.ts'
import { Report } from './report.ts'
import { Scratch } from './scratch.ts'

export interface Command {
  /** The name of the JSON file. */
  readonly name: string
  /** What stands above the options when help is asked for. */
  readonly usage: string
  readonly defaults?: Defaults
  /** Resolves with the exit code. */
  run(arena: Arena): Promise<number>
}

/** Runs a command with this process's arguments, and sets its exit code. */
export async function main(command: Command): Promise<void> {
  try {
    requireProject()
    const options = readArguments(process.argv.slice(2), command.defaults)
    if (options === undefined) process.stdout.write(`${command.usage}\n${OPTIONS_USAGE}`)
    else process.exitCode = await runWith(command, options)
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : error}\n`)
    process.exitCode = 1
  }
}

async function runWith(command: Command, options: BenchOptions): Promise<number> {
  const scratch = new Scratch(options.dir)
  const report = new Report(command.name, machineFacts(scratch.dir), options)
  const arena = new Arena(options, report, scratch)
  try {
    report.open()
    const code = await command.run(arena)
    report.write()
    return code
  } finally {
    await arena.abandon()
  }
}
