/** Commits beside readers of data that is in no cache. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { LogReader, LogRecord } from '../../index.ts'
import { Latencies } from '../support/latencies.ts'
import { bytesReadFromDevice } from '../support/machine.ts'
import { load } from './load.ts'
import type { Session } from './session.ts'

export interface ColdReadArguments {
  /** Each reads a log of its own, from where it stopped the last time. */
  readonly readers: number
  readonly callers: number
  readonly size: number
  readonly ms: number
}

export interface ColdReadResult {
  /** HDR histogram of commits: one write and one sync. */
  readonly commits: string
  /** HDR histogram of appends, from the call to the acknowledgement. */
  readonly appends: string
  readonly recordsRead: number
  /** From the device. */
  readonly bytesRead: number
}

/** Logs below this are for the readers, and the one at it is for the callers. */
export const COLD_LOGS = 100

export async function coldReads(
  session: Session,
  args: ColdReadArguments,
): Promise<ColdReadResult> {
  const appends = new Latencies()
  const commits = new CommitWatch()
  const before = bytesReadFromDevice()
  const readers = new ColdReaders(session)
  readers.start(args.readers)
  const payloads = session.payloadsOf(args.size)
  await load(
    async () => {
      const calledAt = performance.now()
      await session.store.append(COLD_LOGS, payloads.next())
      appends.record(performance.now() - calledAt)
    },
    args.callers,
    args.ms,
  )
  const recordsRead = await readers.stop()
  return {
    commits: commits.end().encode(),
    appends: appends.encode(),
    recordsRead,
    bytesRead: bytesReadFromDevice() - before,
  }
}

/** Times the group commits by the tracing channel that the engine has for it. */
class CommitWatch {
  readonly #latencies = new Latencies()
  readonly #begunAt = new Map<object, number>()
  readonly #begin = (message: unknown): void => {
    this.#begunAt.set(message as object, performance.now())
  }
  readonly #finish = (message: unknown): void => {
    const begunAt = this.#begunAt.get(message as object)
    this.#begunAt.delete(message as object)
    if (begunAt !== undefined) this.#latencies.record(performance.now() - begunAt)
  }

  constructor() {
    subscribe('tracing:bifrost:commit:start', this.#begin)
    subscribe('tracing:bifrost:commit:asyncEnd', this.#finish)
  }

  end(): Latencies {
    unsubscribe('tracing:bifrost:commit:start', this.#begin)
    unsubscribe('tracing:bifrost:commit:asyncEnd', this.#finish)
    return this.#latencies
  }
}

/** Where each reader goes on in the next round, so that it doesn't meet what it has warmed. */
const nextLsns = new Map<number, number>()

class ColdReaders {
  readonly #session: Session
  readonly #readers = new Set<LogReader<LogRecord>>()
  #running: readonly Promise<number>[] = []
  #isOver = false

  constructor(session: Session) {
    this.#session = session
  }

  start(count: number): void {
    this.#running = Array.from({ length: count }, (_, log) => this.#readOnAndOn(log))
  }

  /** Reads a log, from its start again when it ends, until all are stopped. */
  async #readOnAndOn(log: number): Promise<number> {
    let records = 0
    while (!this.#isOver) records += await this.#read(log)
    return records
  }

  async #read(log: number): Promise<number> {
    const { bifrost, logIds } = this.#session.bifrost
    const from = nextLsns.get(log)
    const reader = bifrost.createReader(logIds[log] as string, { from, follow: false })
    this.#readers.add(reader)
    let records = 0
    for await (const record of reader) {
      records++
      nextLsns.set(log, record.lsn + 1)
    }
    this.#readers.delete(reader)
    if (!this.#isOver) nextLsns.delete(log)
    return records
  }

  async stop(): Promise<number> {
    this.#isOver = true
    await Promise.all([...this.#readers].map((reader) => reader.return()))
    const counts = await Promise.all(this.#running)
    return counts.reduce((sum, count) => sum + count, 0)
  }
}
