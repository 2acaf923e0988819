/** The servers that are loaded: ours in two shapes, and the one that others would run. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Bifrost } from '../../index.ts'
import { serve } from '../../server/index.ts'
import { requirePeer } from '../stores/peer-packages.ts'
import { plainHandler } from './plain-handler.ts'

/**
 * 'plain': a bare handler around Bifrost; 'durable-streams': the protocol's server of this project;
 * 'reference': the protocol's own server for Node.js, on files.
 */
export type ServerKind = 'plain' | 'durable-streams' | 'reference'

/** How many records were committed, in how many groups; undefined if the server doesn't tell. */
export interface GroupCounters {
  readonly records: number
  readonly groups: number
}

export interface LoadedServer {
  readonly url: string
  counters(): GroupCounters | undefined
}

export function startServer(kind: ServerKind, dir: string): Promise<LoadedServer> {
  switch (kind) {
    case 'plain':
      return startPlain(dir)
    case 'durable-streams':
      return startDurableStreams(dir)
    case 'reference':
      return startReference(dir)
  }
}

async function startPlain(dir: string): Promise<LoadedServer> {
  const bifrost = await Bifrost.open({ dir })
  const server = createServer(plainHandler(bifrost))
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, counters: () => countersOf(bifrost) }
}

async function startDurableStreams(dir: string): Promise<LoadedServer> {
  const bifrost = await Bifrost.open({ dir })
  const { url } = await serve(bifrost, { port: 0 })
  return { url, counters: () => countersOf(bifrost) }
}

function countersOf(bifrost: Bifrost): GroupCounters {
  const { count, sum } = bifrost.metrics().bifrost_localloglet_write_batch_count
  return { records: sum, groups: count }
}

interface ReferencePackage {
  readonly DurableStreamTestServer: new (options: object) => { start(): Promise<string> }
}

async function startReference(dataDir: string): Promise<LoadedServer> {
  const { DurableStreamTestServer } = requirePeer<ReferencePackage>('@durable-streams/server')
  const url = await new DurableStreamTestServer({ port: 0, host: '127.0.0.1', dataDir }).start()
  return { url, counters: () => undefined }
}
