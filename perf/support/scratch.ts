/**
 * The folder in which stores are made: on a real disk, and gone when the process ends, also by
 * Ctrl-C.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileSystemOf } from '../main-job/figures.ts'

const SIGNALS = [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const

export class Scratch {
  readonly dir: string
  #made = 0
  #isKept = false

  constructor(parent: string) {
    this.dir = mkdtempSync(join(parent, 'bifrost-perf-'))
    process.once('exit', () => this.remove())
    for (const [signal, code] of SIGNALS) process.once(signal, () => process.exit(code))
    if (fileSystemOf(this.dir) === 'tmpfs') {
      process.stderr.write(`${parent} is memory: a sync costs nothing there. Use --dir.\n`)
    }
  }

  /** A path in it that was never given out before. */
  fresh(name: string): string {
    return join(this.dir, `${String(++this.#made)}-${name}`)
  }

  /** Makes the folder again after it was removed. */
  make(): void {
    mkdirSync(this.dir, { recursive: true })
  }

  /** Leaves everything behind, to be looked at. */
  keep(): void {
    this.#isKept = true
  }

  remove(): void {
    if (this.#isKept) return
    rmSync(this.dir, { recursive: true, force: true, maxRetries: 3 })
  }
}

export function removeFiles(dir: string): void {
  rmSync(dir, { recursive: true, force: true, maxRetries: 3 })
}
