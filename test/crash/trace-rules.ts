/**
 * What a trace of system calls must show for an acknowledgement to be true. Every rule returns what
 * breaks it, in words; a sound trace breaks none.
 */
import type { SystemCall } from './trace.ts'

const WRITES = new Set(['write', 'writev', 'pwrite64', 'pwritev', 'pwritev2'])
const SYNCS = new Set(['fsync', 'fdatasync'])
const isSegment = (path: string): boolean => path.endsWith('.segment')
const isMetadata = (path: string): boolean => path.endsWith('/metadata')
const isTemporary = (path: string): boolean => path.endsWith('/metadata.new')
const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1)

/** A write, and when what it wrote was durable: an event, or never. */
interface TracedWrite {
  readonly call: SystemCall
  readonly durableAt: number
}

/** An acknowledgement, and the first write that carries what it acknowledges. */
export interface Acknowledgement {
  readonly token: string
  readonly at: number
  readonly write: TracedWrite | undefined
}

export class Trace {
  readonly calls: readonly SystemCall[]
  readonly dir: string
  readonly writes: readonly TracedWrite[]
  readonly acks: readonly Acknowledgement[]
  /** Whether it was killed, so that what was under way then was never finished. */
  readonly isKilled: boolean
  readonly #existing: readonly string[]

  /** `dir` is the store's directory, `existing` what was in it before the process was started. */
  constructor(
    calls: readonly SystemCall[],
    dir: string,
    existing: readonly string[] = [],
    isKilled = false,
  ) {
    this.calls = calls
    this.isKilled = isKilled
    this.dir = dir
    this.#existing = existing
    this.writes = tracedWrites(calls)
    this.acks = calls.flatMap((call) => this.#ackIn(call))
  }

  #ackIn({ name, args, start }: SystemCall): Acknowledgement[] {
    const token = name === 'write' ? /^3<[^>]*>, "ack ([\w-]+)\\n"/.exec(args)?.[1] : undefined
    if (token === undefined) return []
    const write = this.writes.find(({ call }) => isSegment(call.path) && call.args.includes(token))
    return [{ token, at: start, write }]
  }

  /** The first fsync of the directory that starts at or after an event. */
  directorySync(from: number): SystemCall | undefined {
    return this.calls.find(
      ({ name, path, start }) => name === 'fsync' && path === this.dir && start >= from,
    )
  }

  renames(): SystemCall[] {
    const target = `"${this.dir}/metadata"`
    return this.calls.filter(({ name, args }) => name.startsWith('rename') && args.endsWith(target))
  }

  unlinksOfSegments(): SystemCall[] {
    return this.calls.filter(
      ({ name, args, result }) =>
        name.startsWith('unlink') && result === 0 && args.includes('.segment"'),
    )
  }

  /** Segments that were made here, with the call that made each. */
  created(): Map<string, SystemCall> {
    const created = new Map<string, SystemCall>()
    for (const call of this.calls) {
      const { name, args, path } = call
      const makes = name === 'openat' && args.includes('O_CREAT') && isSegment(path)
      if (!makes || this.#existing.includes(nameOf(path)) || created.has(path)) continue
      created.set(path, call)
    }
    return created
  }

  /** Writes to segments through descriptors that are for commits. */
  commits(): TracedWrite[] {
    return this.writes.filter(
      ({ call, durableAt }) => isSegment(call.path) && durableAt === call.end,
    )
  }
}

/** The writes of a trace. A write to an O_DSYNC descriptor is durable when it returns. */
function tracedWrites(calls: readonly SystemCall[]): TracedWrite[] {
  const synchronous = new Map<string, boolean>()
  const writes: TracedWrite[] = []
  for (const call of calls) {
    const { name, args, result } = call
    if (name === 'openat') synchronous.set(String(result), /\bO_D?SYNC\b/.test(args))
    if (!WRITES.has(name)) continue
    const descriptor = /^\d+/.exec(args)?.[0] ?? ''
    const isWhole = result === lengthIn(call)
    const isSynchronous = synchronous.get(descriptor) === true
    const durableAt = isSynchronous ? call.end : (syncAfter(calls, call)?.end ?? Infinity)
    writes.push({ call, durableAt: isWhole ? durableAt : Infinity })
  }
  return writes
}

/** The first sync of the file that starts after the write returned. */
function syncAfter(calls: readonly SystemCall[], write: SystemCall): SystemCall | undefined {
  return calls.find(
    ({ name, path, start }) => SYNCS.has(name) && path === write.path && start > write.end,
  )
}

/** How many bytes a write was given. */
function lengthIn({ name, args }: SystemCall): number {
  if (!name.includes('writev')) {
    const count = name === 'write' ? /, (\d+)$/ : /, (\d+), \d+$/
    return Number(count.exec(args)?.[1])
  }
  let sum = 0
  for (const [, length] of args.matchAll(/iov_len=(\d+)\}/g)) sum += Number(length)
  return sum
}

/** Every acknowledgement comes after the synced write of what it acknowledges. */
export function unsyncedAcks({ acks }: Trace): string[] {
  return acks.flatMap(({ token, at, write }) => {
    if (token === 'trim') return []
    if (write === undefined) return [`${token} is acknowledged, and was written nowhere`]
    if (write.durableAt < at) return []
    const when = write.durableAt === Infinity ? 'never' : 'later'
    return [`${token} is acknowledged, and what carries it was synced ${when}`]
  })
}

/**
 * A new segment's name is durable, and the metadata durably vouches for it, before anything in it
 * is acknowledged.
 */
export function unnamedSegments(trace: Trace): string[] {
  return [...trace.created()].flatMap(([path, made]) => {
    const first = trace.acks.find(({ write }) => write?.call.path === path)
    if (first === undefined) return []
    const synced = trace.directorySync(made.end)
    if (synced === undefined || synced.end >= first.at) {
      return [`the name of ${nameOf(path)} was not synced before the first acknowledgement in it`]
    }
    const named = trace.renames().find(({ start }) => start > synced.end)
    const vouched = named === undefined ? undefined : trace.directorySync(named.end)
    if (vouched !== undefined && vouched.end < first.at) return []
    return [`no metadata vouched for ${nameOf(path)} before the first acknowledgement in it`]
  })
}

/** New metadata is synced before it takes the old one's place, and the directory after it. */
export function unsyncedRenames(trace: Trace): string[] {
  let from = 0
  return trace.renames().flatMap((rename) => {
    const writes = trace.writes.filter(
      ({ call }) => isTemporary(call.path) && call.start > from && call.end < rename.start,
    )
    from = rename.end
    const isSynced = writes.length > 0 && writes.every((write) => write.durableAt < rename.start)
    const problems = isSynced ? [] : ['metadata was renamed before it was synced']
    if (trace.directorySync(rename.end) === undefined && !trace.isKilled) {
      problems.push('the directory was not synced after the metadata was renamed')
    }
    return problems
  })
}

/** Before a segment is unlinked, a group that says so is durable; the directory is synced after. */
export function earlyUnlinks(trace: Trace): string[] {
  const trimmedAt = trace.acks.find(({ token }) => token === 'trim')?.at ?? Infinity
  return trace.unlinksOfSegments().flatMap((unlink) => {
    const declared = trace
      .commits()
      .some(({ call, durableAt }) => call.start > trimmedAt && durableAt < unlink.start)
    const problems = declared ? [] : ['a segment was unlinked before a group said that it is dead']
    if (trace.directorySync(unlink.end) === undefined) {
      problems.push('the directory was not synced after a segment was unlinked')
    }
    return problems
  })
}

/** The lock is taken before anything of the store is opened, and nobody waits for it in the kernel. */
export function blockingLocks({ calls, dir }: Trace): string[] {
  const locks = calls.filter(({ name }) => name === 'flock')
  const [first] = locks
  if (first === undefined) return ['nothing is locked']
  const problems = locks
    .filter(({ args }) => !/\bLOCK_EX\b/.test(args) || !/\bLOCK_NB\b/.test(args))
    .map(({ args }) => `a lock that blocks or is shared: flock(${args})`)
  const early = calls.some(
    ({ name, path, start }) =>
      name === 'openat' &&
      path.startsWith(`${dir}/`) &&
      !path.endsWith('/lock') &&
      start < first.end,
  )
  return early ? [...problems, 'a file of the store was opened before it was locked'] : problems
}

/** The metadata durably stops saying that the store was closed before anything is written. */
export function lateUncleanMark(trace: Trace): string[] {
  const [rename] = trace.renames()
  const marked = rename === undefined ? undefined : trace.directorySync(rename.end)
  const first = trace.writes.find(({ call }) => isSegment(call.path))
  if (first === undefined) return ['no segment was written to']
  if (marked !== undefined && marked.end < first.call.start) return []
  return ['a segment was written to before the metadata was durably marked']
}

/**
 * After a kill the tail is cut, its last groups are written again and synced, and the directory is
 * synced, all before the first commit. `lastToken` was acknowledged before the kill.
 */
export function missingRewrite(trace: Trace, lastToken: string): string[] {
  const commit = trace.commits()[0]?.call.start ?? Infinity
  const rewrite = trace.writes.find(
    ({ call }) => isSegment(call.path) && call.args.includes(lastToken),
  )
  if (rewrite === undefined) return ['the last group was not written again']
  const { call, durableAt } = rewrite
  const problems: string[] = []
  const isCut = trace.calls.some(
    ({ name, path, end }) => name === 'ftruncate' && path === call.path && end < call.start,
  )
  if (!isCut) problems.push('the tail was not cut before it was written again')
  if (durableAt >= commit) problems.push('the tail was not synced before the first commit')
  const synced = trace.directorySync(call.end)
  if (synced === undefined || synced.end >= commit) {
    problems.push('the directory was not synced before the first commit')
  }
  return problems
}

/** Whether the trace shows the metadata's own file being written in place, which it never is. */
export function metadataInPlace({ writes }: Trace): string[] {
  return writes
    .filter(({ call }) => isMetadata(call.path))
    .map(() => 'the metadata was written in place')
}
