/**
 * `npm run perf:live`: what a reader of the HTTP server waits for. How late an append comes to each
 * of 500 followers by server-sent events, and what it takes to read the newest record of a stream
 * of 400 MB, beside that of a stream which holds nothing else.
 */
import { get, type ClientRequest, type IncomingMessage } from 'node:http'
import { Server } from './http/server.ts'
import type { Arena } from './measures/arena.ts'
import { duration, ratio } from './support/figures.ts'
import { Latencies } from './support/latencies.ts'
import { main } from './support/main.ts'
import { ratioOf } from './support/statistics.ts'

const SUBSCRIBERS = 500
const LARGE_BYTES = 400_000_000
const BODY_BYTES = 1_000_000
const STREAMS = '/v1/stream'
/** From the start of one append to the start of the next. */
const PACE_MS = 50

const USAGE = `Usage: npm run perf:live -- [options]

Measures how late ${SUBSCRIBERS} followers by server-sent events learn of an append, and how long it takes
to read the newest record of a stream of ${LARGE_BYTES / 1e6} MB.
`

const HEADS = ['Case', 'p50', 'p99', 'p99.9']

async function run(arena: Arena): Promise<number> {
  const server = await Server.start('durable-streams', arena.freshDir('live'))
  await wakeUps(arena, server.url)
  await newestRecords(arena, server.url)
  await server.kill()
  await arena.clear()
  return 0
}

async function wakeUps(arena: Arena, url: string): Promise<void> {
  const stream = `${url}${STREAMS}/live`
  await create(stream)
  const wakes = new Latencies()
  const wake = { text: '', at: 0, left: 0, done: (): void => undefined }
  const followers = await Promise.all(
    Array.from({ length: SUBSCRIBERS }, () => {
      return follow(`${stream}?offset=now&live=sse`, (text) => {
        if (!text.includes(wake.text)) return
        wakes.record(performance.now() - wake.at)
        if (--wake.left === 0) wake.done()
      })
    }),
  )
  const rounds = Math.ceil((arena.options.seconds * 1000) / PACE_MS)
  for (let i = 0; i < rounds; i++) {
    wake.text = `<${i}>`
    wake.left = SUBSCRIBERS
    wake.at = performance.now()
    const everybody = new Promise<void>((resolve) => (wake.done = resolve))
    await Promise.all([append(stream, wake.text), everybody])
    await new Promise((resolve) => setTimeout(resolve, wake.at + PACE_MS - performance.now()))
  }
  for (const follower of followers) follower.destroy()
  const { p50, p99, p999 } = wakes.percentiles()
  arena.report.keep('wake-ups', wakes.encode())
  const name = `from the append to each of ${SUBSCRIBERS} followers`
  arena.report.table('Server-sent events', HEADS, [[name, ...[p50, p99, p999].map(duration)]])
}

/** Follows a stream; resolves once the server has answered. */
function follow(url: string, onText: (text: string) => void): Promise<ClientRequest> {
  return new Promise((resolve, reject) => {
    const request = get(url, { agent: false }, (response: IncomingMessage) => {
      response.setEncoding('utf8').on('data', onText).on('error', ignore)
      resolve(request)
    })
    request.on('error', reject)
  })
}

function ignore(): void {
  // The requests are ended by whoever made them.
}

async function newestRecords(arena: Arena, url: string): Promise<void> {
  const large = `${url}${STREAMS}/large`
  const empty = `${url}${STREAMS}/empty`
  await create(large)
  await create(empty)
  arena.report.progress('filling the large stream')
  const body = 'x'.repeat(BODY_BYTES)
  for (let bytes = 0; bytes < LARGE_BYTES; bytes += BODY_BYTES) await append(large, body)
  const rounds = await arena.takeTurns([large, empty], (stream) => readNewest(arena, stream))
  const [ofLarge = [], ofEmpty = []] = rounds
  const rows = [
    [`of a stream of ${LARGE_BYTES / 1e6} MB`, ofLarge],
    ['of a stream that holds nothing else', ofEmpty],
  ] as const
  arena.report.keep('newest record', rows)
  arena.report.table(
    'Reading the newest record',
    ['Case', 'p50'],
    rows.map(([name, times]) => [name, duration(medianOf(times))]),
  )
  const longer = ratio(ratioOf(ofLarge, ofEmpty).median)
  arena.report.text(`Of the large stream it takes ${longer} of the time.`)
}

/** Appends and reads what was appended, over and over; resolves with the median time of a read. */
async function readNewest(arena: Arena, stream: string): Promise<number> {
  const times: number[] = []
  let offset = await append(stream, 'first')
  for (const end = performance.now() + arena.roundMs; performance.now() < end;) {
    const next = await append(stream, 'newest')
    const startedAt = performance.now()
    const text = await (await fetch(`${stream}?offset=${offset}`)).text()
    times.push(performance.now() - startedAt)
    if (text !== 'newest') throw new Error(`The newest record is not ${text.slice(0, 100)}`)
    offset = next
  }
  return medianOf(times)
}

function medianOf(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] as number
}

async function create(url: string): Promise<void> {
  const { ok, status } = await fetch(url, {
    method: 'PUT',
    headers: { 'content-type': 'text/plain' },
  })
  if (!ok) throw new Error(`PUT ${url} was answered with ${status}`)
}

/** Appends; resolves with the offset behind it. */
async function append(url: string, body: string): Promise<string> {
  const headers = { 'content-type': 'text/plain' }
  const response = await fetch(url, { method: 'POST', headers, body })
  const next = response.headers.get('stream-next-offset')
  if (!response.ok || next === null) {
    throw new Error(`POST ${url} was answered with ${response.status}`)
  }
  return next
}

await main({ name: 'live', usage: USAGE, defaults: { seconds: 5, rounds: 4 }, run })
