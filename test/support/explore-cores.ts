/**
 * Explores for as long as it is told to, on every core: `npm run explore -- --seconds 3600`. It
 * starts explore-main.ts over and over with fresh seeds, adds up what they did, and stops at the
 * first failure, with all that is needed to see it again.
 *
 *   [--seconds 60] [--from n] [--suite explore|damage|repair|twins] [--cores n]
 *   [--suite name] --seed n   runs that seed again
 */
import { spawn } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const MAIN = fileURLToPath(new URL('./explore-main.js', import.meta.url))
/** What is run in turn: lives of a store more often than the rest. */
const TURNS = ['explore', 'damage', 'explore', 'repair', 'explore', 'twins']
const SLICE_SECONDS = 10
/** More seeds than a slice gets through, so that no two slices run the same one. */
const SLICE_SEEDS = 100_000
/** Seeds are taken modulo 2^32. */
const MAX_FIRST_SEED = 2 ** 28

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    from: { type: 'string' },
    suite: { type: 'string' },
    cores: { type: 'string' },
    seed: { type: 'string' },
  },
})

interface Slice {
  readonly code: number
  readonly output: string
}

/** Runs the explorer once; shows what it says, or returns it. */
function explore(args: readonly string[], stdio: 'inherit' | 'pipe'): Promise<Slice> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['--enable-source-maps', MAIN, ...args], { stdio })
    const parts: string[] = []
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (part: string) => parts.push(part))
    }
    child.on('error', reject)
    child.on('close', (code) => resolve({ code: code ?? 1, output: parts.join('') }))
  })
}

class Exploration {
  readonly #until: number
  readonly #startedAt = performance.now()
  readonly #first: number
  #slices = 0
  #seeds = 0
  #cycles = 0
  #hasFailed = false

  constructor(seconds: number, first: number) {
    this.#until = this.#startedAt + seconds * 1000
    this.#first = first
  }

  /** Resolves with the exit code. */
  async run(cores: number): Promise<number> {
    console.log(`exploring on ${cores} cores, with seeds from ${this.#first}`)
    await Promise.all(Array.from({ length: cores }, () => this.#runCore()))
    console.log(`${this.#hasFailed ? 'FAILED' : 'every promise was kept'}: ${this.#sum()}`)
    return this.#hasFailed ? 1 : 0
  }

  async #runCore(): Promise<void> {
    for (let left = this.#left(); left > 0 && !this.#hasFailed; left = this.#left()) {
      const slice = this.#slices++
      const suite = values.suite ?? TURNS[slice % TURNS.length] ?? 'explore'
      const from = this.#first + slice * SLICE_SEEDS
      const seconds = Math.min(SLICE_SECONDS, left)
      const args = ['--suite', suite, '--from', String(from), '--seconds', String(seconds)]
      this.#add(suite, await explore(args, 'pipe'))
    }
  }

  #add(suite: string, { code, output }: Slice): void {
    const [, seeds, cycles] = /^(\d+) seeds, (\d+) cycles/m.exec(output) ?? []
    this.#seeds += Number(seeds ?? 0)
    this.#cycles += Number(cycles ?? 0)
    if (code !== 0) this.#fail(suite, output)
    else console.log(`${this.#sum()} (${suite})`)
  }

  #fail(suite: string, output: string): void {
    this.#hasFailed = true
    const [, seed] = /^(?:seed |uncaught, with seed )(\d+)/m.exec(output) ?? []
    console.log(`\n${output}`)
    console.log(`See it again: npm run explore -- --suite ${suite} --seed ${seed ?? '?'}\n`)
  }

  #left(): number {
    return (this.#until - performance.now()) / 1000
  }

  #sum(): string {
    const seconds = Math.round((performance.now() - this.#startedAt) / 1000)
    const [seeds, cycles] = [this.#seeds, this.#cycles].map((n) => n.toLocaleString('en'))
    return `${seconds} s: ${seeds} seeds, ${cycles} cycles of crash and recovery`
  }
}

async function main(): Promise<number> {
  const { seed, suite = 'explore' } = values
  if (seed !== undefined) {
    return (await explore(['--suite', suite, '--seed', seed], 'inherit')).code
  }
  const first = Number(values.from ?? Date.now() % MAX_FIRST_SEED)
  const cores = Number(values.cores ?? availableParallelism())
  return new Exploration(Number(values.seconds), first).run(cores)
}

process.exitCode = await main()
