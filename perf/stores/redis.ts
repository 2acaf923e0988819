/**
 * Redis with its append-only file synced before every answer: a stream, over a Unix socket, from one
 * client that pipelines by itself. The server is started and stopped here.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { requirePeer } from './peer-packages.ts'
import type { Sink, Store, StoreSpec } from './store.ts'

const STREAM = 'log'
const SCAN_RECORDS = 1000
const START_MS = 10_000
const LOOK_EVERY_MS = 10

type Argument = string | Uint8Array

interface Client {
  on(event: 'error', listener: (error: Error) => void): unknown
  connect(): Promise<unknown>
  sendCommand(args: readonly Argument[]): Promise<unknown>
  withTypeMapping(mapping: Readonly<Record<number, unknown>>): Client
  destroy(): void
}

interface ClientPackage {
  readonly createClient: (options: object) => Client
  readonly RESP_TYPES: { readonly BLOB_STRING: number }
}

/** What XRANGE gives: each entry's id, and its fields and values in turn. */
type Entries = readonly (readonly [Buffer, readonly [Buffer, Buffer]])[]

export async function openRedis({ dir }: StoreSpec): Promise<Store> {
  mkdirSync(dir, { recursive: true })
  const socket = join(dir, 'socket')
  const server = startServer(dir, socket)
  await whenListening(server, socket)
  const { createClient, RESP_TYPES } = requirePeer<ClientPackage>('@redis/client')
  const client = createClient({ socket: { path: socket }, commandsQueueMaxLength: 1 << 20 })
  client.on('error', (error) => {
    throw error
  })
  await client.connect()
  return new RedisStore(server, client, RESP_TYPES.BLOB_STRING)
}

function startServer(dir: string, socket: string): ChildProcess {
  const options = {
    port: '0',
    unixsocket: socket,
    dir,
    save: '',
    appendonly: 'yes',
    appendfsync: 'always',
    'auto-aof-rewrite-percentage': '0',
  }
  const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value])
  const server = spawn('redis-server', args, { stdio: 'ignore' })
  const kill = (): unknown => server.kill('SIGKILL')
  process.once('exit', kill)
  server.once('exit', () => process.off('exit', kill))
  return server
}

async function whenListening(server: ChildProcess, socket: string): Promise<void> {
  const startedAt = performance.now()
  while (!existsSync(socket)) {
    if (server.exitCode !== null || performance.now() - startedAt > START_MS) {
      throw new Error('redis-server did not start')
    }
    await sleep(LOOK_EVERY_MS)
  }
}

class RedisStore implements Store {
  readonly #server: ChildProcess
  readonly #client: Client
  readonly #blobString: number

  constructor(server: ChildProcess, client: Client, blobString: number) {
    this.#server = server
    this.#client = client
    this.#blobString = blobString
  }

  append(_log: number, payload: Uint8Array): Promise<unknown> {
    return this.#client.sendCommand(['XADD', STREAM, '*', 'p', payload])
  }

  async scan(sink: Sink): Promise<void> {
    const client = this.#client.withTypeMapping({ [this.#blobString]: Buffer })
    let from = '-'
    for (;;) {
      const range = ['XRANGE', STREAM, from, '+', 'COUNT', String(SCAN_RECORDS)]
      const entries = (await client.sendCommand(range)) as Entries
      for (const [, [, payload]] of entries) sink(payload)
      const last = entries.at(-1)
      if (last === undefined) return
      from = `(${String(last[0])}`
    }
  }

  counters(): undefined {
    return undefined
  }

  async close(): Promise<void> {
    this.#client.destroy()
    const gone = once(this.#server, 'exit')
    this.#server.kill('SIGTERM')
    await gone
  }
}
