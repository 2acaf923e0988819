/** Those who use one open store: they call, are told, and read. */
import { LogError, type LogErrorCode, type LogId } from '../../codec/errors.ts'
import type { Milestone } from './explore-coverage.ts'
import { Violation } from './explore-oracle.ts'
import type { PlannedCall } from './explore-plan.ts'
import { asViolation, type Scene } from './explore-scene.ts'
import type { SimStore } from './explore-store.ts'

const ROLL_BYTES = 30 * 1024
const MAX_ROLL_APPENDS = 12

const REJECTIONS: Readonly<Partial<Record<LogErrorCode, Milestone>>> = {
  WRITE_FAILED: 'no room',
  STORE_FAILED: 'store failed',
  TAIL_MISMATCH: 'verdict',
  SEALED: 'verdict',
  UNKNOWN_LOG: 'unknown log',
  ABORTED: 'withdrawn',
  QUEUE_FULL: 'queue full',
}

export class Callers {
  readonly #scene: Scene
  readonly #session: SimStore
  #underWay: Promise<void>[] = []

  constructor(scene: Scene, session: SimStore) {
    this.#scene = scene
    this.#session = session
  }

  /** Resolves when the calls that are under way now were told their outcome. */
  get told(): Promise<unknown> {
    return Promise.all(this.#underWay)
  }

  get isQuiet(): boolean {
    return this.#underWay.length === 0
  }

  async callAll(calls: readonly PlannedCall[], waits: boolean): Promise<void> {
    for (const call of calls) this.call(call)
    if (waits) await this.settle()
  }

  /** Waits for everything that was called. */
  async settle(): Promise<void> {
    if (this.isQuiet) return
    const { told } = this
    this.#underWay = []
    await this.#scene.run(told)
  }

  call(planned: PlannedCall): void {
    const { oracle, calls } = this.#scene
    const { store, process } = this.#session
    const { command, start, appendsTo } = calls.make(planned, oracle.world)
    const isThere = command.kind === 'create' && oracle.target(command.logId) !== undefined
    // A log that is there need not be created: that is no command.
    const number = isThere ? undefined : oracle.issue(command, store.status !== 'open')
    const loglets = appendsTo.map((logId) => this.#session.loglet(logId))
    const told = start(store).then(
      (value) => {
        if (process.isAlive && number !== undefined) this.#acked(number, value, appendsTo, loglets)
      },
      (error: unknown) => {
        if (process.isAlive && number !== undefined) this.#rejected(number, error)
      },
    )
    this.#underWay.push(told.catch((error: unknown) => this.#scene.note(error)))
  }

  #acked(
    number: number,
    value: unknown,
    logIds: readonly LogId[],
    loglets: readonly (number | undefined)[],
  ): void {
    const { watch, oracle } = this.#scene
    if (watch.failure !== undefined) {
      throw new Violation(`#${number} was acked after a commit had failed: ${watch.failure}`)
    }
    logIds.forEach((logId, i) => {
      const lsn = Array.isArray(value) ? (value[i] as number) : (value as number) + i
      this.#scene.requireDurable(logId, loglets[i] as number, lsn)
    })
    this.#scene.judgeSoon(number, () => oracle.succeeded(number, value))
  }

  #rejected(number: number, error: unknown): void {
    this.#scene.judgeSoon(number, () => {
      this.#scene.oracle.failed(number, error)
      const { code } = error as LogError
      if (code === 'STORE_FAILED') this.#requireFailed()
      if (code === 'STORE_FAILED' || code === 'WRITE_FAILED') this.#requireExcuse(error)
      const milestone = REJECTIONS[code]
      if (milestone !== undefined) this.#scene.coverage.hit(milestone)
    })
  }

  #requireFailed(): void {
    const { status, failure } = this.#session.store
    if (status !== 'open' && failure?.code === 'STORE_FAILED') return
    throw new Violation(`a command met a failure, and the store is ${status}`)
  }

  /** Nothing fails by itself. */
  #requireExcuse(error: unknown): void {
    if (this.#scene.troubles.isExcused) return
    throw asViolation('a command failed without a reason', error)
  }

  /** Appends until the segment has rolled, or it is given up. */
  async roll(log: number): Promise<void> {
    const before = this.#scene.segments().at(-1)
    const record = { bytes: ROLL_BYTES, of: 'text' } as const
    for (let i = 0; i < MAX_ROLL_APPENDS; i++) {
      this.call({
        call: 'append',
        log,
        record,
        expect: 'none',
        isWithdrawn: false,
        whenFull: 'wait',
      })
      await this.settle()
      if (this.#scene.segments().at(-1) !== before) return
    }
  }

  /** A reader follows the log, in the background, until the process ends or the log does. */
  read(logId: LogId): void {
    const incarnation = this.#scene.oracle.target(logId)
    const loglet = this.#session.loglet(logId)
    if (incarnation === undefined || loglet === undefined) return
    const { process } = this.#session
    this.#session.watch(logId, (tail) => this.#scene.shown(process, logId, loglet, tail))
    this.#follow(logId, incarnation, loglet).catch((error: unknown) => {
      if (process.isAlive) this.#scene.note(error)
    })
  }

  async #follow(logId: LogId, incarnation: number, loglet: number): Promise<void> {
    const { store, process } = this.#session
    const { oracle, coverage } = this.#scene
    const judge = (judgement: () => void): void => this.#scene.judgeSoon(Infinity, judgement)
    try {
      for await (const record of store.createReader(logId)) {
        if (!process.isAlive) return
        if (record.kind === 'data') {
          coverage.hit('reader saw a record')
          judge(() => oracle.sawRecord(logId, incarnation, record))
          this.#scene.requireReadDurable(logId, loglet, record.lsn)
        } else if (record.kind === 'trim-gap') {
          coverage.hit('reader saw a gap')
          judge(() => oracle.sawGap(logId, incarnation, record.until))
        } else throw new Violation(`a reader of ${logId} was told of a loss`)
      }
      judge(() => oracle.sawSealedEnd(logId, incarnation))
    } catch (error) {
      if (process.isAlive) this.#readerFailed(error, logId, incarnation)
    }
  }

  #readerFailed(error: unknown, logId: LogId, incarnation: number): void {
    const { oracle, troubles } = this.#scene
    if (!(error instanceof LogError)) throw asViolation('a reader failed', error)
    if (error.code === 'CLOSED') return
    if (error.code === 'UNKNOWN_LOG') {
      this.#scene.judgeSoon(Infinity, () => oracle.sawDeleted(logId, incarnation))
      return
    }
    const isDue = error.code === 'STORE_FAILED' || error.code === 'READ_FAILED'
    if (!isDue || !troubles.isFaulty) throw asViolation(`a reader of ${logId} failed`, error)
  }
}
