/** A server in a process of its own, from the outside. */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { GroupCounters, ServerKind } from './server-kinds.ts'

const PROGRAM = fileURLToPath(new URL('./server-process.js', import.meta.url))

export class Server {
  readonly url: string
  readonly #process: ChildProcess

  private constructor(url: string, child: ChildProcess) {
    this.url = url
    this.#process = child
  }

  /** Starts a server over a directory, which may hold what an earlier one left. */
  static async start(kind: ServerKind, dir: string): Promise<Server> {
    mkdirSync(dir, { recursive: true })
    const child = fork(PROGRAM, [kind, dir], {
      execArgv: ['--enable-source-maps'],
      // What servers print must not end up between the figures; why one ends, it says elsewhere.
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    process.once('exit', () => child.kill('SIGKILL'))
    const { url } = (await answerOf(child)) as { url: string }
    return new Server(url, child)
  }

  async counters(): Promise<GroupCounters | undefined> {
    this.#process.send('counters')
    return ((await answerOf(this.#process)) as { counters?: GroupCounters }).counters
  }

  /** Ends it as it stands. */
  async kill(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    const gone = once(this.#process, 'exit')
    this.#process.kill('SIGKILL')
    await gone
  }
}

async function answerOf(child: ChildProcess): Promise<unknown> {
  const ended = once(child, 'exit').then(([code, signal]) => {
    throw new Error(`The server ended by itself: ${String(signal ?? code)}`)
  })
  const [message] = (await Promise.race([once(child, 'message'), ended])) as [unknown]
  ended.catch(() => undefined)
  return message
}
