/** Traces the system calls of a process with strace, and reads what strace writes. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** One system call, however its lines were cut up by those of other threads. */
export interface SystemCall {
  readonly name: string
  /** Everything between the parentheses. */
  readonly args: string
  /** What it returned; negative if it failed. */
  readonly result: number
  /** The file of the descriptor that it was given, or that it returned if it was an open. */
  readonly path: string
  /** Where the call and its return stand in the order of all events. */
  readonly start: number
  readonly end: number
}

const TRACED = [
  ...['openat', 'open', 'creat', 'close', 'flock', 'ftruncate', 'fallocate'],
  ...['write', 'writev', 'pwrite64', 'pwritev', 'pwritev2', 'io_uring_enter'],
  ...['fsync', 'fdatasync', 'sync_file_range', 'sync', 'syncfs', 'msync'],
  ...['rename', 'renameat', 'renameat2', 'unlink', 'unlinkat'],
]
/** More than a group of the traced process takes, so that every token is in the trace. */
const STRING_BYTES = 64 * 1024
/** A child that hangs is stopped after this long. */
const TIMEOUT_MS = 120_000
const CHILD = fileURLToPath(new URL('./trace-child.js', import.meta.url))

/** What is in a record, and in its acknowledgement. */
export function tokenOf(n: number): string {
  return `token-${String(n).padStart(6, '0')}`
}

/** Why nothing can be traced here, if nothing can. */
export function whyNoTrace(): string | undefined {
  if (process.platform !== 'linux') return 'strace is a tool of Linux'
  const { status, error } = spawnSync('strace', ['-o', '/dev/null', 'true'])
  if (error !== undefined) return `strace is not installed: ${error.message}`
  return status === 0 ? undefined : 'strace may not trace here'
}

export interface TraceOptions {
  readonly dir: string
  readonly commitMode?: 'async' | 'inline'
  readonly firstToken: number
  readonly end: 'close' | 'die'
}

/** Runs the child on a store under strace; returns the lines of the trace. `scratch` gets its files. */
export function traceChild(scratch: string, options: TraceOptions): string[] {
  const { dir, commitMode = 'async', firstToken, end } = options
  const output = join(scratch, 'trace')
  const acks = openSync(join(scratch, 'acks'), 'w')
  const strace = ['-f', '-y', '-v', '-s', String(STRING_BYTES), '-o', output]
  const child = [process.execPath, CHILD, dir, commitMode, String(firstToken), end]
  const { signal, status, stderr } = spawnSync(
    'strace',
    [...strace, '-e', `trace=${TRACED.map((name) => `?${name}`).join(',')}`, ...child],
    { stdio: ['ignore', 'ignore', 'pipe', acks], encoding: 'utf8', timeout: TIMEOUT_MS },
  )
  closeSync(acks)
  // strace ends as its child did.
  if (end === 'die') assert.equal(signal, 'SIGKILL', stderr)
  else assert.equal(status, 0, stderr)
  return readFileSync(output, 'utf8').split('\n')
}

interface Unfinished {
  readonly text: string
  readonly start: number
}

/** Reads the lines of a trace, in the order of the calls' returns. */
export function readTrace(lines: readonly string[]): SystemCall[] {
  const unfinished = new Map<string, Unfinished>()
  const calls: SystemCall[] = []
  lines.forEach((line, index) => {
    const [, thread = '', event = ''] = /^(\d+) +(.*)$/s.exec(line) ?? []
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/s.exec(event)?.[1]
    if (event.endsWith(' <unfinished ...>')) {
      unfinished.set(thread, { text: event.slice(0, -' <unfinished ...>'.length), start: index })
    } else if (resumed === undefined) add(calls, event, index, index)
    else {
      const head = unfinished.get(thread)
      if (head !== undefined) add(calls, head.text + resumed, head.start, index)
    }
  })
  return calls
}

function add(calls: SystemCall[], text: string, start: number, end: number): void {
  const match = /^(\w+)\((.*)\) += (-?\d+)(?:<([^>]*)>)?/s.exec(text)
  if (match === null) return
  const [, name = '', args = '', result, returned] = match
  const path = returned ?? /^\d+<([^>]*)>/.exec(args)?.[1] ?? ''
  calls.push({ name, args, result: Number(result), path, start, end })
}
