/** `bifrost serve`: a store over HTTP, until it is told to stop. */
import { Bifrost, type Logger } from '../index.ts'
import { readArgs, readNumber, requireDir, UsageError, type Command } from './command.ts'
import { LIMIT_NAMES, type HandlerLimits } from './options.ts'
import { DEFAULT_PORT, serve, type BifrostServer } from './serve.ts'

const MAX_PORT = 65_535

export const serveCommand: Command = {
  usage: `  bifrost serve --dir DIR [--port ${DEFAULT_PORT}] [--host 127.0.0.1] [--limit NAME=NUMBER]…
      Serves the store in DIR, which is made if it is not there, to this machine only unless
      --host says otherwise. Limits are those of HandlerOptions.`,

  async run(args) {
    const { values } = readArgs(args, {
      dir: { type: 'string' },
      port: { type: 'string' },
      host: { type: 'string' },
      limit: { type: 'string', multiple: true },
    })
    const port = readNumber('port', values.port, 0, MAX_PORT)
    const limits = readLimits(values.limit ?? [])
    const bifrost = await Bifrost.open({ dir: requireDir(values.dir), logger })
    const options = { port, host: values.host, logger, ...limits }
    const server = await serve(bifrost, options).catch(async (error: unknown) => {
      await bifrost.close()
      throw error
    })
    process.stdout.write(`bifrost: listening on ${server.url}\n`)
    await stopped()
    await stop(server, bifrost)
    return 0
  },
}

function readLimits(settings: readonly string[]): Partial<HandlerLimits> {
  return Object.fromEntries(settings.map(readLimit))
}

function readLimit(setting: string): [keyof HandlerLimits, number | undefined] {
  const [name, text] = setting.split('=', 2)
  const known = LIMIT_NAMES.find((limit) => limit === name)
  if (known !== undefined) return [known, readNumber(`limit ${known}`, text ?? '', 0)]
  throw new UsageError(`--limit takes NAME=NUMBER, where NAME is one of ${LIMIT_NAMES.join(', ')}`)
}

/** Resolves at the first signal that asks for an end; the second one ends the process at once. */
function stopped(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve())
  })
}

/** Clients first, so that what they have sent is answered; then the store. */
async function stop(server: BifrostServer, bifrost: Bifrost): Promise<void> {
  process.stderr.write('bifrost: stopping\n')
  await server.close()
  await bifrost.close()
}

const logger: Logger = {
  info: (fields, message) => log('info', fields, message),
  warn: (fields, message) => log('warn', fields, message),
  error: (fields, message) => log('error', fields, message),
}

/** One line of JSON on stderr. */
function log(level: string, fields: object, message: string): void {
  const plain = Object.entries(fields).map(([name, value]: [string, unknown]) => {
    return [name, value instanceof Error ? String(value.stack) : value] as const
  })
  const line = { time: new Date().toISOString(), level, message, ...Object.fromEntries(plain) }
  process.stderr.write(`${JSON.stringify(line)}\n`)
}
