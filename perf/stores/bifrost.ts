/** The store that all of this is about. */
import { pathToFileURL } from 'node:url'
import type { Bifrost, BifrostClass, LogId, LogReader, LogRecord, Lsn } from '../../index.ts'
import type { Counters, Sink, Store, StoreSpec } from './store.ts'

interface Library {
  readonly Bifrost: BifrostClass
}

export async function openBifrost(spec: StoreSpec): Promise<BifrostStore> {
  const { Bifrost } = await loadLibrary(spec.library)
  const logIds = Array.from({ length: spec.logs ?? 1 }, (_, index) => logName(index))
  const bifrost = await Bifrost.open({ ...spec.options, dir: spec.dir, logs: logIds })
  return new BifrostStore(bifrost, logIds)
}

async function loadLibrary(path: string | undefined): Promise<Library> {
  if (path === undefined) return import('../../index.ts')
  return (await import(pathToFileURL(path).href)) as Library
}

function logName(index: number): LogId {
  return `log-${index}`
}

export class BifrostStore implements Store {
  readonly bifrost: Bifrost
  readonly logIds: readonly LogId[]

  constructor(bifrost: Bifrost, logIds: readonly LogId[]) {
    this.bifrost = bifrost
    this.logIds = logIds
  }

  append(log: number, payload: Uint8Array): Promise<Lsn> {
    return this.bifrost.append(this.logIds[log] as LogId, payload)
  }

  appendBatch(log: number, payloads: readonly Uint8Array[]): Promise<Lsn> {
    return this.bifrost.appendBatch(this.logIds[log] as LogId, payloads)
  }

  appendStream(log: number, payloads: Iterable<Uint8Array>): Promise<unknown> {
    return this.bifrost.appendStream(this.logIds[log] as LogId, payloads)
  }

  reader(log: number, follow: boolean): LogReader<LogRecord<Uint8Array>> {
    return this.bifrost.createReader<Uint8Array>(this.logIds[log] as LogId, { follow })
  }

  async scan(sink: Sink): Promise<void> {
    await this.scanChunks(0, sink)
  }

  async scanChunks(log: number, sink: Sink): Promise<void> {
    for await (const chunk of this.reader(log, false).chunks()) {
      for (const record of chunk) if (record.kind === 'data') sink(record.payload)
    }
  }

  async scanRecords(log: number, sink: Sink): Promise<void> {
    for await (const record of this.reader(log, false)) {
      if (record.kind === 'data') sink(record.payload)
    }
  }

  counters(): Counters {
    const metrics = this.bifrost.metrics()
    return {
      records: metrics.bifrost_localloglet_appends_total,
      syncs: metrics.bifrost_localloglet_sync_duration_seconds.count,
    }
  }

  close(): Promise<void> {
    return this.bifrost.close()
  }
}
