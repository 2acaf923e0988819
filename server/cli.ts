#!/usr/bin/env node
/**
 * The command `bifrost`: serves a store over HTTP, and the tools for a store on this machine. It
 * parses, prints and sets the exit code; what is done is done elsewhere.
 */
import { LogError } from '../index.ts'
import { UsageError, type Command } from './command.ts'
import { dumpCommand } from './dump-command.ts'
import { inspectCommand } from './inspect-command.ts'
import { repairCommand } from './repair-command.ts'
import { serveCommand } from './serve-command.ts'
import { verifyCommand } from './verify-command.ts'

const COMMANDS: Readonly<Record<string, Command>> = {
  serve: serveCommand,
  inspect: inspectCommand,
  dump: dumpCommand,
  verify: verifyCommand,
  repair: repairCommand,
}

const EXIT_USAGE = 2
const EXIT_FAILED = 1

async function main(args: readonly string[]): Promise<number> {
  const [name = '--help', ...rest] = args
  if (name === '--help' || name === '-h' || name === 'help') {
    process.stdout.write(usage())
    return 0
  }
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (command === undefined) throw new UsageError(`There is no command ${JSON.stringify(name)}`)
  if (rest.includes('--help') || rest.includes('-h')) {
    process.stdout.write(`${command.usage}\n`)
    return 0
  }
  return command.run(rest)
}

function usage(): string {
  const commands = Object.values(COMMANDS).map((command) => command.usage)
  return `Usage:\n\n${commands.join('\n\n')}\n`
}

function explain(error: unknown): number {
  if (error instanceof UsageError) {
    process.stderr.write(`bifrost: ${error.message} (see bifrost --help)\n`)
    return EXIT_USAGE
  }
  const code = error instanceof LogError ? `${error.code}: ` : ''
  process.stderr.write(
    `bifrost: ${code}${error instanceof Error ? error.message : String(error)}\n`,
  )
  if (error instanceof Error && error.cause instanceof Error) {
    process.stderr.write(`  because: ${error.cause.message}\n`)
  }
  return EXIT_FAILED
}

// A reader that has seen enough, such as `head`, closes the pipe.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? 0 : EXIT_FAILED)
})

process.exitCode = await main(process.argv.slice(2)).catch(explain)
