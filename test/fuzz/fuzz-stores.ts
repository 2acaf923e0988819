/** Stores to be mutated: small, of several segments, with everything in them. */
import { posix } from 'node:path'
import { decodeGroupHeader, type GroupHeader } from '../../codec/group.ts'
import { GROUP_HEADER_BYTES } from '../../codec/format.ts'
import { decodeSegmentHeader, groupsStart, segmentSeed } from '../../codec/segment-header.ts'
import { segmentOfName } from '../../engine/file-names.ts'
import {
  DEFAULT_SETTINGS,
  type Cycle,
  type PlannedCall,
  type PlannedRecord,
  type Step,
} from '../support/explore-plan.ts'
import { prepareBase } from '../support/explore-run.ts'
import type { Base } from '../support/explore-scene.ts'

export interface FuzzedStore {
  readonly base: Base
  /** Whether the metadata vouches for all of it. */
  readonly isClosed: boolean
}

const LOGS = [0, 1, 2]

function batch(log: number, of: PlannedRecord['of'], count: number, bytes: number): PlannedCall {
  return { call: 'batch', log, records: Array.from({ length: count }, () => ({ bytes, of })) }
}

function calls(...all: PlannedCall[]): Step {
  return { step: 'calls', calls: all, waits: true }
}

const STEPS: readonly Step[] = [
  calls(...LOGS.map((log) => ({ call: 'create', log }) as const)),
  calls(...LOGS.map((log) => batch(log, 'text', 4, 200))),
  { step: 'roll', log: 0 },
  calls(batch(1, 'bytes', 3, 100), batch(2, 'copy', 2, 3000)),
  calls({ call: 'trim', log: 1, keep: 4 }),
  { step: 'roll', log: 1 },
  calls(batch(0, 'text', 5, 40), { call: 'seal', log: 2, reason: 'done' }),
  calls({ call: 'trim', log: 0, keep: 6 }, { call: 'delete', log: 2 }),
  calls({ call: 'create', log: 2 }, batch(1, 'copy', 2, 500)),
]

/** One that was closed, and one that was killed. */
export async function fuzzedStores(): Promise<readonly FuzzedStore[]> {
  const end = (kind: Cycle['end']): Promise<Base> =>
    prepareBase({
      seed: 7,
      settings: DEFAULT_SETTINGS,
      cycles: [{ faults: [], crash: undefined, steps: STEPS, end: kind }],
    })
  return [
    { base: await end('close'), isClosed: true },
    { base: await end('kill'), isClosed: false },
  ]
}

/** The number in a segment's path; undefined for other files. */
export function segmentAt(path: string): number | undefined {
  return segmentOfName(posix.basename(path))
}

export interface FoundGroup {
  readonly position: number
  readonly end: number
  readonly header: GroupHeader
}

/** The groups of a segment whose headers check, one behind the other. */
export function groupsOf(bytes: Uint8Array): readonly FoundGroup[] {
  const segment = decodeSegmentHeader(bytes)
  if (segment === undefined) return []
  const seed = segmentSeed(segment.storeId, segment.segment)
  const groups: FoundGroup[] = []
  for (let position = groupsStart(segment.snapshotLength); position < bytes.length;) {
    const header = decodeGroupHeader(bytes, position, seed, position)
    if (header === undefined) break
    const end = position + GROUP_HEADER_BYTES + header.length
    groups.push({ position, end, header })
    position = end
  }
  return groups
}
