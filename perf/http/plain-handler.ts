/**
 * The plainest HTTP face that a store can have: a handler of node:http around `append` and
 * `appendBatch`, to see what HTTP itself costs.
 *
 *     PUT    /<log>            makes a log
 *     POST   /<log>            appends the body; answers with its LSN once it is durable
 *     POST   /<log>/batch      appends the body as four records, each a quarter of it; the first LSN
 *     GET    /<log>?from=<n>   lines of LSN and body, up to the tail
 *     DELETE /<log>
 */
import { once } from 'node:events'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Bifrost } from '../../index.ts'

export const BATCH_RECORDS = 4

export function plainHandler(bifrost: Bifrost): RequestListener {
  return (request, response) => {
    answer(bifrost, request, response).catch((error: unknown) => {
      if (!response.headersSent) response.writeHead(500)
      response.end(String(error))
    })
  }
}

async function answer(
  bifrost: Bifrost,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost')
  const [, log = '', what] = pathname.split('/')
  switch (request.method) {
    case 'POST': {
      const body = await bodyOf(request)
      const appended =
        what === 'batch' ? bifrost.appendBatch(log, quarters(body)) : bifrost.append(log, body)
      response.end(String(await appended))
      return
    }
    case 'GET':
      await sendRecords(bifrost, log, Number(searchParams.get('from') ?? 1), response)
      return
    case 'PUT':
      await bifrost.createLog(log)
      response.writeHead(201).end()
      return
    case 'DELETE':
      await bifrost.deleteLog(log)
      response.writeHead(204).end()
      return
    default:
      response.writeHead(405).end()
  }
}

function bodyOf(request: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () =>
      resolve(parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts)),
    )
    request.on('error', reject)
  })
}

function quarters(body: Buffer): Buffer[] {
  const size = Math.ceil(body.length / BATCH_RECORDS)
  return Array.from({ length: BATCH_RECORDS }, (_, index) =>
    body.subarray(index * size, (index + 1) * size),
  )
}

async function sendRecords(
  bifrost: Bifrost,
  log: string,
  from: number,
  response: ServerResponse,
): Promise<void> {
  const reader = bifrost.createReader<Uint8Array>(log, { from, follow: false, gaps: 'throw' })
  for await (const records of reader.chunks()) {
    const lines = records.map(({ lsn, payload }) => `${lsn} ${Buffer.from(payload).toString()}\n`)
    if (!response.write(lines.join(''))) await once(response, 'drain')
  }
  response.end()
}
