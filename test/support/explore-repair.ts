/**
 * Repairs damaged stores, with crashes in between: afterwards the store opens, readers get every
 * record that was there or a gap that says that it is lost, and no LSN is used twice.
 */
import { posix } from 'node:path'
import { LogError } from '../../codec/errors.ts'
import type { Lsn } from '../../codec/offset.ts'
import { repairOn, type RepairReport } from '../../engine/repair.ts'
import type { Coverage } from './explore-coverage.ts'
import { vouchedFor, type Damage } from './explore-damage.ts'
import type { Life } from './explore-kinds.ts'
import { Violation, type LsnRange, type SeenLog } from './explore-oracle.ts'
import { asViolation } from './explore-scene.ts'
import { optionsOf, SimStore, STORE_DIR } from './explore-store.ts'
import type { Place } from './explore-watch.ts'
import type { Random } from './random.ts'
import type { SimDisk } from './sim-disk.ts'
import { SimCrash } from './sim-scheduler.ts'

const MAX_REPAIR_OPERATIONS = 90
const NEW_LOG = 'after the repair'

/** A log after a repair: what it lost is said. */
type RepairedLog = SeenLog & { readonly lost: readonly LsnRange[] }

export async function judgeRepair(
  life: Life,
  damage: Damage,
  disk: SimDisk,
  random: Random,
  coverage: Coverage,
): Promise<void> {
  const isRepairable = await tryRepair(disk.fork(random.uint32()))
  if (isRepairable === undefined) {
    coverage.hit('repair refused')
    return
  }
  if (random.chance(0.5)) await crashRepair(disk, random, coverage)
  if ((await tryRepair(disk)) === undefined) {
    throw new Violation('a repair that was interrupted by a crash can not be done any more')
  }
  coverage.hit('repaired')
  const seen = await lookRepaired(life, disk)
  if (seen.some(({ lost }) => lost.length > 0)) coverage.hit('loss gap')
  judgeSeen(life, damage, seen)
  await requireSettled(life, disk, seen)
}

/** Repairs; undefined if the store says that it can't be. */
async function tryRepair(disk: SimDisk): Promise<RepairReport | undefined> {
  const { fileSystem, clock } = disk.process
  const before = storeFiles(disk)
  try {
    return await disk.run(repairOn({ fileSystem, clock }, STORE_DIR, { acceptDataLoss: true }))
  } catch (error) {
    if (error instanceof SimCrash) throw error
    const isDue = LogError.is(error, 'CORRUPT') || LogError.is(error, 'UNSUPPORTED_VERSION')
    if (!isDue) throw asViolation('the repair failed', error)
    if (storeFiles(disk) !== before) throw new Violation('a refused repair has changed the store')
    return undefined
  }
}

/** All of the store's files as one text, to compare. */
function storeFiles(disk: SimDisk): string {
  const files = [...disk.contents()].filter(
    ([path]) => posix.dirname(path) === STORE_DIR && !path.endsWith('lock'),
  )
  return files.map(([path, bytes]) => `${path} ${Buffer.from(bytes).toString('latin1')}`).join('\n')
}

async function crashRepair(disk: SimDisk, random: Random, coverage: Coverage): Promise<void> {
  const kind = random.chance(0.7) ? 'power' : 'kill'
  disk.crashAtOperation(random.between(5, MAX_REPAIR_OPERATIONS), kind)
  try {
    await tryRepair(disk)
  } catch (error) {
    if (!(error instanceof SimCrash)) throw error
    coverage.hit('crashed in repair')
  }
  disk.crashAtOperation(Infinity, kind)
}

async function lookRepaired(life: Life, disk: SimDisk): Promise<RepairedLog[]> {
  const { process } = disk
  const options = optionsOf(life.settings, () => undefined)
  try {
    const opened = await disk.run(SimStore.open(process, process.fileSystem, options))
    const seen = await disk.run(readRepaired(opened))
    await disk.run(goOn(opened, seen))
    await disk.run(opened.store.close())
    return seen
  } catch (error) {
    throw asViolation('after the repair', error)
  }
}

async function readRepaired(opened: SimStore): Promise<RepairedLog[]> {
  const { store } = opened
  const seen: RepairedLog[] = []
  for (const logId of store.logIds()) {
    const { lsn: tail, sealed, reason } = await store.findTail(logId)
    const trimPoint = await store.getTrimPoint(logId)
    const records: SeenLog['records'][number][] = []
    const lost: LsnRange[] = []
    let next: Lsn = trimPoint + 1
    for (const reader = store.createReader(logId, { from: next, follow: false }); next < tail;) {
      const record = await reader.readNext()
      if (record?.lsn !== next) throw new Violation(`${logId}: nothing is said of ${next}`)
      if (record.kind === 'data') records.push(record)
      else lost.push({ from: record.lsn, to: record.until })
      next = (record.kind === 'data' ? record.lsn : record.until) + 1
    }
    const loglet = opened.loglet(logId) as number
    const seal = sealed ? { reason } : undefined
    seen.push({ logId, loglet, tail, trimPoint, seal, records, lost })
  }
  return seen
}

/** Appends go on behind everything. */
async function goOn({ store }: SimStore, seen: readonly RepairedLog[]): Promise<void> {
  await store.createLog(NEW_LOG)
  await store.append(NEW_LOG, 'works')
  for (const { logId, tail, seal } of seen) {
    if (seal !== undefined || logId === NEW_LOG) continue
    const lsn = await store.append(logId, 'goes on')
    if (lsn !== tail) throw new Violation(`${logId}: an append went to ${lsn}, not ${tail}`)
  }
}

function judgeSeen(life: Life, damage: Damage, seen: readonly RepairedLog[]): void {
  life.oracle.requireRight(seen)
  const extent = vouchedFor(life, damage)
  for (const [logId, due] of extent) {
    if (life.oracle.target(logId) !== due.incarnation) continue
    const found = seen.find((log) => log.logId === logId)
    // An earlier log of the name may be back, if what is known of the later one is lost.
    const loglet = life.oracle.logletOf(logId) ?? found?.loglet
    const isBack = found !== undefined && found.loglet !== loglet
    if (found === undefined || isBack) requireLogMayGo(life, damage, logId)
    else if (found.tail < due.tail) {
      throw new Violation(`${logId}: LSNs from ${found.tail} on would be used twice`)
    }
  }
  if (damage.isFlip !== true) return
  for (const { logId, loglet, lost } of seen) {
    for (const range of lost) requireHit(life, damage, logId, loglet, range)
  }
}

/** Only what made a log known is worth the whole log, and that only until a segment repeats it. */
function requireLogMayGo({ watch, oracle }: Life, damage: Damage, logId: string): void {
  const place = watch.creationOf(oracle.logletOf(logId) ?? 0)
  if (oracle.isPerhapsDeleted(logId)) return
  const isDue = place === undefined || damage.isFlip !== true || isHit(place, damage)
  if (!isDue) throw new Violation(`the repair made the log ${logId} go`)
}

/** One bit costs no record that is known to be there, but the one whose frame it is in. */
function requireHit(
  { watch, oracle }: Life,
  damage: Damage,
  logId: string,
  loglet: number,
  { from, to }: LsnRange,
): void {
  for (let lsn = from; lsn <= to && lsn < oracle.tailOf(logId); lsn++) {
    const place = watch.placeOf(loglet, lsn)
    if (place === undefined || isHit(place, damage)) continue
    throw new Violation(`the repair lost ${logId} ${lsn}, which is whole`)
  }
}

function isHit({ path, frame }: Place, damage: Damage): boolean {
  return path === damage.path && frame.start < damage.to && damage.from < frame.end
}

/** A second repair finds nothing to do, and nothing changes. */
async function requireSettled(
  life: Life,
  disk: SimDisk,
  before: readonly RepairedLog[],
): Promise<void> {
  disk.crash('power')
  const again = await tryRepair(disk)
  const found = again?.findings.find(({ label }) => label === 'R4' || label === 'R6')
  if (again === undefined || found !== undefined) {
    const what =
      found === undefined
        ? 'that it can not be done'
        : `${found.message} in ${found.file} at ${found.position}`
    throw new Violation(`a second repair finds ${what}`)
  }
  const after = await lookRepaired(life, disk)
  for (const { logId, tail, lost } of before) {
    const log = after.find((candidate) => candidate.logId === logId)
    const isSame = log !== undefined && log.tail >= tail
    if (isSame && JSON.stringify(log.lost) === JSON.stringify(lost)) continue
    throw new Violation(`${logId}: a second repair says something else`)
  }
}
