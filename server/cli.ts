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
  const [name, ...rest] = args
  if (name === '--help' || name === '-h' || name === 'help') {
    process.stdout.write(usage())
    return 0
  }
  const command = name !== undefined && Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (command === undefined) {
    const what = name === undefined ? 'What shall be done?' : `There is no command ${name}`
    return explain(new UsageError(what), usage())
  }
  if (rest.includes('--help') || rest.includes('-h')) {
    process.stdout.write(usageOf(command))
    return 0
  }
  return command.run(rest).catch((error: unknown) => explain(error, usageOf(command)))
}

function usage(): string {
  const commands = Object.values(COMMANDS).map((command) => command.usage)
  return `Usage:\n\n${commands.join('\n\n')}\n`
}

function usageOf(command: Command): string {
  return `Usage:\n\n${command.usage}\n`
}

/** Says on stderr what went wrong, and returns the exit code. */
function explain(error: unknown, help: string): number {
  if (error instanceof UsageError) {
    process.stderr.write(`bifrost: ${error.message}\n\n${help}`)
    return EXIT_USAGE
  }
  const message = error instanceof Error ? error.message : String(error)
  process.stderr.write(`bifrost: ${error instanceof LogError ? `${error.code}: ` : ''}${message}\n`)
  const cause = error instanceof Error ? error.cause : undefined
  if (cause instanceof Error && !message.includes(cause.message)) {
    process.stderr.write(`  because: ${cause.message}\n`)
  }
  return EXIT_FAILED
}

// A reader that has seen enough, such as `head`, closes the pipe.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? 0 : EXIT_FAILED)
})

process.exitCode = await main(process.argv.slice(2))
