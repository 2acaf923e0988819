/**
 * The end of a stream's log: what the next append builds on. It is read back from the log, never
 * kept beside it: the last record says how much data there is and where the state of the writers
 * can be rebuilt from.
 */
import type { Bifrost, DataRecord } from '../index.ts'
import type { StreamOffset } from './offset.ts'
import { decodeRecord, type StreamRecord } from './stream-record.ts'
import { Writers } from './writers.ts'

export interface StreamTail {
  /** The LSN, in the log, that the next record gets. */
  readonly next: number
  /** The place after the last data. */
  readonly offset: StreamOffset
  /** From which LSN of the log the writers' state can be rebuilt; 0 while there is none. */
  readonly mark: number
}

/** The state of the writers, and how much would have to be replayed to rebuild it. */
export interface ReplayedWriters {
  readonly writers: Writers
  readonly records: number
  readonly bytes: number
}

/** Reads the end of a log. `base` is where the log starts in its stream. */
export async function readTail(
  bifrost: Bifrost,
  logId: string,
  base: StreamOffset,
): Promise<StreamTail> {
  const { lsn: next } = await bifrost.findTail(logId)
  if (next === 1) return { next, offset: base, mark: 0 }
  const last = await bifrost.readNextSingleOpt(logId, next - 2)
  if (last?.kind !== 'data') return lostTail(next, base)
  const record = decodeRecord(last)
  const lsn = record.kind === 'data' ? base.lsn + last.lsn : record.lsn
  return { next, offset: { lsn, bytes: record.bytes }, mark: record.mark }
}

/**
 * The last record was lost to damage, or trimmed by somebody else, and with it how much data there
 * was. Places stay in order, because their LSNs are.
 */
function lostTail(next: number, base: StreamOffset): StreamTail {
  return { next, offset: { lsn: base.lsn + next - 1, bytes: base.bytes }, mark: 0 }
}

/** Rebuilds the state of the writers from the records between mark and tail. */
export async function replayWriters(
  bifrost: Bifrost,
  logId: string,
  { mark, next }: StreamTail,
  maxProducers: number,
): Promise<ReplayedWriters> {
  const writers = new Writers(maxProducers)
  let [records, bytes] = [0, 0]
  if (mark === 0) return { writers, records, bytes }
  const reader = bifrost.createReader(logId, { from: mark, to: next - 1, follow: false })
  for await (const chunk of reader.chunks()) {
    for (const record of chunk) {
      if (record.kind !== 'data') continue
      const decoded = decodeRecord(record)
      replay(writers, record, decoded)
      records++
      bytes += decoded.kind === 'data' ? decoded.data.length : 0
    }
  }
  return { writers, records, bytes }
}

function replay(writers: Writers, { createdAtMs }: DataRecord, record: StreamRecord): void {
  if (record.writers !== undefined) writers.restore(record.writers)
  if (record.writer !== undefined) writers.accept(record.writer, createdAtMs)
}
