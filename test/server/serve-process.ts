/** `bifrost serve` as a process of its own: started, killed, started again, or told to stop. */
import assert from 'node:assert/strict'
import { spawn, type ChildProcess, type ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const CLI = fileURLToPath(new URL('../../server/cli.js', import.meta.url))
const LISTENING = /^bifrost: listening on (http:\/\/\S+)$/m

export interface ServeProcessOptions {
  readonly dir: string
  /** Default 0: any that is free. */
  readonly port?: number
  /** Further arguments of the command line. */
  readonly args?: readonly string[]
  /** The compiled command line, for those who are not compiled themselves. */
  readonly cli?: string
}

export class ServeProcess {
  readonly url: string
  readonly #child: ChildProcess
  readonly #ended: Promise<readonly [code: number | null, signal: NodeJS.Signals | null]>
  readonly #errors: () => string

  private constructor(child: ChildProcess, url: string, errors: () => string) {
    this.#child = child
    this.url = url
    this.#errors = errors
    this.#ended = endOf(child)
  }

  /** Resolves when the server listens; rejects, with what it said, if it ends before. */
  static async start(options: ServeProcessOptions): Promise<ServeProcess> {
    const child = spawnServer(options)
    const errors = collect(child.stderr)
    const url = await Promise.race([listening(child.stdout), endOf(child).then(() => undefined)])
    if (url === undefined) throw new Error(`bifrost serve ended: ${errors()}`)
    return new ServeProcess(child, url, errors)
  }

  /** Starts a server, and kills it some time later, whatever it is doing then. */
  static async startAndKill(options: ServeProcessOptions, afterMs: number): Promise<void> {
    const child = spawnServer(options)
    const ended = endOf(child)
    child.stdout.resume()
    child.stderr.resume()
    await sleep(afterMs)
    child.kill('SIGKILL')
    await ended
  }

  get port(): number {
    return Number(new URL(this.url).port)
  }

  get pid(): number {
    assert.ok(this.#child.pid !== undefined)
    return this.#child.pid
  }

  /** What the server wrote to stderr. */
  get errors(): string {
    return this.#errors()
  }

  /** kill -9; resolves when the process is gone. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#ended
  }

  /** Asks for an end, and resolves with the exit code. */
  async stop(): Promise<number | null> {
    this.#child.kill('SIGTERM')
    const [code] = await this.#ended
    return code
  }
}

type Child = ChildProcessByStdio<null, Readable, Readable>

function spawnServer({ dir, port = 0, args = [], cli = CLI }: ServeProcessOptions): Child {
  const command = ['--enable-source-maps', cli, 'serve', '--dir', dir, '--port', String(port)]
  return spawn(process.execPath, [...command, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
}

async function endOf(
  child: ChildProcess,
): Promise<readonly [code: number | null, signal: NodeJS.Signals | null]> {
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
  return [code, signal]
}

/** The URL that the server says it listens on. Its stdout is read to the end, and thrown away. */
function listening(stdout: Readable): Promise<string> {
  return new Promise((resolve) => {
    let said = ''
    stdout.setEncoding('utf8').on('data', (text: string) => {
      said += text
      const url = LISTENING.exec(said)?.[1]
      if (url !== undefined) resolve(url)
    })
  })
}

function collect(stderr: Readable): () => string {
  let text = ''
  stderr.setEncoding('utf8').on('data', (more: string) => (text += more))
  return () => text
}
