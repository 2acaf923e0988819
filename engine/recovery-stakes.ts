/** Works out what damage found at open puts at stake, by reading on behind it. */
import type { LogRange } from '../codec/errors.ts'
import type { StoreFacts } from '../codec/log-state.ts'
import type { Metadata, Place } from '../codec/metadata.ts'
import { segmentSeed } from '../codec/segment-header.ts'
import { segmentPath } from './file-names.ts'
import type { FileSystem } from './file-system.ts'
import { GroupScanner } from './group-scanner.ts'
import { readFully, withFile } from './io.ts'
import { replayGroup, replayTarget } from './replay.ts'
import { Stakes } from './salvage.ts'
import { headOf, readSegmentHead } from './segment-head.ts'
import { GrowingIndex } from './segment-index.ts'

/** What identifies the store, and its other witness. */
export interface StakeContext {
  readonly storeId: Uint8Array
  readonly metadata: Metadata | undefined
}

/**
 * What is at stake behind `place`, where the state was `before`: the rest of that segment, and the
 * segments in `behind`, are looked through for what still checks.
 */
export async function stakeAfter(
  fileSystem: FileSystem,
  dir: string,
  before: StoreFacts,
  place: Place,
  behind: readonly number[],
  { storeId, metadata }: StakeContext,
): Promise<LogRange[]> {
  const stakes = new Stakes(before)
  if (metadata !== undefined) stakes.addWitness(metadata)
  for (const segment of [place.segment, ...behind]) {
    const from = segment === place.segment ? place.position : 0
    const path = segmentPath(dir, segment)
    await withFile(fileSystem, path, 'read', async (file) => {
      const head = await headOf(file, segment, 'snapshot')
      if (head.facts !== undefined && segment !== place.segment) stakes.addLater(head.facts)
      const bytes = new Uint8Array(Math.max(0, head.size - from))
      const length = await readFully(file, bytes, 0, bytes.length, from)
      stakes.addBytes(bytes.subarray(0, length), from, segmentSeed(storeId, segment))
    })
  }
  return stakes.logs()
}

/** What is at stake if all of a segment is lost: what came between its neighbours. */
export async function stakeOfSegment(
  fileSystem: FileSystem,
  dir: string,
  segment: number,
  after: StoreFacts,
  names: readonly number[],
): Promise<LogRange[]> {
  const before = names.includes(segment - 1)
    ? await factsAtEnd(fileSystem, dir, segment - 1)
    : undefined
  const stakes = new Stakes(before)
  stakes.addLater(after)
  return stakes.logs()
}

/** The state at the end of a segment, as far as its groups are whole. */
export function factsAtEnd(
  fileSystem: FileSystem,
  dir: string,
  segment: number,
): Promise<StoreFacts | undefined> {
  return withFile(fileSystem, segmentPath(dir, segment), 'read', async (file) => {
    const { header, facts, start, size } = await headOf(file, segment, 'snapshot')
    if (header === undefined || facts === undefined) return undefined
    const { groupNumber: number, groupChecksum: checksum } = header.previous
    const seed = segmentSeed(header.storeId, segment)
    const scanner = new GroupScanner(file, seed, start, { number, checksum })
    const target = replayTarget(facts, segment, new GrowingIndex())
    await scanner.scan(size, (group) => replayGroup(target, group))
    return facts
  })
}

/** The state when a segment began, if its start checks. */
export async function factsAtStart(
  fileSystem: FileSystem,
  dir: string,
  segment: number,
): Promise<StoreFacts | undefined> {
  return (await readSegmentHead(fileSystem, dir, segment, 'snapshot')).facts
}
