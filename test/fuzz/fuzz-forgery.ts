/** Groups that check in every way, and hold anything: what no disk does, but a mistaken writer could. */
import { writeU32 } from '../../codec/bytes.ts'
import {
  FRAME_HEADER_BYTES,
  FRAME_KIND,
  GROUP_HEADER_BYTES,
  type FrameKind,
} from '../../codec/format.ts'
import { sealFrame, writeFrameHeader } from '../../codec/frame.ts'
import { groupEnd, writeGroupHeader } from '../../codec/group.ts'
import { pack } from '../../codec/msgpack.ts'
import { segmentSeed } from '../../codec/segment-header.ts'
import type { Random } from '../support/random.ts'
import { groupsOf, segmentAt } from './fuzz-stores.ts'
import type { Files } from './fuzz-mutations.ts'

const STORE_ID = Uint8Array.from({ length: 16 }, (_, i) => 0x10 + i)
const KINDS: readonly number[] = [...Object.values(FRAME_KIND), 0, 10, 200]
const LOGLETS = [0, 1, 2, 3, 4, 100]
const OFFSETS = [0, 1, 2, 5, 9, 1000, 2 ** 40, Number.MAX_SAFE_INTEGER]
const BODIES: readonly unknown[] = [
  null,
  'log0',
  'new',
  '',
  'x'.repeat(300),
  0,
  1,
  -1,
  3.5,
  [1],
  {},
]
const CAPACITY = 8192

/** Appends a forged group behind the last one of the newest segment. Returns the segment's path. */
export function forge(files: Files, random: Random): string | undefined {
  const path = [...files.keys()]
    .filter((candidate) => groupsOf(files.get(candidate) ?? new Uint8Array(0)).length > 0)
    .sort()
    .at(-1)
  const bytes = path === undefined ? undefined : files.get(path)
  if (path === undefined || bytes === undefined) return undefined
  const last = groupsOf(bytes).at(-1)
  if (last === undefined) return undefined
  const seed = segmentSeed(STORE_ID, segmentAt(path) ?? 1)
  const group = new Uint8Array(CAPACITY)
  const { framesEnd, frames } = layFrames(group, random, seed, last.end)
  const fields = {
    number: last.header.number + 1,
    frames: random.chance(0.9) ? frames : random.between(1, 9),
    durable: { segment: random.pick([0, 1, 2, 3, 9]), position: random.pick(OFFSETS) },
    generation: random.pick([0, last.header.generation, 9999]),
    previous: last.header.checksum,
  }
  if (random.chance(0.7)) Object.assign(fields, { durable: last.header.durable })
  writeGroupHeader(group, 0, framesEnd, fields, seed, last.end)
  const copy = new Uint8Array(Math.max(bytes.length, last.end + groupEnd(framesEnd)))
  copy.set(bytes)
  copy.set(group.subarray(0, groupEnd(framesEnd)), last.end)
  files.set(path, copy)
  return path
}

function layFrames(
  group: Uint8Array,
  random: Random,
  seed: number,
  base: number,
): { readonly framesEnd: number; readonly frames: number } {
  const frames = random.between(1, 4)
  let at = GROUP_HEADER_BYTES
  for (let i = 0; i < frames; i++) {
    const body = random.chance(0.8) ? pack(random.pick(BODIES)) : random.bytes(random.below(40))
    const kind = random.pick(KINDS) as FrameKind
    group.set(body, at + FRAME_HEADER_BYTES)
    writeFrameHeader(group, at, kind, random.pick(LOGLETS), body.length)
    const offset = random.chance(0.5) ? random.between(1, 30) : random.pick(OFFSETS)
    const start = at
    at = sealFrame(group, at, offset, seed, base + at)
    if (random.below(20) === 0) writeU32(group, start, random.uint32())
  }
  return { framesEnd: at, frames }
}
