/**
 * Damages what a life of a store has left, one place at a time, and opens it: an error or a gap is
 * right, and so is everything being there. A wrong or a missing record in silence is not, but for
 * the last group: damage to what no later header vouches for can't be told from a torn write.
 */
import { posix } from 'node:path'
import { LogError } from '../../codec/errors.ts'
import { METADATA_MAGIC, SEGMENT_MAGIC } from '../../codec/format.ts'
import { writePrefix } from '../../codec/prefix.ts'
import { METADATA_FILE, segmentOfName } from '../../engine/file-names.ts'
import { auditStore } from '../../engine/store-audit.ts'
import type { RecoveryReport } from '../../engine/metrics.ts'
import { Coverage, isMilestone } from './explore-coverage.ts'
import { judgeRepair } from './explore-repair.ts'
import { planOf } from './explore-generate.ts'
import { Violation, type Extent, type LsnRange, type SeenLog } from './explore-oracle.ts'
import type { Plan } from './explore-plan.ts'
import type { Life, RunOptions, RunResult } from './explore-kinds.ts'
import { runPlan } from './explore-run.ts'
import { optionsOf, SimStore, STORE_DIR } from './explore-store.ts'
import { Random } from './random.ts'
import type { SimDisk } from './sim-disk.ts'

/** Damages per life. */
const DAMAGES = 6
/** Far more than it takes to audit, open and read one. */
const MAX_OPERATIONS = 20_000
const SECTOR = 512
const PAGE = 4096
const NEWER_VERSION = 2
const HARMLESS: ReadonlySet<string> = new Set(['R1', 'R2', 'R3', 'R5', 'R9'])
/** What says that something at the tail was dropped. */
const DROPPED: ReadonlySet<string> = new Set(['R2', 'R3', 'R5'])

/** Bytes of a file that are not what they were. */
export interface Damage {
  readonly what: string
  readonly path: string
  readonly from: number
  readonly to: number
  /** Of one bit: there is something left that can be told from nothing. */
  readonly isFlip?: boolean
  /** How the store must be refused; undefined if other answers may be right too. */
  readonly due: 'CORRUPT' | 'UNSUPPORTED_VERSION' | undefined
}

/** Runs a plan without faults, damages what each of its lives leaves, and opens or repairs it. */
export async function runDamage(
  seed: number,
  options: RunOptions,
  repairs = false,
): Promise<RunResult> {
  const plan = withoutFaults(planOf(seed, seed % 2 === 0 ? 'rolls' : 'crashes'))
  const random = new Random(seed ^ 0xda3a6e)
  let damages = 0
  const { coverage = new Coverage() } = options
  const result = await runPlan(plan, {
    ...options,
    between: async (life) => {
      for (let i = 0; i < DAMAGES; i++, damages++) await damageOnce(life, random, coverage, repairs)
    },
  })
  return { ...result, cycles: result.cycles + damages }
}

function withoutFaults(plan: Plan): Plan {
  const settings = { ...plan.settings, capacityBytes: undefined, hasFollower: false }
  return { ...plan, settings, cycles: plan.cycles.map((cycle) => ({ ...cycle, faults: [] })) }
}

async function damageOnce(
  life: Life,
  random: Random,
  coverage: Coverage,
  repairs: boolean,
): Promise<void> {
  const copy = life.disk.fork(random.uint32())
  const damage = await damageCopy(copy, life, random)
  if (damage === undefined) return
  // Whoever reads on without end is stopped.
  copy.faults.failOperation(MAX_OPERATIONS, { code: 'EIO' }, true)
  try {
    if (repairs) await judgeRepair(life, damage, copy, random, coverage)
    else await judge(life, damage, copy, coverage)
  } catch (error) {
    const { what, path, from, to } = damage
    throw new Violation(`${what} ${posix.basename(path)} from ${from} to ${to}: ${String(error)}`)
  }
}

/** Damages one place of a copy of the machine. */
async function damageCopy(copy: SimDisk, life: Life, random: Random): Promise<Damage | undefined> {
  const paths = [...copy.contents().keys()].filter((path) => !path.endsWith('lock'))
  const segments = paths.filter((path) => segmentOfName(posix.basename(path)) !== undefined)
  if (segments.length === 0) return undefined
  const path = random.chance(0.75) ? random.pick(segments) : random.pick(paths)
  const bytes = copy.readFile(path)
  if (bytes.length === 0) return undefined
  const at = placeIn(bytes, path, life, random)
  switch (random.below(9)) {
    case 0:
    case 1:
    case 2:
    case 3:
      copy.flipBit(path, at, random.below(8))
      return { what: 'a bit flipped in', path, from: at, to: at + 1, isFlip: true, due: undefined }
    case 4:
      return overwrite(copy, path, at, SECTOR, random.chance(0.5) ? undefined : random)
    case 5:
      return copyPage(copy, path, at, random)
    case 6:
      copy.writeFile(path, bytes.subarray(0, at))
      return { what: 'cut', path, from: at, to: Infinity, due: undefined }
    case 7:
      return remove(copy, path, life)
    default:
      return renew(copy, path, bytes, segments)
  }
}

/** A place that matters rather than one among the zeros behind the groups. */
function placeIn(bytes: Uint8Array, path: string, life: Life, random: Random): number {
  const groups = life.groups.filter((group) => group.path === path)
  const group = groups.length === 0 || random.chance(0.3) ? undefined : random.pick(groups)
  if (group !== undefined && group.end <= bytes.length) {
    return random.between(group.start, group.end - 1)
  }
  const used = bytes.findLastIndex((byte) => byte !== 0) + 1
  return random.below(Math.max(1, used))
}

/** Zeros, or noise, over the sector or page of a place. */
function overwrite(
  copy: SimDisk,
  path: string,
  at: number,
  size: number,
  noise: Random | undefined,
): Damage {
  const bytes = copy.readFile(path)
  const from = at - (at % size)
  const to = Math.min(bytes.length, from + size)
  bytes.set(noise?.bytes(to - from) ?? new Uint8Array(to - from), from)
  copy.writeFile(path, bytes)
  return { what: 'overwritten', path, from, to, due: undefined }
}

/** A page of a file lies where another one should. */
function copyPage(copy: SimDisk, path: string, at: number, random: Random): Damage {
  const bytes = copy.readFile(path)
  const source = random.below(bytes.length)
  const from = at - (at % PAGE)
  const page = bytes.slice(source - (source % PAGE), source - (source % PAGE) + PAGE)
  const to = Math.min(bytes.length, from + page.length)
  bytes.set(page.subarray(0, to - from), from)
  copy.writeFile(path, bytes)
  return { what: 'misplaced page in', path, from, to, due: undefined }
}

/** A segment that holds a durable group may not go unnoticed. */
async function remove(copy: SimDisk, path: string, life: Life): Promise<Damage> {
  await copy.run(copy.fileSystem.unlink(path))
  copy.syncAll()
  const isMissed = life.groups.some((group) => group.path === path) && isNeeded(life, path)
  const due = isMissed ? 'CORRUPT' : undefined
  return { what: 'removed', path, from: 0, to: Infinity, due }
}

/** The newest segment is always needed; older ones may be dead by now. */
function isNeeded({ groups }: Life, path: string): boolean {
  return groups.at(-1)?.path === path
}

/** A version that nobody knows yet. */
function renew(
  copy: SimDisk,
  path: string,
  bytes: Uint8Array,
  segments: readonly string[],
): Damage | undefined {
  const isMetadata = path.endsWith(METADATA_FILE)
  if (!isMetadata && !segments.includes(path)) return undefined
  if (bytes.length < SECTOR / 4 && !isMetadata) return undefined
  writePrefix(bytes, isMetadata ? METADATA_MAGIC : SEGMENT_MAGIC, NEWER_VERSION)
  copy.writeFile(path, bytes)
  const due = isMetadata || path === segments.at(-1) ? 'UNSUPPORTED_VERSION' : undefined
  return { what: 'newer version of', path, from: 0, to: 16, due }
}

async function judge(life: Life, damage: Damage, copy: SimDisk, coverage: Coverage): Promise<void> {
  const isFound = await auditFinds(copy)
  const before = copy.contents()
  const opened = await tryOpen(life, copy)
  if (opened instanceof LogError) {
    requireDue(damage, opened)
    requireUnchanged(before, copy.contents())
    if (!isFound) throw new Violation(`open says ${opened.message}, and the audit finds nothing`)
    countRefusal(opened, coverage)
    return
  }
  if (damage.due !== undefined) throw new Violation(`${damage.due} was due, and it was opened`)
  const { recovery } = opened.store
  coverage.hit('opened after damage')
  if (recovery.metadataRebuilt) coverage.hit('metadata rebuilt')
  if (recovery.findings.some(({ label }) => label === 'R7')) coverage.hit('R7')
  const seen = await copy.run(lookAround(opened))
  judgeSeen(life, damage, seen, recovery, isFound, coverage)
}

function countRefusal(refusal: LogError, coverage: Coverage): void {
  coverage.hit('refused')
  if (LogError.is(refusal, 'UNSUPPORTED_VERSION')) coverage.hit('R8')
  if (LogError.is(refusal, 'CORRUPT') && isMilestone(refusal.label)) coverage.hit(refusal.label)
}

function judgeSeen(
  life: Life,
  damage: Damage,
  seen: readonly DamagedLog[],
  { findings }: RecoveryReport,
  isFound: boolean,
  coverage: Coverage,
): void {
  const isSpare = /metadata|index/.test(posix.basename(damage.path))
  if (seen.some(({ unreadable }) => unreadable.length > 0)) {
    coverage.hit('read refused')
    if (!isFound) throw new Violation('the audit finds nothing that readers do')
    if (isSpare) throw new Violation('no record is lost with this file')
  }
  const problem = legalProblem(life, seen)
  if (problem === undefined) return
  if (isSpare || life.isClosed) throw problem
  const isTold = findings.some(({ label }) => DROPPED.has(label))
  if (damage.isFlip === true && !isTold) throw problem
  coverage.hit('last group lost')
  life.oracle.requireExtent(vouchedFor(life, damage), seen)
}

async function auditFinds(copy: SimDisk): Promise<boolean> {
  try {
    const audit = await copy.run(auditStore(copy.fileSystem, STORE_DIR))
    const { ledger, firstSegment, metadataProblem } = audit
    const isHarmful = ledger.damages.some(
      ({ segment, label }) => segment >= firstSegment && !HARMLESS.has(label),
    )
    return isHarmful || metadataProblem !== undefined || audit.storeId === undefined
  } catch (error) {
    if (LogError.is(error, 'UNSUPPORTED_VERSION')) return true
    throw error
  }
}

async function tryOpen({ settings }: Life, copy: SimDisk): Promise<SimStore | LogError> {
  const { process } = copy
  const options = optionsOf(settings, () => undefined)
  try {
    return await copy.run(SimStore.open(process, process.fileSystem, options))
  } catch (error) {
    if (error instanceof LogError) return error
    throw error
  }
}

function requireDue({ due }: Damage, { code, message }: LogError): void {
  if (due === undefined ? code === 'CORRUPT' || code === 'UNSUPPORTED_VERSION' : code === due)
    return
  throw new Violation(`it was refused with ${code}: ${message}`)
}

/** Whoever is refused has not changed a byte. */
function requireUnchanged(
  before: ReadonlyMap<string, Uint8Array>,
  after: ReadonlyMap<string, Uint8Array>,
): void {
  for (const [path, bytes] of before) {
    const now = after.get(path)
    if (now !== undefined && Buffer.compare(bytes, now) === 0) continue
    throw new Violation(`an open that was refused has changed ${path}`)
  }
}

export type DamagedLog = SeenLog & { readonly unreadable: readonly LsnRange[] }

/** Reads everything that can be read, and notes what is said to be lost. */
export async function lookAround(opened: SimStore): Promise<DamagedLog[]> {
  const seen: DamagedLog[] = []
  for (const logId of opened.store.logIds()) {
    const { lsn: tail, sealed, reason } = await opened.store.findTail(logId)
    const trimPoint = await opened.store.getTrimPoint(logId)
    const loglet = opened.loglet(logId) as number
    const seal = sealed ? { reason } : undefined
    const found = await readAround(opened, logId, trimPoint + 1, tail)
    seen.push({ logId, loglet, tail, trimPoint, seal, ...found })
  }
  return seen
}

async function readAround(
  { store }: SimStore,
  logId: string,
  first: number,
  tail: number,
): Promise<Pick<DamagedLog, 'records' | 'unreadable'>> {
  const records: SeenLog['records'][number][] = []
  const unreadable: LsnRange[] = []
  for (let next = first; next < tail;) {
    try {
      for await (const record of store.createReader(logId, { from: next, to: tail - 1 })) {
        if (record.kind !== 'data') throw new Violation(`${logId}: ${record.kind}`)
        records.push(record)
        next = record.lsn + 1
      }
    } catch (error) {
      const to = lostUntil(error, logId, next)
      unreadable.push({ from: next, to: Math.min(to, tail - 1) })
      next = to + 1
    }
  }
  return { records, unreadable }
}

/** The end of the range that the error names around an LSN. */
function lostUntil(error: unknown, logId: string, lsn: number): number {
  if (!LogError.is(error, 'CORRUPT')) throw error
  const range = error.logs.find(
    (candidate) => candidate.logId === logId && candidate.from <= lsn && lsn <= candidate.to,
  )
  if (range !== undefined) return range.to
  throw new Violation(`${error.message} does not name ${logId} ${lsn}`)
}

function legalProblem({ oracle }: Life, seen: readonly SeenLog[]): Violation | undefined {
  try {
    oracle.requireLegal(seen)
    return undefined
  } catch (error) {
    if (error instanceof Violation) return error
    throw error
  }
}

/** What the last group whose bytes are as they were says was durable before it. */
export function vouchedFor({ groups, opened }: Life, { path, from, to }: Damage): Extent {
  const intact = groups.findLast(
    (group) => group.path !== path || group.end <= from || group.start >= to,
  )
  return intact?.before ?? opened
}
