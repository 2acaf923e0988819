/** Everything that a store gives back through its public API, to hold against the model. */
import { createHash } from 'node:crypto'
import type { Bifrost, LogRecord } from '../../index.ts'
import { payloadOf, type KillPayload } from './kill-ops.ts'
import { ModelStore, type ModelLog, type RecordName } from './kill-model.ts'

export interface DumpedRecord {
  readonly lsn: number
  readonly n: number
  readonly i: number
  readonly hash: string
}

export interface DumpedLog {
  readonly name: string
  readonly tail: number
  readonly trimPoint: number
  readonly seal: string | null
  readonly records: readonly DumpedRecord[]
}

export async function dumpStore(bifrost: Bifrost): Promise<DumpedLog[]> {
  return Promise.all(bifrost.logIds().map((name) => dumpLog(bifrost, name)))
}

async function dumpLog(bifrost: Bifrost, name: string): Promise<DumpedLog> {
  const { lsn: tail, sealed, reason } = await bifrost.findTail(name)
  const trimPoint = await bifrost.getTrimPoint(name)
  const records: DumpedRecord[] = []
  for await (const record of bifrost.createReader<KillPayload>(name, { follow: false })) {
    const dumped = dumpRecord(record)
    if (dumped === undefined) requireTrimGap(record, trimPoint)
    else records.push(dumped)
  }
  return { name, tail, trimPoint, seal: sealed ? (reason ?? '') : null, records }
}

function dumpRecord(record: LogRecord<KillPayload>): DumpedRecord | undefined {
  if (record.kind !== 'data') return undefined
  const { n, i, bytes } = record.payload
  return { lsn: record.lsn, n, i, hash: hashOf(bytes) }
}

function requireTrimGap({ kind, lsn, ...gap }: LogRecord, trimPoint: number): void {
  const until = 'until' in gap ? gap.until : undefined
  if (kind === 'trim-gap' && lsn === 1 && until === trimPoint) return
  throw new Error(`${kind} from ${lsn} to ${String(until)}, with a trim point of ${trimPoint}`)
}

function hashOf(bytes: Uint8Array): string {
  return createHash('md5').update(bytes).digest('base64')
}

/** What is dumped as a model. Throws if a record's bytes are not those of its operation. */
export function asModel(dump: readonly DumpedLog[]): ModelStore {
  const model = new ModelStore()
  for (const log of dump) model.logs.set(log.name, asModelLog(log))
  return model
}

function asModelLog({ name, tail, trimPoint, seal, records }: DumpedLog): ModelLog {
  const named = records.map(({ lsn, n, i, hash }): [number, RecordName] => {
    if (hash !== hashOf(payloadOf(n, i).bytes)) throw new Error(`${name} ${lsn}: other bytes`)
    return [lsn, `${n}:${i}`]
  })
  return { tail, trimPoint, seal: seal ?? undefined, records: new Map(named) }
}
