/** The server's process. Run by server.ts, which it tells its URL and, when asked, its counters. */
import { startServer, type ServerKind } from './server-kinds.ts'

const [kind, dir] = process.argv.slice(2) as [ServerKind, string]
const server = await startServer(kind, dir)

process.on('message', () => process.send?.({ counters: server.counters() }))
process.once('disconnect', () => process.exit(0))
process.send?.({ url: server.url })
