/** `bifrost inspect`: what a store is made of, without changing it, also beside its writer. */
import { inspect, type SegmentInfo } from '../engine/inspect.ts'
import { Bifrost } from '../index.ts'
import { print, readArgs, requireDir, type Command } from './command.ts'

interface LogInfo {
  readonly logId: string
  readonly tail: number
  readonly trimPoint: number
  readonly seal: string
}

export const inspectCommand: Command = {
  usage: `  bifrost inspect --dir DIR [--json]
      Shows segments and logs with their tails, trim points and seals. Read-only.`,

  async run(args) {
    const { values } = readArgs(args, { dir: { type: 'string' }, json: { type: 'boolean' } })
    const dir = requireDir(values.dir)
    const { segments, ...store } = await inspect(dir)
    if (values.json === true) {
      const logs = await readLogs(dir)
      await print(`${JSON.stringify({ ...store, segments, logs }, undefined, 2)}\n`)
      return 0
    }
    const end = store.closedCleanly ? 'closed cleanly' : 'open, or not closed cleanly'
    await print(`store ${store.storeId ?? 'of unknown id'}, ${end}\n\n`)
    await print(table(['segment', 'bytes', 'created'], segments.map(segmentRow)))
    // A damaged store may not open; the files are shown all the same.
    const logs = await readLogs(dir)
    await print(`\n${table(['log', 'tail', 'trim point', 'seal'], logs.map(logRow))}`)
    return 0
  },
}

async function readLogs(dir: string): Promise<LogInfo[]> {
  const bifrost = await Bifrost.open({ dir, readOnly: true })
  try {
    return await Promise.all(
      bifrost.logIds().map(async (logId) => {
        const { lsn: tail, sealed, reason } = await bifrost.findTail(logId)
        const seal = sealed ? (reason ?? 'sealed') : ''
        return { logId, tail, trimPoint: await bifrost.getTrimPoint(logId), seal }
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

function logRow({ logId, tail, trimPoint, seal }: LogInfo): string[] {
  return [printable(logId), String(tail), String(trimPoint), printable(seal)]
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
