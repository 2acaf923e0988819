/**
 * The whole API in a user's strict TypeScript: what should compile does, and what should not is
 * marked. It is compiled against the packed package and never run.
 */
import { createServer } from 'node:http'
import type { Writable } from 'node:stream'
import type { Registry } from 'prom-client'
import {
  Bifrost,
  LogError,
  Lsn,
  repair,
  verify,
  type AppendOptions,
  type AppendStreamResult,
  type Appender,
  type BifrostOptions,
  type DataRecord,
  type Entry,
  type GapRecord,
  type HistogramSnapshot,
  type Log,
  type LogReader,
  type LogRecord,
  type Logger,
  type TailState,
} from 'bifrost-log'
import {
  createHandler,
  registerMetrics,
  serve,
  type Authorize,
  type BifrostHandler,
  type BifrostServer,
  type HandlerOptions,
} from 'bifrost-log/server'

interface Order {
  readonly id: number
  readonly note?: string
}

const logger: Logger = {
  info: (fields, message) => console.log(fields, message),
  warn: (fields, message) => console.log(fields, message),
  error: (fields, message) => console.log(fields, message),
}

export async function open(): Promise<Bifrost> {
  const options: BifrostOptions = { dir: './data', logs: ['orders', 'emails'], logger }
  await Bifrost.open({ provider: 'memory' })
  await Bifrost.open({ dir: './data', readOnly: true, lockTimeoutMs: 100, commitMode: 'inline' })
  await Bifrost.open({ dir: undefined, segmentSizeBytes: 65_536, batchCommitDelayMs: 0 })
  // @ts-expect-error -- Options are required.
  await Bifrost.open()
  // @ts-expect-error -- An unknown option.
  await Bifrost.open({ directory: './data' })
  // @ts-expect-error -- An unknown provider.
  await Bifrost.open({ provider: 'cloud' })
  // @ts-expect-error -- Options are read-only.
  options.dir = './elsewhere'
  return Bifrost.open(options)
}

export async function append(bifrost: Bifrost, signal: AbortSignal): Promise<Lsn> {
  const options: AppendOptions = { keys: ['a'], expectedTail: 7, whenFull: 'reject', signal }
  const lsn: Lsn = await bifrost.append('orders', { id: 1 }, options)
  const first: number = await bifrost.appendBatch('orders', [{ id: 2 }, { id: 3 }])
  await bifrost.appendBatch<Order>('orders', [{ id: 4 }], { keys: ({ id }, i) => [`${id}-${i}`] })
  const entries: Entry[] = [{ logId: 'orders', payload: { id: 5 }, expectedTail: first }]
  const lsns: Lsn[] = await bifrost.appendMany([...entries, { logId: 'emails', payload: null }])
  // @ts-expect-error -- Neither 'wait' nor 'reject'.
  await bifrost.append('orders', { id: 6 }, { whenFull: 'drop' })
  // @ts-expect-error -- Keys are strings.
  await bifrost.append('orders', { id: 6 }, { keys: [1] })
  // @ts-expect-error -- Keys by function are for batches.
  await bifrost.append('orders', { id: 6 }, { keys: () => ['a'] })
  // @ts-expect-error -- A batch is an array.
  await bifrost.appendBatch('orders', { id: 6 })
  // @ts-expect-error -- An entry names its log.
  await bifrost.appendMany([{ payload: 1 }])
  return lsns[0] ?? lsn
}

export async function appendStream(bifrost: Bifrost, rows: AsyncIterable<Order>): Promise<void> {
  const result: AppendStreamResult = await bifrost.appendStream('orders', rows, {
    maxBatchCount: 10,
    maxBatchBytes: 1024,
    keys: (order) => [String(order.id)],
  })
  await bifrost.appendStream('orders', new Set([1, 2]))
  const last: Lsn | undefined = result.last
  // @ts-expect-error -- Nothing may have been appended.
  const certain: Lsn = result.first
  // @ts-expect-error -- A number is no source.
  await bifrost.appendStream('orders', 5)
  console.log(last, certain)
}

export async function appendInBackground(bifrost: Bifrost): Promise<Lsn> {
  const appender: Appender<Order> = bifrost.createAppender<Order>('orders', { maxBatchCount: 50 })
  await appender.enqueue({ id: 1 }, { keys: ['a'] })
  await appender.enqueueMany([{ id: 2 }])
  const sink: Writable = appender.writable()
  sink.end()
  // @ts-expect-error -- The appender's payload type holds.
  await appender.enqueue({ id: 'one' })
  // @ts-expect-error -- It is read-only.
  appender.lastCommitted = 1
  const lsns: Lsn[] = [await appender.committed(), await appender.drain(), appender.lastCommitted]
  await appender[Symbol.asyncDispose]()
  return lsns[0] ?? Lsn.INVALID
}

export async function read(bifrost: Bifrost): Promise<void> {
  const reader: LogReader<LogRecord<Order>> = bifrost.createReader<Order>('orders', { last: 10 })
  for await (const record of reader) {
    // @ts-expect-error -- It may be a gap, which has no payload.
    console.log(record.payload)
    if (record.kind === 'data') show(record)
    else skip(record)
  }
  const strict = bifrost.createReader<Order>('orders', { from: Lsn.OLDEST, gaps: 'throw' })
  for await (const record of strict) console.log(record.payload.id)
  const next: DataRecord<Order> | undefined = await strict.readNext()
  const ready: DataRecord<Order> | undefined = await strict.readNextOpt()
  for await (const chunk of strict.chunks()) console.log(chunk.length, chunk[0]?.lsn)
  const { done }: IteratorReturnResult<undefined> = await strict.return()
  const place: [Lsn, boolean] = [strict.readPointer, strict.ended]
  await strict[Symbol.asyncDispose]()
  // @ts-expect-error -- Neither 'yield' nor 'throw'.
  bifrost.createReader('orders', { gaps: 'skip' })
  // @ts-expect-error -- A reader is made at once, not promised.
  bifrost.createReader('orders').then()
  console.log(next, ready, done, place)
}

function show(record: DataRecord<Order>): void {
  const at: [bigint, number] = [record.createdAt, record.createdAtMs]
  const keys: readonly string[] = record.keys
  console.log(record.lsn, record.payload.note?.length, at, keys)
  // @ts-expect-error -- Records are read-only.
  record.lsn = 1
}

function skip(gap: GapRecord): void {
  const kind: 'trim-gap' | 'data-loss-gap' = gap.kind
  console.log(kind, gap.lsn, gap.until)
}

export async function single(bifrost: Bifrost, signal: AbortSignal): Promise<void> {
  const waited: LogRecord<Order> = await bifrost.readNextSingle<Order>('orders', 1, { signal })
  const opt: LogRecord | undefined = await bifrost.readNextSingleOpt('orders', Lsn.INVALID)
  // @ts-expect-error -- Where to go on from has no default.
  await bifrost.readNextSingle('orders')
  console.log(waited.lsn, opt?.lsn)
}

export async function manage(bifrost: Bifrost): Promise<void> {
  await bifrost.createLog('audit')
  const ids: readonly string[] = bifrost.logIds()
  const tail: TailState = await bifrost.findTail('audit')
  const trimPoint: Lsn = await bifrost.trim('audit', tail.last ?? Lsn.OLDEST)
  const same: boolean = trimPoint === (await bifrost.getTrimPoint('audit'))
  const sealed: TailState = await bifrost.seal('audit', 'year closed')
  const reason: string | undefined = sealed.sealed ? sealed.reason : undefined
  await bifrost.deleteLog('audit')
  // @ts-expect-error -- A log's name is a string.
  await bifrost.createLog(7)
  // @ts-expect-error -- An LSN is a number.
  await bifrost.trim('audit', 7n)
  console.log(ids, same, reason)
}

export async function useOneLog(bifrost: Bifrost): Promise<void> {
  const orders: Log<Order> = bifrost.log<Order>('orders')
  const lsn: Lsn = await orders.append({ id: 1 }, { expectedTail: Lsn.OLDEST })
  await orders.appendBatch([{ id: 2 }], { keys: (order) => [String(order.id)] })
  await orders.appendStream([{ id: 3 }])
  await orders.createAppender().enqueue({ id: 4 })
  for await (const record of orders.createReader({ gaps: 'throw', follow: false, to: lsn })) {
    console.log(record.payload.id, orders.logId)
  }
  for await (const record of orders.createReader({ after: lsn, keys: ['a'] })) {
    console.log(record.kind)
  }
  const one: LogRecord<Order> = await orders.readNextSingle(lsn)
  const maybe: LogRecord<Order> | undefined = await orders.readNextSingleOpt(lsn)
  const tails: TailState[] = [await orders.findTail(), await orders.seal('done')]
  const trimmed: Lsn[] = [await orders.trim(lsn), await orders.getTrimPoint()]
  // @ts-expect-error -- The log's payload type holds.
  await orders.append({ id: 'one' })
  // @ts-expect-error -- So does it for each of a batch.
  await orders.appendBatch([{ note: 'without an id' }])
  console.log(one, maybe, tails, trimmed)
}

export function explain(error: unknown): string {
  if (LogError.is(error, 'TAIL_MISMATCH')) return `the tail is ${error.tail}`
  if (LogError.is(error, 'SEALED')) return `sealed at ${error.tail}: ${error.reason ?? ''}`
  if (LogError.is(error, 'LOCKED')) return `${error.dir} ${error.sameProcess ? 'here' : ''}`
  if (LogError.is(error, 'TRIMMED')) return `trimmed up to ${error.trimPoint}`
  if (LogError.is(error, 'DATA_LOSS')) return `lost ${error.from} to ${error.to}`
  if (LogError.is(error, 'CORRUPT')) {
    const logs: readonly string[] = error.logs.map(
      ({ logId, from, to }) => `${logId} ${from}-${to}`,
    )
    return `${error.label} ${error.file} ${error.position} ${logs.join()}`
  }
  if (LogError.is(error, 'CLOSED')) {
    const code: 'CLOSED' = error.code
    // @ts-expect-error -- This code carries no tail.
    return `${code} ${error.tail}`
  }
  // @ts-expect-error -- No such code.
  if (LogError.is(error, 'OOPS')) return 'oops'
  // @ts-expect-error -- Users match codes; they make no errors.
  const own = new LogError('mine')
  return error instanceof LogError && error.retryable ? `retry ${error.code}` : String(own)
}

export async function watch(bifrost: Bifrost): Promise<void> {
  const metrics = bifrost.metrics()
  const batch: HistogramSnapshot = metrics.bifrost_localloglet_write_batch_count
  const status: 'open' | 'failed' | 'closing' | 'closed' = bifrost.status
  const failure: LogError | undefined = bifrost.failure
  const { droppedBytes, findings } = bifrost.recovery
  // @ts-expect-error -- No such metric.
  console.log(metrics.bifrost_temperature)
  // @ts-expect-error -- The report is read-only.
  bifrost.recovery.droppedBytes = 0
  console.log(batch.p99, status, failure?.code, droppedBytes, findings[0]?.label)
  await bifrost.close()
  await bifrost[Symbol.asyncDispose]()
}

export async function inspect(signal: AbortSignal): Promise<void> {
  const report = await verify('./data', { signal, onProgress: (done, total) => done / total })
  const lost: string[] = report.findings.map((finding) => `${finding.file}: ${finding.message}`)
  if (!report.ok) await repair('./data', { acceptDataLoss: true })
  // @ts-expect-error -- Losing data takes a yes.
  await repair('./data', { acceptDataLoss: false })
  // @ts-expect-error -- And one that is said.
  await repair('./data')
  console.log(lost, report.groups + report.frames + report.bytes)
}

export async function overHttp(bifrost: Bifrost, registry: Registry): Promise<void> {
  const authorize: Authorize = ({ method, path, header }) => {
    if (path.startsWith('/public/')) return 'allowed'
    return method === 'GET' || header('authorization') === 'Bearer 1' ? 'allowed' : 'unauthorized'
  }
  const options: HandlerOptions = { authorize, logger, registry, maxBodyBytes: 1024, pages: false }
  const handler: BifrostHandler = await createHandler(bifrost, options)
  const web = createServer(handler.handle)
  const response: Response = await handler.fetch(new Request('http://localhost/orders'))
  const server: BifrostServer = await serve(bifrost, { port: 0, host: '127.0.0.1', ...options })
  registerMetrics(registry, bifrost)
  // @ts-expect-error -- An unknown option.
  await createHandler(bifrost, { maxBody: 1024 })
  // @ts-expect-error -- No such verdict.
  await createHandler(bifrost, { authorize: () => 'perhaps' })
  console.log(web.listening, response.status, server.url)
  await server.close()
  await handler.close()
}
