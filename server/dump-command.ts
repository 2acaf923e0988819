/** `bifrost dump`: the records of logs as lines of JSON, without changing the store. */
import { Bifrost, type LogRecord } from '../index.ts'
import {
  jsonText,
  print,
  readArgs,
  readDir,
  readNumber,
  UsageError,
  type Command,
} from './command.ts'

const OPTIONS = {
  dir: { type: 'string' },
  log: { type: 'string' },
  from: { type: 'string' },
  to: { type: 'string' },
} as const

export const dumpCommand: Command = {
  usage: `  bifrost dump DIR [--log LOG] [--from LSN] [--to LSN]
      Prints records, a line of JSON each, from one log or from all. What JSON has no form for is an
      object with one member: $utf8 or $base64 for bytes, $bigint, $date, $number. A record's own
      members whose names start with $ are shown with one more. Read-only.`,

  async run(args) {
    const { values, positionals } = readArgs(args, OPTIONS, 1)
    const dir = readDir(values.dir, positionals)
    const from = readNumber('from', values.from, 1)
    const to = readNumber('to', values.to, 1)
    const bifrost = await Bifrost.open({ dir, readOnly: true })
    try {
      const known = bifrost.logIds()
      const { log } = values
      if (log !== undefined && !known.includes(log)) {
        throw new UsageError(`There is no log ${JSON.stringify(log)}`)
      }
      for (const logId of log === undefined ? known : [log]) {
        await dumpLog(bifrost, logId, from, to)
      }
      return 0
    } finally {
      await bifrost.close()
    }
  },
}

async function dumpLog(
  bifrost: Bifrost,
  logId: string,
  from: number | undefined,
  to: number | undefined,
): Promise<void> {
  // There is nothing from there on, which is no mistake: a store's logs differ in length.
  if (from !== undefined && from >= (await bifrost.findTail(logId)).lsn) return
  const reader = bifrost.createReader(logId, { from, to, follow: false })
  for await (const records of reader.chunks()) {
    await print(records.map((record) => `${jsonText(lineOf(logId, record))}\n`).join(''))
  }
}

function lineOf(log: string, record: LogRecord): object {
  const { kind, lsn } = record
  if (record.kind !== 'data') return { log, lsn, kind, until: record.until }
  const { createdAtMs, keys, payload } = record
  const createdAt = new Date(createdAtMs).toISOString()
  return { log, lsn, createdAt, ...(keys.length > 0 ? { keys } : {}), payload: plain(payload) }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The value in forms that JSON has. */
function plain(value: unknown): unknown {
  switch (typeof value) {
    case 'bigint':
      return { $bigint: String(value) }
    case 'number':
      return Number.isFinite(value) && !Object.is(value, -0) ? value : numberWord(value)
    case 'object':
      return value === null ? null : plainObject(value)
    default:
      return value
  }
}

function numberWord(value: number): object {
  return { $number: Object.is(value, -0) ? '-0' : String(value) }
}

function plainObject(value: object): unknown {
  if (value instanceof Uint8Array) return plainBytes(value)
  if (value instanceof Date) return { $date: value.toISOString() }
  if (Array.isArray(value)) return value.map(plain)
  const members = Object.entries(value).map(([name, member]: [string, unknown]) => {
    return [name.startsWith('$') ? `$${name}` : name, plain(member)] as const
  })
  return Object.fromEntries(members)
}

/** Text is shown as text, where the bytes are nothing else. */
function plainBytes(bytes: Uint8Array): object {
  try {
    return { $utf8: utf8.decode(bytes) }
  } catch {
    return { $base64: Buffer.from(bytes).toString('base64') }
  }
}
