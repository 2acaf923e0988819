/** Tasks that read. */
import { Latencies } from '../support/latencies.ts'
import type { Sink } from '../stores/store.ts'
import type { Session } from './session.ts'

export interface ScanArguments {
  /** Bifrost: by `chunks()`, or record by record. The others know one way. */
  readonly by?: 'chunks' | 'records' | undefined
  /** Bifrost: the logs to read, one after the other. Default the first. */
  readonly logs?: readonly number[] | undefined
}

export interface ScanResult {
  readonly records: number
  readonly bytes: number
  readonly seconds: number
}

/** Reads everything, and looks at each record. */
export async function scan(session: Session, args: ScanArguments): Promise<ScanResult> {
  let records = 0
  let bytes = 0
  const sink: Sink = (payload) => {
    records++
    bytes += payload.length
  }
  const startedAt = performance.now()
  await scanAll(session, args, sink)
  return { records, bytes, seconds: (performance.now() - startedAt) / 1000 }
}

async function scanAll(session: Session, { by, logs }: ScanArguments, sink: Sink): Promise<void> {
  if (by === undefined) {
    await session.store.scan(sink)
    return
  }
  for (const log of logs ?? [0]) {
    await (by === 'chunks'
      ? session.bifrost.scanChunks(log, sink)
      : session.bifrost.scanRecords(log, sink))
  }
}

export interface WriteToReadArguments {
  readonly size: number
  readonly ms: number
  readonly leadMs: number
  /** Whether anybody reads; without, it is an append that is measured. */
  readonly isRead: boolean
}

/** HDR histograms: from the call of an append to its acknowledgement, and to its reader. */
export interface WriteToReadResult {
  readonly append: string
  readonly read: string
}

/** One caller appends, one record at a time, while a reader follows the tail of the same log. */
export async function writeToRead(
  session: Session,
  args: WriteToReadArguments,
): Promise<WriteToReadResult> {
  const writer = new TimedWriter(session, args.size)
  const { lsn } = await session.bifrost.bifrost.findTail(session.bifrost.logIds[0] as string)
  writer.nextLsn = lsn
  const reader = session.bifrost.bifrost.createReader(session.bifrost.logIds[0] as string, {
    from: lsn,
  })
  const following = (async () => {
    for await (const record of reader) writer.wasRead(record.lsn)
  })()
  if (!args.isRead) await reader.return()
  await writer.run(args.leadMs)
  writer.forget()
  await writer.run(args.ms)
  await reader.return()
  await following
  return { append: writer.appended.encode(), read: writer.read.encode() }
}

/** More appends than this are never between the writer and the reader. */
const RING = 1024

class TimedWriter {
  appended: Latencies = new Latencies()
  read: Latencies = new Latencies()
  nextLsn = 1
  readonly #session: Session
  readonly #size: number
  readonly #calledAt = new Float64Array(RING)

  constructor(session: Session, size: number) {
    this.#session = session
    this.#size = size
  }

  async run(ms: number): Promise<void> {
    const end = performance.now() + ms
    const payloads = this.#session.payloadsOf(this.#size)
    for (let now = performance.now(); now < end; now = performance.now()) {
      this.#calledAt[this.nextLsn++ % RING] = now
      await this.#session.store.append(0, payloads.next())
      this.appended.record(performance.now() - now)
    }
  }

  wasRead(lsn: number): void {
    this.read.record(performance.now() - (this.#calledAt[lsn % RING] as number))
  }

  forget(): void {
    this.appended = new Latencies()
    this.read = new Latencies()
  }
}
