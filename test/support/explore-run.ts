/**
 * Runs a plan on a simulated machine: opens a store, works on it, crashes it, opens it again, and
 * has the oracle judge whatever anybody is told or shows. Deterministic: a plan replays exactly.
 */
import { posix } from 'node:path'
import { LogError } from '../../codec/errors.ts'
import { FRAME_KIND } from '../../codec/format.ts'
import { auditStore } from '../../engine/store-audit.ts'
import type { FileSystem } from '../../engine/file-system.ts'
import type { RecoveryReport } from '../../engine/metrics.ts'
import { Callers } from './explore-callers.ts'
import { Coverage, isMilestone } from './explore-coverage.ts'
import { Follower } from './explore-follower.ts'
import { Violation, type Extent, type SeenLog } from './explore-oracle.ts'
import type { Cycle, Plan, Step } from './explore-plan.ts'
import { Failure, type KnownGroup, type RunOptions, type RunResult } from './explore-kinds.ts'
import { probe } from './explore-probe.ts'
import { asViolation, requireReadFailed, Scene, turn, type Base } from './explore-scene.ts'
import { SimStore, STORE_DIR } from './explore-store.ts'
import type { WatchedGroup } from './explore-watch.ts'
import type { CrashKind } from './sim-disk.ts'
import { SimCrash } from './sim-scheduler.ts'

/** Runs a plan. Rejects with a Failure if the store broke a promise. */
export async function runPlan(plan: Plan, options: RunOptions = {}): Promise<RunResult> {
  const exploration = new Exploration(plan, options)
  try {
    return await exploration.run()
  } catch (error) {
    throw new Failure(exploration.done(), error, exploration.describe())
  }
}

/** Runs a plan up to its end, of which others may begin. */
export async function prepareBase(plan: Plan): Promise<Base> {
  const exploration = new Exploration(plan, {})
  await exploration.live()
  return exploration.base()
}

const TRACE_COMMANDS = 24
const CATCH_UP_MS = 3000
/** What the next open puts right, without a loss. */
const HARMLESS: ReadonlySet<string> = new Set(['R1', 'R2', 'R3', 'R5', 'R9'])
const QUIET_TURNS = 3
const MAX_STEPS_BEFORE_STALL = 4

function sameFiles(fileSystem: FileSystem): FileSystem {
  return fileSystem
}

class Exploration {
  readonly #plan: Plan
  readonly #options: RunOptions
  readonly #scene: Scene
  readonly #coverage: Coverage
  #session: SimStore | undefined
  #callers: Callers | undefined
  #follower: Follower | undefined
  #cycles = 0
  #steps = 0
  #isFinishing = false
  #wasClosed = false
  #opened: Extent | undefined
  #groups: KnownGroup[] = []
  #groupInFlight: KnownGroup | undefined

  constructor(plan: Plan, options: RunOptions) {
    const { coverage = new Coverage(), layer = sameFiles, base } = options
    this.#plan = plan
    this.#options = options
    this.#coverage = coverage
    this.#scene = new Scene(plan, coverage, layer, base)
    const { watch } = this.#scene
    watch.onGroup = (group) => this.#sawGroup(group)
    watch.onDurable = () => {
      if (this.#groupInFlight !== undefined) this.#groups.push(this.#groupInFlight)
    }
    watch.onPutBack = () => coverage.hit('put back')
  }

  describe(): string {
    const { oracle, disk } = this.#scene
    return `commands:\n${oracle.describe(TRACE_COMMANDS)}\n${disk.describe()}`
  }

  /** The plan without what was not begun. */
  done(): Plan {
    const done = this.#plan.cycles.slice(0, this.#cycles)
    const last = done.at(-1)
    if (last === undefined || this.#isFinishing) return this.#plan
    const steps = last.steps.slice(0, this.#steps)
    return { ...this.#plan, cycles: [...done.slice(0, -1), { ...last, steps }] }
  }

  async run(): Promise<RunResult> {
    await this.live()
    this.#isFinishing = true
    await this.#finish()
    const { disk, troubles } = this.#scene
    const { operationCount: operations } = disk.faults
    return { cycles: this.#cycles, operations, wasFaulty: troubles.wasFaulty }
  }

  /** One cycle after the other. */
  async live(): Promise<void> {
    this.#scene.disk.makeDirectory(posix.dirname(STORE_DIR))
    for (const cycle of this.#plan.cycles) {
      await this.#cycle(cycle)
      await this.#rest()
    }
  }

  base(): Base {
    const { disk, oracle, watch, calls } = this.#scene
    return { disk, oracle, watch, records: calls.records }
  }

  async #cycle({ faults, crash, steps, end }: Cycle): Promise<void> {
    const { disk, troubles } = this.#scene
    this.#cycles++
    this.#steps = 0
    disk.crashAtOperation(crash?.nth ?? Infinity, crash?.kind ?? 'kill')
    troubles.arm(faults, 'open')
    let phase: 'opening' | 'working' | 'closing' = 'opening'
    try {
      if (!(await this.#open())) return
      troubles.arm(faults, 'work')
      phase = 'working'
      for (const step of steps) await this.#takeStep(step)
      this.#tellStep()
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

  #takeStep(step: Step): Promise<void> {
    this.#tellStep()
    this.#steps++
    return this.#step(step)
  }

  #tellStep(): void {
    const { operationCount } = this.#scene.disk.faults
    this.#options.onStep?.(this.#cycles - 1, this.#steps, operationCount)
  }

  #disarm(): void {
    const { troubles } = this.#scene
    troubles.disarm()
    if (troubles.isFaulty && this.#follower !== undefined) this.#follower.mayFail = true
  }

  async #rest(): Promise<void> {
    if (this.#options.between === undefined || this.#opened === undefined) return
    const { disk, oracle, watch, settings } = this.#scene
    const isClosed = this.#wasClosed
    const { opened, groups } = { opened: this.#opened, groups: this.#groups }
    await this.#options.between({ disk, oracle, watch, settings, isClosed, opened, groups })
  }

  /** Opens the store and compares all of it; false if it could not be opened. */
  async #open(): Promise<boolean> {
    const { disk, troubles, watch, options } = this.#scene
    const { process } = disk
    troubles.nextLife()
    watch.restart()
    try {
      const opening = SimStore.open(process, this.#scene.writersFiles(process), options)
      this.#session = await this.#scene.run(opening)
    } catch (error) {
      if (error instanceof SimCrash) throw error
      this.#refused(error)
      return false
    }
    this.#callers = new Callers(this.#scene, this.#session)
    this.#reportRecovery(this.#session.store.recovery)
    await this.#lookAfterOpen(this.#session)
    await this.#openFollower()
    return true
  }

  #refused(error: unknown): void {
    const { oracle, troubles } = this.#scene
    if (!LogError.is(error, 'OPEN_FAILED')) throw asViolation('open was refused', error)
    const isFull = oracle.settledCount === 0 && troubles.isSmallDisk
    if (!troubles.isFaulty && !isFull) throw asViolation('open failed without a reason', error)
    this.#coverage.hit('open refused')
    this.#requireNothingOpen()
    this.#wasClosed = false
  }

  #reportRecovery({ findings, metadataRebuilt }: RecoveryReport): void {
    this.#coverage.hit('opened')
    if (this.#wasClosed) this.#requireClean(findings)
    if (metadataRebuilt) this.#coverage.hit('metadata rebuilt')
    if (metadataRebuilt && this.#scene.troubles.isWell) {
      throw new Violation('the metadata had to be rebuilt')
    }
    for (const { label, message } of findings) {
      if (isMilestone(label)) this.#coverage.hit(label)
      // It is replaced whole or not at all, whatever fails.
      if (message.includes('metadata is damaged')) throw new Violation(message)
      if (label === 'R2') this.#coverage.hit('torn bytes dropped')
      if (label === 'R3') this.#coverage.hit('group torn')
      const frames = Number(/(\d+) frames/.exec(message)?.[1])
      if (label === 'R3' && frames > 1) this.#coverage.hit('group of many frames torn')
    }
  }

  /** A store that was closed well is opened without any recovery. */
  #requireClean([finding]: RecoveryReport['findings']): void {
    if (finding === undefined) this.#coverage.hit('opened after a clean close')
    else if (this.#scene.troubles.isWell) {
      throw new Violation(`after a clean close: ${finding.label} ${finding.message}`)
    }
  }

  async #lookAfterOpen(session: SimStore): Promise<void> {
    const { oracle } = this.#scene
    const seen = await this.#look(session)
    if (oracle.reopened(seen) > 0) this.#coverage.hit('unacked group kept')
    this.#opened = oracle.extent()
    this.#groups = []
    for (const { logId, loglet, records } of seen) {
      const last = records.at(-1)
      if (last !== undefined) this.#scene.requireDurable(logId, loglet, last.lsn)
    }
  }

  /** Reads everything, if need be once more without faults. */
  async #look(session: SimStore): Promise<SeenLog[]> {
    const { troubles } = this.#scene
    try {
      return await this.#scene.run(session.look())
    } catch (error) {
      requireReadFailed('reading failed', error, troubles)
    }
    this.#disarm()
    return this.#scene.run(session.look())
  }

  async #openFollower(): Promise<void> {
    if (!this.#scene.settings.hasFollower || this.#follower?.isAlive === true) return
    const process = this.#scene.disk.spawn()
    const files = this.#scene.files(process)
    try {
      const following = Follower.open(process, files, this.#scene.options, (...shown) => {
        this.#scene.shown(process, ...shown)
      })
      this.#follower = await this.#scene.run(following)
    } catch (error) {
      if (error instanceof SimCrash) throw error
      if (!this.#scene.troubles.isFaulty) throw asViolation('following was refused', error)
    }
  }

  #step(step: Step): Promise<void> {
    const { session, callers } = this.#use()
    switch (step.step) {
      case 'calls':
        return callers.callAll(step.calls, step.waits)
      case 'roll':
        return callers.roll(step.log)
      case 'read':
        callers.read(this.#scene.calls.logId(step.log))
        return Promise.resolve()
      case 'look':
        return this.#lookInside(session, callers)
      case 'run':
        return this.#runOperations(step.operations)
      case 'stall':
        return this.#stall(step.ms)
      case 'pause':
        return this.#pause(step.ms)
      case 'jump':
        this.#scene.disk.jumpClock(step.ms)
        return Promise.resolve()
      case 'probe':
        return this.#probe(step.kind)
      case 'reopen':
        return this.#reopen()
    }
  }

  /** The store and its users. A commit that blocks may have crashed it while nobody ran it. */
  #use(): { readonly session: SimStore; readonly callers: Callers } {
    const { session, callers } = { session: this.#session, callers: this.#callers }
    if (session === undefined || callers === undefined) throw new Error('no store is open')
    if (!session.process.isAlive) throw new SimCrash('The machine has crashed')
    return { session, callers }
  }

  async #lookInside(session: SimStore, callers: Callers): Promise<void> {
    await callers.settle()
    this.#scene.oracle.requireSettled(await this.#look(session))
    if (session.store.status === 'failed') this.#coverage.hit('read after a failure')
    await this.#lookAtFollower(false)
  }

  /** What a follower shows must be durable; all of it if nothing has happened for a while. */
  async #lookAtFollower(isCaughtUp: boolean): Promise<void> {
    const follower = this.#follower
    if (follower?.isAlive !== true) return
    try {
      const seen = await this.#scene.run(follower.look())
      follower.compare(seen, this.#scene.oracle)
      this.#sawFollowed(follower, seen)
      if (isCaughtUp) this.#scene.oracle.requireSettled(seen)
    } catch (error) {
      if (error instanceof SimCrash || error instanceof Violation) throw error
      const isExcused = this.#scene.troubles.isFaulty || follower.mayFail
      if (!isExcused) throw asViolation('a follower failed', error)
      this.#scene.disk.kill(follower.process)
      this.#follower = undefined
    }
  }

  #sawFollowed(follower: Follower, seen: readonly SeenLog[]): void {
    for (const { logId, loglet, records } of seen) {
      const last = records.at(-1)
      if (last === undefined) continue
      this.#coverage.hit('follower saw a record')
      this.#scene.requireReadDurable(logId, loglet, last.lsn)
    }
    if (follower.hasStepped(seen, this.#scene.watch)) this.#coverage.hit('follower stepped')
  }

  /** Lets operations be called until there were so many, or nothing is under way any more. */
  async #runOperations(count: number): Promise<void> {
    const { faults } = this.#scene.disk
    const last = faults.operationCount + count
    let reach = (): void => undefined
    const isReached = new Promise<void>((resolve) => {
      reach = resolve
    })
    const counting = faults.fail(({ index }) => {
      if (index >= last) reach()
      return false
    }, {})
    await this.#scene.run(Promise.race([isReached, this.#use().callers.told]))
    counting.remove()
  }

  /** The commit is held before its first step, or between what it writes and its sync. */
  async #stall(ms: number): Promise<void> {
    const { faults } = this.#scene.disk
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
    const { session, callers } = this.#use()
    const { clock } = session.process
    await this.#scene.run(
      new Promise<void>((resolve) => {
        clock.setTimer(resolve, ms)
      }),
    )
    const isQuiet = callers.isQuiet && session.store.status === 'open'
    const isCaughtUp = ms >= CATCH_UP_MS && isQuiet && !this.#scene.troubles.isExcused
    if (isCaughtUp) await this.#lookAtFollower(true)
  }

  async #probe(kind: CrashKind): Promise<void> {
    // What needs no operation to go on does so now, not while the copy is looked at.
    for (let i = 0; i < QUIET_TURNS; i++) await turn()
    this.#use()
    await probe(this.#scene, kind)
  }

  async #reopen(): Promise<void> {
    await this.#close()
    if (!(await this.#open())) throw new SimCrash('The store could not be opened again')
  }

  async #close(): Promise<void> {
    const { session, callers } = this.#use()
    try {
      await this.#scene.run(session.store.close())
      await callers.settle()
    } catch (error) {
      if (error instanceof SimCrash || error instanceof Violation) throw error
      throw asViolation('close failed', error)
    }
    this.#scene.oracle.requireAllTold()
    this.#session = undefined
    this.#wasClosed = true
    this.#requireNothingOpen()
  }

  #requireNothingOpen(): void {
    const { openFiles } = this.#scene.disk
    if (this.#follower?.isAlive === true || openFiles.length === 0) return
    throw new Violation(`left open: ${openFiles.join(' ')}`)
  }

  async #end(end: Cycle['end']): Promise<void> {
    switch (end) {
      case 'close':
        return this.#close()
      case 'writer-kill':
        this.#killWriter()
        return
      default:
        this.#scene.disk.crash(end)
        this.#crashed(end)
    }
  }

  /** Only the writer dies; whoever follows the store goes on. */
  #killWriter(): void {
    this.#scene.disk.kill(this.#use().session.process)
    if (this.#follower?.isAlive === true) this.#coverage.hit('follower outlived the writer')
    this.#crashed('kill')
  }

  #crashed(kind: CrashKind): void {
    this.#scene.judgeAll()
    this.#coverage.hit(kind === 'power' ? 'lost its power' : 'was killed')
    this.#session = undefined
    this.#wasClosed = false
    this.#scene.oracle.forgetCallers()
  }

  /** In the end nothing fails any more: everything must be there, and work. */
  async #finish(): Promise<void> {
    const { disk, troubles } = this.#scene
    disk.crashAtOperation(Infinity, 'kill')
    this.#follower = undefined
    await this.#openAfter('kill')
    await this.#openAfter('power')
    const { shows = 'everything' } = this.#options
    if (this.#session === undefined || shows === 'opens') return
    if (!troubles.isSmallDisk) await this.#requireWorking()
    if (shows === 'works') return
    await this.#close()
    await this.#requireUndamaged()
    await this.#open()
    await this.#close()
  }

  async #openAfter(kind: CrashKind): Promise<void> {
    this.#scene.disk.crash(kind)
    this.#crashed(kind)
    await this.#open()
  }

  async #requireWorking(): Promise<void> {
    const { callers } = this.#use()
    const logs = this.#scene.settings.logIds.map((_, log) => log)
    const records = [{ bytes: 16, of: 'text' }] as const
    const creates = logs.map((log) => ({ call: 'create', log }) as const)
    const batches = logs.map((log) => ({ call: 'batch', log, records }) as const)
    await callers.callAll(creates, true)
    await callers.callAll(batches, true)
  }

  /** Nothing that a closed store leaves may look damaged to anybody. */
  async #requireUndamaged(): Promise<void> {
    const { disk } = this.#scene
    const audit = await disk.run(auditStore(disk.fileSystem, STORE_DIR))
    const { ledger, firstSegment, metadataProblem } = audit
    const damage = ledger.damages.find(
      ({ segment, label }) => segment >= firstSegment && !HARMLESS.has(label),
    )
    const found = damage === undefined ? metadataProblem : `${damage.label} ${damage.message}`
    if (found !== undefined) throw new Violation(`the audit of a closed store finds: ${found}`)
  }

  #sawGroup(group: WatchedGroup): void {
    const { path, start, end, beginsSegment, kinds, isAfterNoSpace } = group
    if (this.#options.between !== undefined) {
      const before = this.#scene.oracle.extent()
      this.#groupInFlight = { path, start, end, before }
    }
    const takesRoom = kinds.has(FRAME_KIND.data) || kinds.has(FRAME_KIND.create)
    if (beginsSegment) {
      this.#coverage.hit('rolled')
      const when = group.isPreparedAhead ? 'ahead' : 'on demand'
      this.#coverage.hit(`rolled to a segment prepared ${when}`)
    }
    if (kinds.has(FRAME_KIND.deadSegments)) this.#coverage.hit('segment freed')
    if (kinds.has(FRAME_KIND.delete)) this.#coverage.hit('log deleted')
    if (!isAfterNoSpace || takesRoom) return
    this.#coverage.hit(beginsSegment ? 'rescued in the reserve' : 'rescued in place')
  }
}
