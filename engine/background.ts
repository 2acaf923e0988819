/**
 * Work that runs beside commits: preparing files, writing metadata, unlinking. It is counted, so
 * that a store lets go of its lock only when nothing of its own is in flight, and its failures are
 * logged, so that none becomes an unhandled rejection.
 */
import { LogError } from '../codec/errors.ts'
import type { Logger } from './options.ts'

export class Background {
  readonly #logger: Logger
  readonly #running = new Set<Promise<void>>()

  constructor(logger: Logger) {
    this.#logger = logger
  }

  /** Runs a task; a failure is logged under `what`, and otherwise left to the next occasion. */
  run(what: string, task: () => Promise<void>): void {
    const running: Promise<void> = task()
      .catch((error: unknown) => {
        // A store that is closed or has failed takes on nothing more, and needs nothing more done.
        if (LogError.is(error, 'CLOSED') || LogError.is(error, 'STORE_FAILED')) return
        this.#logger.warn({ err: error }, `${what} failed; it is tried again`)
      })
      .finally(() => this.#running.delete(running))
    this.#running.add(running)
  }

  /** Resolves when nothing runs any more. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running)
  }
}
