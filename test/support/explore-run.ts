/**
 * Runs a plan on a simulated machine: opens a store, works on it, crashes it, opens it again, and
 * has the oracle judge whatever anybody is told or shows. Deterministic: a plan replays exactly.
 */
import { posix } from 'node:path'
import { LogError, type LogId } from '../../codec/errors.ts'
import { FRAME_KIND } from '../../codec/format.ts'
import { auditStore } from '../../engine/store-audit.ts'
import { segmentOfName, segmentsAmong } from '../../engine/file-names.ts'
import type { FileSystem } from '../../engine/file-system.ts'
import type { RecoveryReport } from '../../engine/metrics.ts'
import { CallMaker } from './explore-calls.ts'
import { Coverage, isMilestone } from './explore-coverage.ts'
import { Follower } from './explore-follower.ts'
import { Oracle, Violation, type Extent, type SeenLog } from './explore-oracle.ts'
import type { Cycle, Plan, PlannedCall, PlannedFault, Settings, Step } from './explore-plan.ts'
import { optionsOf, SimStore, STORE_DIR } from './explore-store.ts'
import { CommitWatch, WatchedFileSystem, type WatchedGroup } from './explore-watch.ts'
import type { Injection } from './faults.ts'
import { SimDisk, type CrashKind, type SimProcess } from './sim-disk.ts'
import { SimCrash } from './sim-scheduler.ts'

export interface RunOptions {
  readonly coverage?: Coverage
  /** Stands between the store and the disk: how a broken disk, or a broken store, is played. */
  readonly layer?: (fileSystem: FileSystem) => FileSystem
  /** Called when no process has the store, after a crash or a close. */
  readonly between?: (life: Life) => Promise<void>
}

/** A group that is durable, and how far everything had come when it was formed. */
export interface KnownGroup {
  readonly path: string
  readonly start: number
  readonly end: number
  readonly before: Extent
}

/** What a life of a store has left, for whoever wants to damage it. */
export interface Life {
  readonly disk: SimDisk
  readonly oracle: Oracle
  readonly settings: Settings
  /** Whether the store was closed. */
  readonly isClosed: boolean
  /** How far everything had come when the store was opened. */
  readonly opened: Extent
  /** The groups since then. */
  readonly groups: readonly KnownGroup[]
}

export interface RunResult {
  /** How often the store was opened or crashed. */
  readonly cycles: number
  /** Operations of the file system. */
  readonly operations: number
}

/** A plan went wrong. */
export class Failure extends Error {
  override readonly name = 'Failure'
  readonly plan: Plan
  readonly trace: string

  /** `plan` as far as it was carried out. */
  constructor(plan: Plan, cause: unknown, trace: string) {
    super(cause instanceof Violation ? cause.message : String(cause), { cause })
    this.plan = plan
    this.trace = trace
  }
}

/** Runs a plan. Rejects with a Failure if the store broke a promise. */
export async function runPlan(plan: Plan, options: RunOptions = {}): Promise<RunResult> {
  const exploration = new Exploration(plan, options)
  try {
    return await exploration.run()
  } catch (error) {
    throw new Failure(exploration.done(), error, exploration.describe())
  }
}

const TRACE_COMMANDS = 24
const ROLL_BYTES = 30 * 1024
const MAX_ROLL_APPENDS = 12
const CATCH_UP_MS = 3000
const LOCK = 'lock'
/** What the next open puts right, without a loss. */
const HARMLESS: ReadonlySet<string> = new Set(['R1', 'R2', 'R3', 'R5', 'R9'])
const QUIET_TURNS = 3
const MAX_STEPS_BEFORE_STALL = 4

class Exploration {
  readonly #plan: Plan
  readonly #disk: SimDisk
  readonly #layer: (fileSystem: FileSystem) => FileSystem
  readonly #oracle = new Oracle()
  readonly #watch = new CommitWatch()
  readonly #coverage: Coverage
  readonly #calls: CallMaker
  #store: SimStore | undefined
  #follower: Follower | undefined
  /** Calls that were not waited for. */
  #underWay: Promise<void>[] = []
  #faults: Injection[] = []
  #faultHits = 0
  #wasFaulty = false
  /** What was told or seen in this turn. */
  #unjudged: { readonly number: number; readonly judge: () => void }[] = []
  #violation: Error | undefined
  #cycles = 0
  #steps = 0
  #isFinishing = false
  #lastEnd: Cycle['end'] | 'crash' | undefined
  readonly #between: RunOptions['between']
  #opened: Extent | undefined
  #groups: KnownGroup[] = []
  #groupInFlight: KnownGroup | undefined

  constructor(plan: Plan, options: RunOptions) {
    const { coverage = new Coverage(), layer = (same) => same, between } = options
    const { capacityBytes = Infinity, logIds } = plan.settings
    this.#plan = plan
    this.#disk = new SimDisk({ seed: plan.seed, capacityBytes })
    this.#coverage = coverage
    this.#layer = layer
    this.#calls = new CallMaker(logIds, {
      sample: (bytes) => this.#newestBytes(bytes),
      end: () => this.#watch.lastEnd,
    })
    this.#watch.onGroup = (group) => this.#sawGroup(group)
    this.#between = between
    this.#watch.onDurable = () => {
      if (this.#groupInFlight !== undefined) this.#groups.push(this.#groupInFlight)
    }
    this.#watch.onPutBack = () => this.#coverage.hit('put back')
  }

  describe(): string {
    return `commands:\n${this.#oracle.describe(TRACE_COMMANDS)}\n${this.#disk.describe()}`
  }

  /** The plan without what was not begun. */
  done(): Plan {
    const { cycles } = this.#plan
    if (this.#isFinishing) return this.#plan
    const done = cycles.slice(0, this.#cycles)
    const last = done.at(-1)
    if (last === undefined) return this.#plan
    const steps = last.steps.slice(0, this.#steps)
    return { ...this.#plan, cycles: done.with(-1, { ...last, steps }) }
  }

  async run(): Promise<RunResult> {
    this.#disk.makeDirectory(posix.dirname(STORE_DIR))
    for (const cycle of this.#plan.cycles) {
      await this.#cycle(cycle)
      await this.#rest()
    }
    await this.#finish()
    return { cycles: this.#cycles, operations: this.#disk.faults.operationCount }
  }

  async #cycle({ faults, crash, steps, end }: Cycle): Promise<void> {
    this.#cycles++
    this.#steps = 0
    this.#disk.crashAtOperation(crash?.nth ?? Infinity, crash?.kind ?? 'kill')
    this.#armAll(faults, 'open')
    let phase: 'opening' | 'working' | 'closing' = 'opening'
    try {
      if (!(await this.#open())) return
      this.#armAll(faults, 'work')
      phase = 'working'
      for (const step of steps) {
        this.#steps++
        await this.#step(step)
      }
      phase = 'closing'
      await this.#end(end)
    } catch (error) {
      if (!(error instanceof SimCrash)) throw error
      if (phase !== 'working') this.#coverage.hit(`crashed while ${phase}`)
      this.#crashed(crash?.kind ?? 'kill')
    } finally {
      this.#disarm()
    }
  }

  #armAll(faults: readonly PlannedFault[], from: PlannedFault['from']): void {
    const due = faults.filter((fault) => fault.from === from)
    this.#faults.push(...due.map((fault) => this.#arm(fault)))
  }

  async #rest(): Promise<void> {
    if (this.#between === undefined || this.#opened === undefined) return
    await this.#between({
      disk: this.#disk,
      oracle: this.#oracle,
      settings: this.#plan.settings,
      isClosed: this.#lastEnd === 'close',
      opened: this.#opened,
      groups: this.#groups,
    })
  }

  #arm({ nth, kinds, pathEnd, fault, isSticky }: PlannedFault): Injection {
    let seen = 0
    const matches = ({ kind, path }: { kind: string; path: string }): boolean => {
      const isMeant = kinds === undefined || (kinds as readonly string[]).includes(kind)
      // An open that fails leaves no descriptor behind.
      if (kind === 'open' && fault.afterEffect === true) return false
      if (!isMeant || (pathEnd !== undefined && !path.endsWith(pathEnd))) return false
      seen++
      return isSticky ? seen >= nth : seen === nth
    }
    return this.#disk.faults.fail(matches, fault, isSticky ? Infinity : 1)
  }

  /** Whether nothing was ever made to fail, and there is room. */
  get #isWell(): boolean {
    return !this.#wasFaulty && this.#plan.settings.capacityBytes === undefined
  }

  /** Whether something was made to fail in this cycle. */
  get #isFaulty(): boolean {
    return this.#faultHits + this.#faults.reduce((sum, { hits }) => sum + hits, 0) > 0
  }

  #disarm(): void {
    this.#faultHits += this.#faults.reduce((sum, { hits }) => sum + hits, 0)
    this.#wasFaulty ||= this.#isFaulty
    if (this.#isFaulty && this.#follower !== undefined) this.#follower.mayFail = true
    for (const fault of this.#faults) fault.remove()
    this.#faults = []
  }

  /** Lets the machine go on until the promise settles. */
  async #run<T>(promise: Promise<T>): Promise<T> {
    const settled = promise.then(
      (value) => ({ value }),
      (error: unknown) => ({ error }),
    )
    const outcome = await this.#disk.run(settled).finally(() => this.#judgeAll())
    if (this.#violation !== undefined) throw this.#violation
    if ('error' in outcome) throw outcome.error
    return outcome.value
  }

  #fileSystem(process: SimProcess): FileSystem {
    return new WatchedFileSystem(this.#layer(process.fileSystem), this.#watch, process)
  }

  /** Opens the store and compares all of it; false if it could not be opened. */
  async #open(): Promise<boolean> {
    const { process } = this.#disk
    this.#wasFaulty ||= this.#isFaulty
    this.#faultHits = 0
    this.#watch.restart()
    const options = optionsOf(this.#plan.settings, () => undefined)
    try {
      const opening = SimStore.open(process, this.#fileSystem(process), options)
      this.#store = await this.#run(opening)
    } catch (error) {
      if (error instanceof SimCrash) throw error
      this.#refused(error)
      return false
    }
    this.#reportRecovery(this.#store)
    await this.#lookAfterOpen(this.#store)
    await this.#openFollower()
    return true
  }

  #refused(error: unknown): void {
    if (!LogError.is(error, 'OPEN_FAILED')) throw asViolation('open was refused', error)
    const mayBeNew = this.#oracle.settledCount === 0
    const isFull = mayBeNew && this.#plan.settings.capacityBytes !== undefined
    if (!this.#isFaulty && !isFull) throw asViolation('open failed without a reason', error)
    this.#coverage.hit('open refused')
    this.#requireNothingOpen()
    this.#lastEnd = 'crash'
  }

  #reportRecovery({ store }: SimStore): void {
    const { findings, metadataRebuilt } = store.recovery
    this.#coverage.hit('opened')
    if (this.#lastEnd === 'close') this.#requireClean(findings)
    if (metadataRebuilt) this.#coverage.hit('metadata rebuilt')
    if (metadataRebuilt && this.#isWell) throw new Violation('the metadata had to be rebuilt')
    for (const { label, message } of findings) {
      if (isMilestone(label)) this.#coverage.hit(label)
      // It is replaced whole or not at all, whatever fails.
      if (message.includes('metadata is damaged')) throw new Violation(message)
      if (label === 'R2') this.#coverage.hit('torn bytes dropped')
      const frames = /(\d+) frames/.exec(message)?.[1]
      if (label === 'R3') this.#coverage.hit('group torn')
      if (label === 'R3' && Number(frames) > 1) this.#coverage.hit('group of many frames torn')
    }
  }

  /** A store that was closed well is opened without any recovery. */
  #requireClean(findings: RecoveryReport['findings']): void {
    const [finding] = findings
    if (finding === undefined) this.#coverage.hit('opened after a clean close')
    else if (this.#isWell) {
      throw new Violation(`after a clean close: ${finding.label} ${finding.message}`)
    }
  }

  async #lookAfterOpen(store: SimStore): Promise<void> {
    const seen = await this.#look(store)
    if (seen === undefined) throw new Violation('what an open store holds can not be read')
    if (this.#oracle.reopened(seen) > 0) this.#coverage.hit('unacked group kept')
    this.#opened = this.#oracle.extent()
    this.#groups = []
    for (const { logId, loglet, records } of seen) {
      const last = records.at(-1)
      if (last !== undefined) this.#requireDurable(logId, loglet, last.lsn)
    }
  }

  /** Reads everything, at worst once more without faults; undefined if even that fails. */
  async #look(store: SimStore): Promise<SeenLog[] | undefined> {
    try {
      return await this.#run(store.look())
    } catch (error) {
      if (!LogError.is(error, 'READ_FAILED')) throw asViolation('reading failed', error)
      if (!this.#isFaulty) throw asViolation('reading failed without a reason', error)
    }
    this.#disarm()
    return this.#run(store.look())
  }

  async #openFollower(): Promise<void> {
    if (!this.#plan.settings.hasFollower || this.#follower?.isAlive === true) return
    const process = this.#disk.spawn()
    const options = optionsOf(this.#plan.settings, () => undefined)
    const fileSystem = this.#layer(process.fileSystem)
    try {
      this.#follower = await this.#run(
        Follower.open(process, fileSystem, options, (...shown) => this.#shown(process, ...shown)),
      )
    } catch (error) {
      if (error instanceof SimCrash) throw error
      if (!this.#isFaulty) throw asViolation('following was refused', error)
    }
  }

  #step(step: Step): Promise<void> {
    switch (step.step) {
      case 'calls':
        return this.#callAll(step.calls, step.waits)
      case 'roll':
        return this.#roll(step.log)
      case 'read':
        return this.#read(this.#calls.logId(step.log))
      case 'look':
        return this.#lookInside()
      case 'run':
        return this.#runOperations(step.operations)
      case 'stall':
        return this.#stall(step.ms)
      case 'pause':
        return this.#pause(step.ms)
      case 'jump':
        this.#disk.jumpClock(step.ms)
        return Promise.resolve()
      case 'probe':
        return this.#probe(step.kind)
      case 'reopen':
        return this.#reopen()
    }
  }

  get #session(): SimStore {
    if (this.#store === undefined) throw new Error('no store is open')
    return this.#store
  }

  async #callAll(calls: readonly PlannedCall[], waits: boolean): Promise<void> {
    for (const call of calls) this.#call(call)
    if (waits) await this.#settle()
  }

  async #settle(): Promise<void> {
    const underWay = this.#underWay
    this.#underWay = []
    if (underWay.length > 0) await this.#run(Promise.all(underWay))
  }

  #call(planned: PlannedCall): void {
    const session = this.#session
    const { store, process } = session
    const { command, start, appendsTo } = this.#calls.make(planned, this.#oracle.world)
    const isThere = command.kind === 'create' && this.#oracle.target(command.logId) !== undefined
    // A log that is there need not be created: that is no command.
    const number = isThere ? undefined : this.#oracle.issue(command, store.status !== 'open')
    const loglets = appendsTo.map((logId) => session.loglet(logId))
    const told = start(store).then(
      (value) => {
        if (!process.isAlive || number === undefined) return
        this.#requireNoFailure(number)
        this.#requireAppended(appendsTo, loglets, value)
        this.#judgeSoon(number, () => this.#oracle.succeeded(number, value))
      },
      (error: unknown) => {
        if (!process.isAlive || number === undefined) return
        this.#judgeSoon(number, () => this.#rejected(number, error))
      },
    )
    this.#underWay.push(told.catch((error: unknown) => this.#note(error)))
  }

  #note(error: unknown): void {
    this.#violation ??= error instanceof Error ? error : new Error(String(error))
  }

  #requireNoFailure(number: number): void {
    if (this.#watch.failure === undefined) return
    throw new Violation(`#${number} was acked after a commit had failed: ${this.#watch.failure}`)
  }

  /**
   * What is told in one turn reaches its callers in an order that depends on how many promises lie
   * between: it is judged in the order of the calls, and before what readers saw.
   */
  #judgeSoon(number: number, judge: () => void): void {
    if (this.#unjudged.length === 0) setImmediate(() => this.#judgeAll())
    this.#unjudged.push({ number, judge })
  }

  #judgeAll(): void {
    const due = this.#unjudged.sort((a, b) => a.number - b.number)
    this.#unjudged = []
    try {
      for (const { judge } of due) judge()
    } catch (error) {
      this.#note(error)
    }
  }

  #rejected(number: number, error: unknown): void {
    this.#oracle.failed(number, error)
    switch ((error as LogError).code) {
      case 'WRITE_FAILED':
        this.#requireCause(error)
        return this.#coverage.hit('no room')
      case 'STORE_FAILED':
        this.#requireCause(error)
        this.#requireFailed()
        return this.#coverage.hit('store failed')
      case 'TAIL_MISMATCH':
      case 'SEALED':
        return this.#coverage.hit('verdict')
      case 'UNKNOWN_LOG':
        return this.#coverage.hit('unknown log')
      case 'ABORTED':
        return this.#coverage.hit('withdrawn')
      case 'QUEUE_FULL':
        return this.#coverage.hit('queue full')
      default:
    }
  }

  #requireFailed(): void {
    const { status, failure } = this.#session.store
    if (status !== 'open' && failure?.code === 'STORE_FAILED') return
    throw new Violation(`a command met a failure, and the store is ${status}`)
  }

  /** Nothing fails by itself. */
  #requireCause(error: unknown): void {
    if (this.#isFaulty || this.#plan.settings.capacityBytes !== undefined) return
    throw asViolation('a command failed without a reason', error)
  }

  #requireAppended(
    logIds: readonly LogId[],
    loglets: readonly (number | undefined)[],
    value: unknown,
  ): void {
    logIds.forEach((logId, i) => {
      const lsn = Array.isArray(value) ? (value[i] as number) : (value as number) + i
      this.#requireDurable(logId, loglets[i] as number, lsn)
    })
  }

  /** What somebody was told of must be there after any power loss, right now. */
  #requireDurable(logId: LogId, loglet: number, lsn: number): void {
    const place = this.#watch.placeOf(loglet, lsn)
    if (place === undefined) throw new Violation(`${logId} ${lsn} was never given to the disk`)
    if (this.#disk.isDurable(place.path, 0, place.end)) return
    throw new Violation(`${logId} ${lsn} was told of before ${place.path} was durable`)
  }

  async #roll(log: number): Promise<void> {
    const before = this.#segments().at(-1)
    for (let i = 0; i < MAX_ROLL_APPENDS; i++) {
      const record = { bytes: ROLL_BYTES, of: 'text' } as const
      this.#call({
        call: 'append',
        log,
        record,
        expect: 'none',
        isWithdrawn: false,
        whenFull: 'wait',
      })
      await this.#settle()
      if (this.#segments().at(-1) !== before) return
    }
  }

  #segments(): number[] {
    const names = [...this.#disk.contents().keys()].map((path) => posix.basename(path))
    return segmentsAmong(names)
  }

  /** A reader follows the log until the process ends, or the log does. */
  async #read(logId: LogId): Promise<void> {
    const incarnation = this.#oracle.target(logId)
    if (incarnation === undefined) return
    const session = this.#session
    const loglet = session.loglet(logId) as number
    session.watch(logId, (tail) => this.#shown(session.process, logId, loglet, tail))
    // It goes on in the background; what it finds wrong is noted.
    void this.#follow(session, logId, incarnation, loglet).catch((error: unknown) => {
      if (session.process.isAlive) this.#note(error)
    })
    await this.#run(Promise.resolve())
  }

  async #follow(
    { store, process }: SimStore,
    logId: LogId,
    incarnation: number,
    loglet: number,
  ): Promise<void> {
    try {
      for await (const record of store.createReader(logId)) {
        if (!process.isAlive) return
        if (record.kind === 'data') {
          this.#coverage.hit('reader saw a record')
          this.#judgeSoon(Infinity, () => this.#oracle.sawRecord(logId, incarnation, record))
          this.#requireReadDurable(logId, loglet, record.lsn)
        } else if (record.kind === 'trim-gap') {
          this.#coverage.hit('reader saw a gap')
          this.#judgeSoon(Infinity, () => this.#oracle.sawGap(logId, incarnation, record.until))
        } else throw new Violation(`a reader of ${logId} was told of a loss`)
      }
      this.#judgeSoon(Infinity, () => this.#oracle.sawSealedEnd(logId, incarnation))
    } catch (error) {
      if (process.isAlive) this.#readerFailed(error, logId, incarnation)
    }
  }

  /** Readers are woken: what they are woken for must be durable already. */
  #shown({ isAlive }: SimProcess, logId: LogId, loglet: number, tail: number): void {
    if (!isAlive || tail === 1) return
    try {
      this.#requireReadDurable(logId, loglet, tail - 1)
    } catch (error) {
      this.#note(error)
    }
  }

  /** A segment that is gone by now was read before it was trimmed. */
  #requireReadDurable(logId: LogId, loglet: number, lsn: number): void {
    const place = this.#watch.placeOf(loglet, lsn)
    const isThere = place !== undefined && this.#hasFile(place.path)
    if (isThere) this.#requireDurable(logId, loglet, lsn)
  }

  #hasFile(path: string): boolean {
    return this.#segments().includes(segmentOfName(posix.basename(path)) ?? 0)
  }

  #readerFailed(error: unknown, logId: LogId, incarnation: number): void {
    if (!(error instanceof LogError)) throw asViolation('a reader failed', error)
    if (error.code === 'CLOSED') return
    if (error.code === 'UNKNOWN_LOG') {
      return this.#judgeSoon(Infinity, () => this.#oracle.sawDeleted(logId, incarnation))
    }
    const isDue = error.code === 'STORE_FAILED' || error.code === 'READ_FAILED'
    if (!isDue || !this.#isFaulty) throw asViolation(`a reader of ${logId} failed`, error)
  }

  async #lookInside(): Promise<void> {
    await this.#settle()
    const session = this.#session
    const seen = await this.#look(session)
    if (seen === undefined) return
    this.#oracle.requireSettled(seen)
    if (session.store.status === 'failed') this.#coverage.hit('read after a failure')
    await this.#lookAtFollower(false)
  }

  /** What a follower shows must be durable; all of it if nothing has happened for a while. */
  async #lookAtFollower(isCaughtUp: boolean): Promise<void> {
    const follower = this.#follower
    if (follower?.isAlive !== true) return
    try {
      const seen = await this.#run(follower.look())
      for (const { records } of seen) {
        if (records.length > 0) this.#coverage.hit('follower saw a record')
      }
      follower.compare(seen, this.#oracle)
      for (const { logId, loglet, records } of seen) {
        const last = records.at(-1)
        if (last !== undefined) this.#requireReadDurable(logId, loglet, last.lsn)
      }
      if (follower.hasStepped(seen, this.#watch)) this.#coverage.hit('follower stepped')
      if (isCaughtUp) this.#oracle.requireSettled(seen)
    } catch (error) {
      if (error instanceof SimCrash || error instanceof Violation) throw error
      if (!this.#isFaulty && !follower.mayFail) throw asViolation('a follower failed', error)
      this.#disk.kill(follower.process)
      this.#follower = undefined
    }
  }

  /** Lets operations be called until there were so many, or nothing is under way any more. */
  async #runOperations(count: number): Promise<void> {
    const { faults } = this.#disk
    const last = faults.operationCount + count
    let reach = (): void => undefined
    const isReached = new Promise<void>((resolve) => {
      reach = resolve
    })
    const counting = faults.fail((operation) => {
      if (operation.index >= last) reach()
      return false
    }, {})
    await this.#run(Promise.race([isReached, Promise.all(this.#underWay)]))
    counting.remove()
  }

  /** The commit is held before its first step, or between what it writes and its sync. */
  async #stall(ms: number): Promise<void> {
    const { faults } = this.#disk
    // Each operation is asked for before each of its steps.
    let steps = faults.operationCount % MAX_STEPS_BEFORE_STALL
    const hold = faults.hold(({ kind }) => kind === 'commit' && steps-- <= 0)
    try {
      await this.#pause(ms)
    } finally {
      hold.release()
    }
  }

  async #pause(ms: number): Promise<void> {
    const session = this.#session
    await this.#run(
      new Promise<void>((resolve) => void session.process.clock.setTimer(resolve, ms)),
    )
    const isQuiet = this.#underWay.length === 0 && session.store.status === 'open'
    const isFine = !this.#isFaulty && this.#plan.settings.capacityBytes === undefined
    if (ms >= CATCH_UP_MS && isQuiet && isFine) await this.#lookAtFollower(true)
  }

  /** A copy of the machine crashes here and now, is opened, loses its power, and is opened again. */
  async #probe(kind: CrashKind): Promise<void> {
    // What needs no operation to go on does so now, not while the copy is looked at.
    for (let i = 0; i < QUIET_TURNS; i++) await turn()
    this.#requireAlive()
    this.#coverage.hit('probed')
    const copy = this.#disk.fork(this.#plan.seed ^ this.#disk.faults.operationCount)
    copy.crash(kind)
    const seen = await this.#openCopy(copy)
    this.#oracle.requireLegal(seen)
    copy.crash('power')
    requireSame(seen, await this.#openCopy(copy))
  }

  async #openCopy(copy: SimDisk): Promise<SeenLog[]> {
    const { process } = copy
    const options = optionsOf(this.#plan.settings, () => undefined)
    try {
      const opening = SimStore.open(process, this.#layer(process.fileSystem), options)
      const session = await copy.run(opening)
      return await copy.run(session.look())
    } catch (error) {
      const isNew = this.#oracle.settledCount === 0
      const { capacityBytes } = this.#plan.settings
      if (isNew && capacityBytes !== undefined && LogError.is(error, 'OPEN_FAILED')) return []
      throw asViolation('after a crash the store could not be opened', error)
    }
  }

  async #reopen(): Promise<void> {
    await this.#close()
    if (!(await this.#open())) throw new SimCrash('The store could not be opened again')
  }

  async #close(): Promise<void> {
    const { store } = this.#session
    const underWay = this.#underWay
    this.#underWay = []
    try {
      await this.#run(store.close())
      await this.#run(Promise.all(underWay))
    } catch (error) {
      if (error instanceof SimCrash || error instanceof Violation) throw error
      throw asViolation('close failed', error)
    }
    this.#oracle.requireAllTold()
    this.#store = undefined
    this.#lastEnd = 'close'
    this.#requireNothingOpen()
  }

  #requireNothingOpen(): void {
    if (this.#follower?.isAlive === true || this.#disk.openFiles.length === 0) return
    throw new Violation(`left open: ${this.#disk.openFiles.join(' ')}`)
  }

  async #end(end: Cycle['end']): Promise<void> {
    switch (end) {
      case 'close':
        return this.#close()
      case 'writer-kill':
        return this.#killWriter()
      default:
        this.#disk.crash(end)
        this.#crashed(end)
    }
  }

  /** A commit that blocks may crash the machine while nobody runs it. */
  #requireAlive(): void {
    if (!this.#session.process.isAlive) throw new SimCrash('The machine has crashed')
  }

  /** Only the writer dies; whoever follows the store goes on. */
  #killWriter(): void {
    this.#requireAlive()
    this.#disk.kill(this.#session.process)
    if (this.#follower?.isAlive === true) this.#coverage.hit('follower outlived the writer')
    this.#crashed('kill')
  }

  #crashed(kind: CrashKind): void {
    this.#judgeAll()
    this.#coverage.hit(kind === 'power' ? 'lost its power' : 'was killed')
    this.#store = undefined
    this.#underWay = []
    this.#lastEnd = 'crash'
    this.#oracle.forgetCallers()
  }

  /** In the end nothing fails any more: everything must be there, and work. */
  async #finish(): Promise<void> {
    this.#isFinishing = true
    this.#disk.crashAtOperation(Infinity, 'kill')
    this.#disk.crash('kill')
    this.#crashed('kill')
    this.#follower = undefined
    if (!(await this.#open())) return
    this.#disk.crash('power')
    this.#crashed('power')
    await this.#open()
    if (this.#plan.settings.capacityBytes === undefined) await this.#requireWorking()
    await this.#close()
    await this.#requireUndamaged()
    await this.#open()
    await this.#close()
  }

  async #requireWorking(): Promise<void> {
    const logs = this.#plan.settings.logIds.map((_, log) => log)
    await this.#callAll(
      logs.map((log) => ({ call: 'create', log })),
      true,
    )
    const records = [{ bytes: 16, of: 'text' }] as const
    await this.#callAll(
      logs.map((log) => ({ call: 'batch', log, records })),
      true,
    )
  }

  /** Nothing that a closed store leaves may look damaged to anybody. */
  async #requireUndamaged(): Promise<void> {
    const audit = await this.#disk.run(auditStore(this.#disk.fileSystem, STORE_DIR))
    const { ledger, firstSegment, metadataProblem } = audit
    const damage = ledger.damages.find(
      ({ segment, label }) => segment >= firstSegment && !HARMLESS.has(label),
    )
    const found = damage === undefined ? metadataProblem : `${damage.label} ${damage.message}`
    if (found !== undefined) throw new Violation(`the audit of a closed store finds: ${found}`)
  }

  #sawGroup({ path, start, end, beginsSegment, kinds, isAfterNoSpace }: WatchedGroup): void {
    if (this.#between !== undefined) {
      this.#groupInFlight = { path, start, end, before: this.#oracle.extent() }
    }
    const takesRoom = kinds.has(FRAME_KIND.data) || kinds.has(FRAME_KIND.create)
    if (beginsSegment) this.#coverage.hit('rolled')
    if (kinds.has(FRAME_KIND.deadSegments)) this.#coverage.hit('segment freed')
    if (kinds.has(FRAME_KIND.delete)) this.#coverage.hit('log deleted')
    if (!isAfterNoSpace || takesRoom) return
    this.#coverage.hit(beginsSegment ? 'rescued in the reserve' : 'rescued in place')
  }

  #newestBytes(bytes: number): Uint8Array {
    const newest = this.#segments().at(-1)
    const name = newest === undefined ? LOCK : `${String(newest).padStart(10, '0')}.segment`
    return this.#disk.readFile(posix.join(STORE_DIR, name)).slice(0, bytes)
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}

function requireSame(before: readonly SeenLog[], after: readonly SeenLog[]): void {
  const [first, second] = [before, after].map((seen) =>
    JSON.stringify(seen, (_key, value: unknown) =>
      typeof value === 'bigint' ? String(value) : value,
    ),
  )
  if (first !== second) throw new Violation('a second recovery after a power loss shows less')
}

function asViolation(what: string, error: unknown): Error {
  if (error instanceof SimCrash || error instanceof Violation) return error
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return new Violation(`${what}: ${text}`)
}
