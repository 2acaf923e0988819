/**
 * What the server writes into a stream's log: one data record per message, and notes, which carry
 * no data. Who wrote a record stands in the record itself, so writers and data can't disagree.
 *
 *     data  [1, data, bytes, mark, writer?, writers?]
 *     note  [2, lsn,  bytes, mark, writer?, writers?]
 *
 * `bytes` is how much data the stream has up to and with this record, `lsn` the stream's LSN of the
 * last data record before a note. `mark` is the LSN, in the log, of the record from which on the
 * state of the writers can be rebuilt; 0 while no writer has had any. The record at the mark
 * carries that state as it was before it (`writers`), unless there was none.
 */
import type { DataRecord } from '../index.ts'
import { HttpError } from './http-error.ts'

/** An idempotent producer's stamp on a record, or the Stream-Seq, or both. */
export interface WriterStamp {
  readonly producer: ProducerStamp | undefined
  /** The writer's Stream-Seq. */
  readonly streamSeq: string | undefined
}

export interface ProducerStamp {
  readonly id: string
  readonly epoch: number
  readonly seq: number
}

/** One producer in a snapshot; `seenAtMs` is when it last wrote. */
export interface KnownProducer extends ProducerStamp {
  readonly seenAtMs: number
}

export interface WritersSnapshot {
  readonly producers: readonly KnownProducer[]
  readonly streamSeq: string | undefined
}

interface RecordFields {
  readonly bytes: number
  readonly mark: number
  readonly writer: WriterStamp | undefined
  readonly writers: WritersSnapshot | undefined
}

export interface MessageRecord extends RecordFields {
  readonly kind: 'data'
  readonly data: Uint8Array
}

export interface NoteRecord extends RecordFields {
  readonly kind: 'note'
  readonly lsn: number
}

export type StreamRecord = MessageRecord | NoteRecord

const DATA = 1
const NOTE = 2

/** The payload of a record. */
export function encodeRecord(record: StreamRecord): readonly unknown[] {
  const { bytes, mark, writer, writers } = record
  const start =
    record.kind === 'data' ? [DATA, record.data, bytes, mark] : [NOTE, record.lsn, bytes, mark]
  if (writers !== undefined) return [...start, packWriter(writer), packWriters(writers)]
  return writer === undefined ? start : [...start, packWriter(writer)]
}

function packWriter(writer: WriterStamp | undefined): readonly unknown[] | null {
  if (writer === undefined) return null
  const { producer, streamSeq = null } = writer
  if (producer === undefined) return [null, 0, 0, streamSeq]
  return [producer.id, producer.epoch, producer.seq, streamSeq]
}

function packWriters({ producers, streamSeq }: WritersSnapshot): readonly unknown[] {
  const rows = producers.map(({ id, epoch, seq, seenAtMs }) => [id, epoch, seq, seenAtMs])
  return [streamSeq ?? null, rows]
}

/** Reads a record back. Throws 500 for what the server did not write. */
export function decodeRecord({ payload, lsn }: DataRecord): StreamRecord {
  if (!Array.isArray(payload)) throw foreign(lsn)
  const [kind, first, bytes, mark, writer, writers] = payload as readonly unknown[]
  if (typeof bytes !== 'number' || typeof mark !== 'number') throw foreign(lsn)
  const fields = { bytes, mark, writer: unpackWriter(writer), writers: unpackWriters(writers) }
  if (kind === DATA && first instanceof Uint8Array) return { kind: 'data', data: first, ...fields }
  if (kind === NOTE && typeof first === 'number') return { kind: 'note', lsn: first, ...fields }
  throw foreign(lsn)
}

function unpackWriter(packed: unknown): WriterStamp | undefined {
  if (packed === undefined || packed === null) return undefined
  const [id, epoch, seq, streamSeq] = packed as [string | null, number, number, string | null]
  const producer = id === null ? undefined : { id, epoch, seq }
  return { producer, streamSeq: streamSeq ?? undefined }
}

function unpackWriters(packed: unknown): WritersSnapshot | undefined {
  if (packed === undefined || packed === null) return undefined
  const [streamSeq, rows] = packed as [string | null, [string, number, number, number][]]
  const producers = rows.map(([id, epoch, seq, seenAtMs]) => ({ id, epoch, seq, seenAtMs }))
  return { producers, streamSeq: streamSeq ?? undefined }
}

function foreign(lsn: number): HttpError {
  const message = `The record at LSN ${lsn} of this stream's log is not the server's`
  return new HttpError(500, 'FOREIGN_RECORD', message)
}
