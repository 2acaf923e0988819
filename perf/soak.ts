/**
 * `npm run perf:soak`: loads a server with autocannon, kills it with SIGKILL, starts it again over
 * what is left, and looks for every record that was acknowledged; over and over, for as long as told.
 * Exits with 1 on any loss. A killed process can't show that the bytes had reached the disk; it shows
 * that nothing is acknowledged that isn't in a file.
 */
import { Ledger, Loss, bodyOf } from './http/ledger.ts'
import { startLoad } from './http/loader.ts'
import { Server } from './http/server.ts'
import { DURABLE_STREAMS, PLAIN, type Subject } from './http/subjects.ts'
import type { Arena } from './measures/arena.ts'
import { count, plural, rounded } from './support/figures.ts'
import { main } from './support/main.ts'
import { removeFiles } from './support/scratch.ts'

const SUBJECTS: Readonly<Record<string, Subject>> = {
  plain: PLAIN,
  'durable-streams': DURABLE_STREAMS,
}
const CONNECTIONS = 64
const LIFE_MS = { least: 200, most: 3000 }
/** A log that holds more is deleted after its last check, so that the disk doesn't fill. */
const MOST_RECORDS = 500_000

const USAGE = `Usage: npm run perf:soak -- [--server plain|durable-streams] [options]

Loads a server over ${CONNECTIONS} connections, kills it, and looks for what it acknowledged. Here
--seconds is how long all of that goes on; --rounds is not used.
  --server <name>  plain: a bare handler around append and appendBatch (default);
                   durable-streams: the protocol's server of this project
`

class Soak {
  readonly #subject: Subject
  readonly #dir: string
  #generation = 0
  #nextId = 0
  #ledger = new Ledger()
  requests = 0
  kills = 0

  constructor(subject: Subject, dir: string) {
    this.#subject = subject
    this.#dir = dir
  }

  get #name(): string {
    return `soak-${this.#generation}`
  }

  /** One life of the server, its end, and the look at what is left. Throws a Loss. */
  async life(server: Server, ms: number): Promise<Server> {
    if (this.#ledger.requests === 0) await this.#subject.create(server.url, this.#name)
    const before = this.#ledger.requests
    await this.#loadAndKill(server, ms)
    this.requests += this.#ledger.requests - before
    this.kills++
    const next = await Server.start(this.#subject.kind, this.#dir)
    const records = await this.#ledger.check(this.#subject.read(next.url, this.#name))
    if (records > MOST_RECORDS) await this.#startOver(next)
    return next
  }

  async #loadAndKill(server: Server, ms: number): Promise<void> {
    const { result, instance } = startLoad({
      url: server.url,
      connections: CONNECTIONS,
      duration: ms,
      requests: this.#subject.requests.map((kind) => this.#request(kind)),
    })
    await new Promise((resolve) => setTimeout(resolve, ms))
    await server.kill()
    instance.stop()
    await result
  }

  #request(kind: 'single' | 'batch'): object {
    return {
      method: 'POST',
      path: this.#subject.path(this.#name, kind),
      headers: { 'content-type': 'application/octet-stream' },
      setupRequest: (request: object, context: { id?: number }) => {
        context.id = ++this.#nextId
        return { ...request, body: bodyOf(kind, context.id) }
      },
      onResponse: (status: number, body: string, context: { id?: number }, headers: object) => {
        this.#answered(kind, context.id, status, body, headers)
      },
    }
  }

  #answered(
    kind: 'single' | 'batch',
    id: number | undefined,
    status: number,
    body: string,
    headers: object,
  ): void {
    if (id === undefined || status < 200 || status > 299) return
    const first = this.#subject.firstOf(body, (name) => headerOf(headers, name))
    this.#ledger.acknowledged(kind, id, first)
  }

  async #startOver(server: Server): Promise<void> {
    await this.#subject.delete(server.url, this.#name)
    this.#generation++
    this.#ledger = new Ledger()
  }
}

/** Servers may write a header's name as they like. */
function headerOf(headers: object, wanted: string): string | undefined {
  const found = Object.entries(headers).find(([name]) => name.toLowerCase() === wanted)
  return found === undefined ? undefined : String(found[1])
}

async function run(arena: Arena): Promise<number> {
  const { server: name, seconds } = arena.options
  const subject = SUBJECTS[name]
  if (subject === undefined) throw new Error(`There is no server ${name}`)
  const dir = arena.freshDir('soak')
  const soak = new Soak(subject, dir)
  const end = performance.now() + seconds * 1000
  let server = await Server.start(subject.kind, dir)
  try {
    while (performance.now() < end) {
      const ms = LIFE_MS.least + Math.random() * (LIFE_MS.most - LIFE_MS.least)
      server = await soak.life(
        server,
        Math.min(ms, Math.max(LIFE_MS.least, end - performance.now())),
      )
      arena.report.progress(progressOf(soak))
    }
  } catch (error) {
    if (!(error instanceof Loss)) throw error
    arena.report.text(`LOST: ${error.message}`, `${progressOf(soak)}; ${dir} is kept`)
    arena.scratch.keep()
    return 1
  } finally {
    await server.kill()
  }
  arena.report.keep('soak', { requests: soak.requests, kills: soak.kills })
  arena.report.text(`${progressOf(soak)} in ${rounded(seconds)} s: nothing is lost`)
  removeFiles(dir)
  return 0
}

function progressOf({ requests, kills }: Soak): string {
  return `${count(requests)} acknowledged requests, ${plural(kills, 'kill')}`
}

await main({ name: 'soak', usage: USAGE, defaults: { seconds: 30, server: 'plain' }, run })
