/** What would be there if the machine crashed here and now: asked of a copy, while the store goes on. */
import { LogError } from '../../codec/errors.ts'
import { Violation, type SeenLog } from './explore-oracle.ts'
import { asViolation, type Scene } from './explore-scene.ts'
import { SimStore } from './explore-store.ts'
import type { CrashKind, SimDisk } from './sim-disk.ts'

/** A copy of the machine crashes, is opened, loses its power, and is opened again. */
export async function probe(scene: Scene, kind: CrashKind): Promise<void> {
  const { disk, seed, oracle, coverage } = scene
  coverage.hit('probed')
  const copy = disk.fork(seed ^ disk.faults.operationCount)
  copy.crash(kind)
  const seen = await openCopy(scene, copy)
  oracle.requireLegal(seen)
  copy.crash('power')
  requireSame(seen, await openCopy(scene, copy))
}

async function openCopy(scene: Scene, copy: SimDisk): Promise<SeenLog[]> {
  const { oracle, troubles, options } = scene
  const { process } = copy
  try {
    const session = await copy.run(SimStore.open(process, scene.files(process), options))
    return await copy.run(session.look())
  } catch (error) {
    const isFull = oracle.settledCount === 0 && troubles.isSmallDisk
    if (isFull && LogError.is(error, 'OPEN_FAILED')) return []
    throw asViolation('after a crash the store could not be opened', error)
  }
}

function requireSame(before: readonly SeenLog[], after: readonly SeenLog[]): void {
  const [first, second] = [before, after].map((seen) =>
    JSON.stringify(seen, (_key, value: unknown) =>
      typeof value === 'bigint' ? String(value) : value,
    ),
  )
  if (first !== second) throw new Violation('a second recovery after a power loss shows less')
}
