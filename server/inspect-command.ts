/** `bifrost inspect`: what a store is made of, without changing it, also beside its writer. */
import { inspect, type Inspection, type SegmentInfo } from '../engine/inspect.ts'
import { Bifrost } from '../index.ts'
import { jsonText, print, readArgs, readDir, type Command } from './command.ts'

interface LogInfo {
  readonly logId: string
  readonly tail: number
  readonly trimPoint: number
  readonly sealed: boolean
  readonly reason: string | undefined
}

export const inspectCommand: Command = {
  usage: `  bifrost inspect DIR [--json]
      Shows segments and logs with their tails, trim points and seals. Read-only.`,

  async run(args) {
    const options = { dir: { type: 'string' }, json: { type: 'boolean' } } as const
    const { values, positionals } = readArgs(args, options, 1)
    const dir = readDir(values.dir, positionals)
    const store = await inspect(dir)
    // A damaged store may not open; its files are shown all the same.
    const [logs] = await Promise.allSettled([readLogs(dir)])
    const known = logs.status === 'fulfilled' ? logs.value : undefined
    await print(
      values.json === true ? `${jsonText({ ...store, logs: known }, 2)}\n` : text(store, known),
    )
    if (logs.status === 'rejected') throw logs.reason
    return 0
  },
}

function text({ storeId, closedCleanly, segments }: Inspection, logs?: readonly LogInfo[]): string {
  const end = closedCleanly ? 'closed cleanly' : 'open, or not closed cleanly'
  const parts = [
    `store ${storeId ?? 'of unknown id'}, ${end}\n`,
    table(['segment', 'bytes', 'created'], segments.map(segmentRow)),
  ]
  if (logs !== undefined) parts.push(table(['log', 'tail', 'trim point', 'seal'], logs.map(logRow)))
  return parts.join('\n')
}

async function readLogs(dir: string): Promise<LogInfo[]> {
  const bifrost = await Bifrost.open({ dir, readOnly: true })
  try {
    return await Promise.all(
      bifrost.logIds().map(async (logId) => {
        const { lsn: tail, sealed, reason } = await bifrost.findTail(logId)
        return { logId, tail, trimPoint: await bifrost.getTrimPoint(logId), sealed, reason }
      }),
    )
  } finally {
    await bifrost.close()
  }
}

function segmentRow({ file, bytes, createdAtMs }: SegmentInfo): string[] {
  const created =
    createdAtMs === undefined ? 'not begun, or its header does not check' : iso(createdAtMs)
  return [file, String(bytes), created]
}

function logRow({ logId, tail, trimPoint, sealed, reason }: LogInfo): string[] {
  const seal = reason === undefined ? 'sealed' : `sealed: ${reason}`
  return [printable(logId), String(tail), String(trimPoint), sealed ? printable(seal) : '']
}

function iso(ms: number): string {
  return new Date(ms).toISOString()
}

/** A name may hold anything; a terminal should see no control characters. */
function printable(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, '\ufffd')
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows]
  const widths = head.map((_, column) => {
    return all.reduce((width, row) => Math.max(width, row[column]?.length ?? 0), 0)
  })
  const line = (row: readonly string[]): string => {
    return row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')
  }
  return all.map((row) => `${line(row).trimEnd()}\n`).join('')
}
