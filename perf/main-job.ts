/**
 * The main job, end to end, on real data: append from many callers in a child process, kill it in
 * the middle, open the store again, and look whether everything is there that was acknowledged.
 * Exits with 0 only if everything held. Every number that it prints is of this run.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { Bifrost, type RecoveryReport } from '../index.ts'
import {
  checkAppends,
  checkBytes,
  checkLedger,
  checkReads,
  checkWholeBatches,
  type Tails,
} from './main-job/check.ts'
import { JobFailure } from './main-job/failure.ts'
import {
  commitTable,
  count,
  fileSystemOf,
  mebibytes,
  milliseconds,
  plural,
} from './main-job/figures.ts'
import { BATCH_RECORDS, Flights } from './main-job/flights.ts'
import type { Ledger } from './main-job/ledger.ts'
import { runLoad, type LoadResult } from './main-job/load.ts'
import { readOptions, USAGE, type JobOptions } from './main-job/options.ts'
import { Screen } from './main-job/screen.ts'

class MainJob {
  readonly #options: JobOptions
  readonly #dir: string
  readonly #screen: Screen
  readonly #flights = Flights.load()

  constructor(options: JobOptions, dir: string, screen: Screen) {
    this.#options = options
    this.#dir = dir
    this.#screen = screen
  }

  async run(): Promise<void> {
    this.#introduce()
    const load = await this.#load()
    this.#kill(load)
    const bifrost = await this.#reopen()
    const tails = await this.#check(bifrost, load.ledger)
    this.#report(load)
    this.#conclude(tails)
  }

  #introduce(): void {
    const { rows, origins } = this.#flights
    const [first, last] = [rows[0], rows.at(-1)].map((row) => row?.date.slice(0, 10))
    const system = fileSystemOf(this.#dir)
    this.#screen.title('bifrost-log: the main job, on real data')
    this.#screen.text(`Data   ${count(rows.length)} flights from ${origins.length} airports,`)
    this.#screen.text(`       ${first} to ${last}, from the npm package vega-datasets`)
    this.#screen.text(`Logs   one per airport; each appendBatch carries ${BATCH_RECORDS} flights`)
    this.#screen.text(`Store  ${this.#dir}${system === undefined ? '' : ` on ${system}`}`)
    if (system !== 'tmpfs') return
    this.#screen.text(
      '       This is memory: a sync costs nothing here. Use --dir for a real disk.',
    )
  }

  async #load(): Promise<LoadResult> {
    const { callers, seconds } = this.#options
    const what = `${callers} callers append in a child process; acknowledgements are kept here`
    this.#screen.step('Load', what)
    const load = await runLoad({
      dir: this.#dir,
      callers,
      seconds,
      onProgress: (now, ledger) => {
        this.#screen.progress(`${now.toFixed(1)} s   ${this.#rate(ledger, now)}`)
      },
    })
    this.#screen.note(this.#rate(load.ledger, load.seconds))
    return load
  }

  #rate({ records }: Ledger, seconds: number): string {
    return `${count(records)} records acknowledged, ${count(records / seconds)} a second`
  }

  #kill({ seconds, metrics }: LoadResult): void {
    const size = mebibytes(metrics.bifrost_disk_bytes)
    this.#screen.step('Kill', `SIGKILL after ${seconds.toFixed(2)} s, in the middle of the load`)
    this.#screen.note(`${size} are left behind, in ${plural(metrics.bifrost_segments, 'segment')}`)
  }

  async #reopen(): Promise<Bifrost> {
    this.#screen.step('Reopen', 'The store recovers')
    const startedAt = performance.now()
    const bifrost = await Bifrost.open({ dir: this.#dir })
    const took = performance.now() - startedAt
    const recovered = milliseconds(bifrost.recovery.durationMs)
    this.#screen.note(`recovered in ${recovered}; open took ${milliseconds(took)} in all`)
    this.#explain(bifrost.recovery)
    return bifrost
  }

  #explain({ findings, droppedBytes, droppedFrames }: RecoveryReport): void {
    for (const { label, file, message } of findings) {
      this.#screen.note(`${label} ${file}: ${message}`)
    }
    const torn = `${count(droppedBytes)} bytes with ${count(droppedFrames)} frames`
    if (droppedBytes > 0) this.#screen.note(`${torn} were torn by the kill, and dropped`)
  }

  async #check(bifrost: Bifrost, ledger: Ledger): Promise<Tails> {
    const { origins } = this.#flights
    this.#screen.step('Check', 'Every record against the source file')
    const tails = await checkReads(bifrost, this.#flights, this.#progress('read back'))
    this.#screen.holds(`${count(recordsIn(tails))} records read back, each log in order, no gap`)
    checkLedger(ledger, tails)
    const all = `all ${count(ledger.records)} acknowledged records are there`
    this.#screen.holds(`${all}, at the LSNs that were acknowledged`)
    checkWholeBatches(tails)
    const others = (recordsIn(tails) - ledger.records) / BATCH_RECORDS
    this.#screen.holds('no batch is partial')
    const unheard = 'are there too, whose acknowledgements had not arrived'
    if (others > 0) this.#screen.note(`  (${count(others)} batches ${unheard})`)
    const after = await checkAppends(bifrost, this.#flights, tails)
    this.#screen.holds(`appends go on at the recovered tail of each of the ${origins.length} logs`)
    await bifrost.close()
    const progress = this.#progress('compared byte for byte')
    const stored = await checkBytes(this.#dir, this.#flights, after, progress)
    this.#screen.holds(`${count(stored)} stored msgpack bodies are byte-identical to what`)
    this.#screen.note('  msgpackr makes of the source rows here')
    return after
  }

  #progress(what: string): (records: number) => void {
    return (records) => {
      this.#screen.progress(`${count(records)} records ${what}`)
    }
  }

  #report({ metrics }: LoadResult): void {
    const appends = metrics.bifrost_localloglet_append_duration_seconds.count
    const syncs = metrics.bifrost_localloglet_sync_duration_seconds.count
    const records = metrics.bifrost_localloglet_appends_total
    this.#screen.step('Report', 'What the child last counted before it was killed')
    this.#screen.text()
    for (const line of commitTable(metrics)) this.#screen.text(`   ${line}`)
    this.#screen.text()
    const perSync = `${(appends / syncs).toFixed(1)} appends, ${(records / syncs).toFixed(1)} records`
    this.#screen.text(`   One sync served ${perSync}: ${count(syncs)} syncs in all.`)
  }

  #conclude(tails: Tails): void {
    this.#screen.title(`Everything held, for ${count(recordsIn(tails))} records.`)
    this.#screen.quiet(
      [
        'What this shows: a killed process loses nothing that it acknowledged, and recovery keeps',
        'batches whole. What it cannot show: that the bytes had reached the disk, because what the',
        'kernel holds in memory outlives a process. For that, see the trace of system calls in',
        'test/crash/syscalls.test.ts and the simulated power cuts: docs/durability.md.',
      ].join('\n'),
    )
  }
}

function recordsIn(tails: Tails): number {
  let records = 0
  for (const tail of tails.values()) records += tail - 1
  return records
}

async function main(): Promise<number> {
  const screen = new Screen(process.stdout)
  let options: JobOptions | undefined
  try {
    options = readOptions(process.argv.slice(2))
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${USAGE}`)
    return 2
  }
  if (options === undefined) {
    process.stdout.write(USAGE)
    return 0
  }
  return inOwnDirectory(options, async (dir) => {
    try {
      await new MainJob(options, dir, screen).run()
      return 0
    } catch (error) {
      screen.fails(messageOf(error))
      return 1
    }
  })
}

/** What did not hold is said in words; anything else is a bug, of the store or of this program. */
function messageOf(error: unknown): string {
  if (error instanceof JobFailure) return error.message
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

async function inOwnDirectory(
  { dir: parent, keep }: JobOptions,
  use: (dir: string) => Promise<number>,
): Promise<number> {
  const dir = mkdtempSync(join(parent, 'bifrost-main-job-'))
  const remove = (): void => {
    if (!keep) rmSync(dir, { recursive: true, force: true })
  }
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    process.once(signal, () => {
      // The child is killed by the exit; it must not make a file again behind the removal.
      process.once('exit', remove)
      process.exit(code)
    })
  }
  try {
    return await use(dir)
  } finally {
    remove()
  }
}

process.exitCode = await main()
