/**
 * `npm run perf:load`: an HTTP server around the log, loaded by autocannon from another process. With
 * `--server durable-streams` it is this project's server of that protocol, side by side with the
 * protocol's own on files.
 */
import { loadOver, type Loaded } from './http/loader.ts'
import { Server } from './http/server.ts'
import type { GroupCounters, ServerKind } from './http/server-kinds.ts'
import type { Arena } from './measures/arena.ts'
import { installPeerPackages } from './stores/peer-packages.ts'
import { count, duration, plural, quartiles, ratio, rounded } from './support/figures.ts'
import { merged, type Percentiles } from './support/latencies.ts'
import { main } from './support/main.ts'
import { ratioOf, spreadOf } from './support/statistics.ts'

const CONNECTIONS = [1, 16, 256]
const BODY_BYTES = 100
/** A load for this long before each round lets connections and code get warm. */
const LEAD_SECONDS = 0.3
/** Shorter rounds would not see one answer of a server that takes a second for 256 of them. */
const LEAST_SECONDS = 1

interface Subject {
  readonly name: string
  readonly kind: ServerKind
  readonly path: string
}

const SUBJECTS: Readonly<Record<string, readonly Subject[]>> = {
  plain: [
    { name: 'append', kind: 'plain', path: '/load' },
    { name: 'appendBatch of 4', kind: 'plain', path: '/load/batch' },
  ],
  'durable-streams': [
    { name: 'bifrost', kind: 'durable-streams', path: '/v1/stream/load' },
    { name: 'reference', kind: 'reference', path: '/v1/stream/load' },
  ],
}

const USAGE = `Usage: npm run perf:load -- [--server plain|durable-streams] [options]

Loads a server with ${BODY_BYTES} B bodies over ${CONNECTIONS.join(', ')} connections.
  --server <name>  plain: a bare handler around append and appendBatch (default);
                   durable-streams: the protocol's server of this project, and the reference
`

interface Round extends Loaded {
  readonly recordsPerGroup: number | undefined
}

interface LoadOutcome {
  readonly name: string
  readonly rates: readonly number[]
  readonly latency: Percentiles
  readonly latencies: readonly string[]
  readonly recordsPerGroup: number | undefined
}

const HEADS = [
  'Case',
  'requests/s',
  'half of the rounds',
  'p50',
  'p99',
  'p99.9',
  'records per group',
]

async function run(arena: Arena): Promise<number> {
  const subjects = SUBJECTS[arena.options.server]
  if (subjects === undefined) throw new Error(`There is no server ${arena.options.server}`)
  if (subjects.some(({ kind }) => kind === 'reference')) installPeerPackages()
  for (const connections of CONNECTIONS) await loadAll(arena, subjects, connections)
  return 0
}

async function loadAll(
  arena: Arena,
  subjects: readonly Subject[],
  connections: number,
): Promise<void> {
  const sides: { readonly server: Server; readonly subject: Subject }[] = []
  for (const subject of subjects) {
    const server = await Server.start(subject.kind, arena.freshDir(subject.name))
    await create(server, subject)
    sides.push({ server, subject })
  }
  const results = await arena.takeTurns(sides, ({ server, subject }) =>
    loadRound(server, server.url + subject.path, connections, secondsOf(arena)),
  )
  for (const { server } of sides) await server.kill()
  const outcomes = subjects.map(({ name }, index) => outcomeOf(name, results[index] ?? []))
  await arena.clear()
  report(arena, connections, outcomes)
}

function secondsOf({ roundMs }: Arena): number {
  return Math.max(LEAST_SECONDS, roundMs / 1000)
}

/** A log of the plain server is made by its first name, a stream by its whole path. */
async function create(server: Server, { kind, path }: Subject): Promise<void> {
  const [, log = ''] = path.split('/')
  const url = server.url + (kind === 'plain' ? `/${log}` : path)
  const headers = { 'content-type': 'application/octet-stream' }
  const { ok, status } = await fetch(url, { method: 'PUT', headers })
  if (!ok) throw new Error(`PUT ${url} was answered with ${status}`)
}

async function loadRound(
  server: Server,
  url: string,
  connections: number,
  seconds: number,
): Promise<Round> {
  const load = { url, connections, body: 'x'.repeat(BODY_BYTES) }
  await loadOver({ ...load, seconds: LEAD_SECONDS })
  const before = await server.counters()
  const loaded = await loadOver({ ...load, seconds })
  return { ...loaded, recordsPerGroup: perGroup(before, await server.counters()) }
}

function perGroup(
  before: GroupCounters | undefined,
  after: GroupCounters | undefined,
): number | undefined {
  if (before === undefined || after === undefined) return undefined
  return (after.records - before.records) / (after.groups - before.groups)
}

function outcomeOf(name: string, rounds: readonly Round[]): LoadOutcome {
  const latencies = rounds.map((round) => round.latencies)
  const groups = rounds.flatMap(({ recordsPerGroup }) => recordsPerGroup ?? [])
  return {
    name,
    rates: rounds.map(({ answered, seconds }) => answered / seconds),
    latency: merged(latencies).percentiles(),
    latencies,
    recordsPerGroup: groups.length === 0 ? undefined : spreadOf(groups).median,
  }
}

function report(arena: Arena, connections: number, outcomes: readonly LoadOutcome[]): void {
  arena.report.keep(`${connections} connections`, outcomes)
  arena.report.table(plural(connections, 'connection'), HEADS, outcomes.map(cells))
  const [ours, theirs] = outcomes
  if (ours === undefined || theirs?.name !== 'reference') return
  const faster = ratio(ratioOf(ours.rates, theirs.rates).median)
  const later = ratio(ours.latency.p99 / theirs.latency.p99)
  arena.report.text(`${faster} times the requests/s of the reference, at ${later} of its p99`)
}

function cells({ name, rates, latency, recordsPerGroup }: LoadOutcome): string[] {
  const spread = spreadOf(rates)
  return [
    name,
    count(spread.median),
    quartiles(spread, count),
    ...[latency.p50, latency.p99, latency.p999].map(duration),
    recordsPerGroup === undefined ? '' : rounded(recordsPerGroup),
  ]
}

await main({
  name: 'load',
  usage: USAGE,
  defaults: { seconds: 6, rounds: 3, server: 'plain' },
  run,
})
