/** Runs the load in a child process, keeps the ledger of its acknowledgements, and kills it. */
import { spawn, type ChildProcess } from 'node:child_process'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Metrics } from '../../index.ts'
import { JobFailure } from './failure.ts'
import { Ledger } from './ledger.ts'
import { wholeLines } from './whole-lines.ts'

export interface LoadOptions {
  readonly dir: string
  readonly callers: number
  readonly seconds: number
  /** Told a few times a second how it goes. */
  readonly onProgress: (seconds: number, ledger: Ledger) => void
}

export interface LoadResult {
  readonly ledger: Ledger
  /** From the first append to the kill. */
  readonly seconds: number
  /** As the child last told them, a moment before it was killed. */
  readonly metrics: Metrics
}

const PROGRESS_EVERY_MS = 100
/** The child is killed this much later at most, so that each run hits another moment. */
const KILL_JITTER_MS = 250

/** Resolves once the child was killed and is gone. Throws a JobFailure if it ended by itself. */
export async function runLoad(options: LoadOptions): Promise<LoadResult> {
  const child = new LoadChild(options.dir, options.callers)
  await child.whenReady()
  const startedAt = performance.now()
  const elapsed = (): number => performance.now() - startedAt
  const killAfter = options.seconds * 1000 + Math.random() * KILL_JITTER_MS
  while (elapsed() < killAfter || !hasBegun(child.ledger)) {
    await child.run(Math.min(PROGRESS_EVERY_MS, Math.max(1, killAfter - elapsed())))
    options.onProgress(elapsed() / 1000, child.ledger)
  }
  const seconds = elapsed() / 1000
  await child.kill()
  const { ledger } = child
  if (ledger.metrics === undefined) throw new JobFailure('The load was killed too soon')
  return { ledger, seconds, metrics: ledger.metrics }
}

/** On a machine that is busy with other things, the first figures may take a while. */
function hasBegun({ metrics }: Ledger): boolean {
  return metrics !== undefined && metrics.bifrost_localloglet_appends_total > 0
}

class LoadChild {
  readonly ledger: Ledger = new Ledger()
  readonly #process: ChildProcess
  /** Resolves with the signal that ended it, once all that it wrote was read. */
  readonly #ended: Promise<NodeJS.Signals | null>
  readonly #complaints: Promise<string>
  #onReady: () => void = () => undefined
  readonly #ready = new Promise<void>((resolve) => (this.#onReady = resolve))
  readonly #killWithUs = (): unknown => this.#process.kill('SIGKILL')

  constructor(dir: string, callers: number) {
    const program = fileURLToPath(new URL('./load-child.js', import.meta.url))
    const args = ['--enable-source-maps', program, dir, String(callers)]
    this.#process = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe', 'pipe'] })
    process.once('exit', this.#killWithUs)
    this.#complaints = text(this.#process.stderr as Readable)
    this.#ended = this.#run()
  }

  async #run(): Promise<NodeJS.Signals | null> {
    const exit = new Promise<NodeJS.Signals | null>((resolve, reject) => {
      this.#process.once('error', reject)
      this.#process.once('exit', (_code, signal) => {
        resolve(signal)
      })
    })
    for await (const line of wholeLines(this.#process.stdio[3] as Readable)) {
      if (line === 'ready') this.#onReady()
      else this.ledger.take(line)
    }
    process.off('exit', this.#killWithUs)
    return exit
  }

  /** Resolves once the first append is called. */
  async whenReady(): Promise<void> {
    await Promise.race([this.#ready, this.#endedByItself()])
  }

  /** Lets it run for a while. */
  async run(ms: number): Promise<void> {
    await Promise.race([sleep(ms), this.#endedByItself()])
  }

  async #endedByItself(): Promise<never> {
    await this.#ended
    throw new JobFailure(`The load ended by itself:\n${await this.#complaints}`)
  }

  /** Kills it, and resolves once all that it wrote before was read. */
  async kill(): Promise<void> {
    this.#process.kill('SIGKILL')
    const signal = await this.#ended
    if (signal !== 'SIGKILL') await this.#endedByItself()
  }
}
