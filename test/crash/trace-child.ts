/**
 * The process whose system calls are traced. Records carry tokens, and every acknowledgement is
 * written to descriptor 3 when it comes, so that both can be found in the trace.
 *
 *     ack <token>    append resolved
 *     ack trim       trim resolved
 *
 * Arguments: directory, commit mode, first token, how to end ('close' or 'die').
 */
import { readdirSync, writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { Bifrost } from '../../index.ts'
import { tokenOf } from './trace.ts'

const ACKS = 3
const CALLERS = 6
const APPENDS = 40

type Arguments = [dir: string, commitMode: 'async' | 'inline', first: string, end: string]
const [dir, commitMode, first, end] = process.argv.slice(2) as Arguments
const logs = ['a', 'b']
const oldestSegment = (): string | undefined =>
  readdirSync(dir)
    .sort()
    .find((name) => name.endsWith('.segment'))

const small = { segmentSizeBytes: 64 * 1024, reserveBytes: 4096 }
const bifrost = await Bifrost.open({ dir, commitMode, logs, ...small })
let next = Number(first)

async function call(): Promise<void> {
  for (let i = 0; i < APPENDS; i++) {
    const token = tokenOf(next++)
    await bifrost.append(logs[i % 2] as string, { token, padding: 'x'.repeat(900) })
    writeSync(ACKS, `ack ${token}\n`)
  }
}
await Promise.all(Array.from({ length: CALLERS }, call))
if (end === 'die') process.kill(process.pid, 'SIGKILL')

const oldest = oldestSegment()
for (const log of logs) await bifrost.trim(log, Number.MAX_SAFE_INTEGER)
writeSync(ACKS, 'ack trim\n')
while (oldestSegment() === oldest) await sleep(5)
await bifrost.close()
