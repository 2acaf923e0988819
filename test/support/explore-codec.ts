/**
 * What the decoders promise whatever bytes they get: a group or a frame checks in its own place
 * only, and no bit of it can change without being noticed.
 */
import assert from 'node:assert/strict'
import { FRAME_KIND, GROUP_HEADER_BYTES } from '../../codec/format.ts'
import { decodeFrame, sealFrame, writeFrameHeader } from '../../codec/frame.ts'
import { decodeGroupHeader, framesCheck, groupEnd, writeGroupHeader } from '../../codec/group.ts'
import { segmentSeed } from '../../codec/segment-header.ts'
import { Violation } from './explore-oracle.ts'
import type { RunResult } from './explore-kinds.ts'
import { Random } from './random.ts'

const FRAME_HEADER = 24

interface Sample {
  readonly bytes: Uint8Array
  readonly seed: number
  readonly position: number
  readonly frameAt: number
}

/** Encodes a group, and asks for it at places where it is not. */
export function checkDecoders(seed: number): Promise<RunResult> {
  const random = new Random(seed)
  const storeId = random.bytes(16)
  const segment = random.between(1, 1000)
  const sample = makeGroup(random, segmentSeed(storeId, segment))
  requireWhole(sample, 'at its place', true)
  const elsewhere = { ...sample, position: sample.position + 8 * random.between(1, 1000) }
  requireWhole(elsewhere, 'at another position', false)
  const next = segmentSeed(storeId, segment + random.between(1, 5))
  requireWhole({ ...sample, seed: next }, 'in another segment', false)
  const other = segmentSeed(random.bytes(16), segment)
  requireWhole({ ...sample, seed: other }, 'in another store', false)
  requireEveryBit(sample, random)
  return Promise.resolve({ cycles: 1, operations: 0, wasFaulty: false })
}

function makeGroup(random: Random, seed: number): Sample {
  const position = 8 * random.between(11, 100_000)
  const body = random.bytes(random.between(1, 600))
  const frameAt = GROUP_HEADER_BYTES
  const bytes = new Uint8Array(groupEnd(frameAt + FRAME_HEADER + body.length))
  bytes.set(body, frameAt + FRAME_HEADER)
  writeFrameHeader(bytes, frameAt, FRAME_KIND.data, random.between(1, 9), body.length)
  const end = sealFrame(bytes, frameAt, random.between(1, 1e6), seed, position + frameAt)
  const durable = { segment: 1, position: 0 }
  const number = random.between(1, 1e9)
  const fields = { number, frames: 1, durable, generation: 1, previous: random.uint32() }
  writeGroupHeader(bytes, 0, end, fields, seed, position)
  return { bytes, seed, position, frameAt }
}

/** Which parts check. */
function partsOf({ bytes, seed, position, frameAt }: Sample): readonly boolean[] {
  const header = decodeGroupHeader(bytes, 0, seed, position)
  const frame = decodeFrame(bytes, frameAt, bytes.length, seed, position + frameAt)
  const isWhole = header !== undefined && framesCheck(bytes, 0, header, seed, position)
  return [header !== undefined, frame !== undefined, isWhole]
}

function requireWhole(sample: Sample, where: string, isDue: boolean): void {
  if (partsOf(sample).every((checks) => checks === isDue)) return
  throw new Violation(`a group ${isDue ? "doesn't check" : 'checks'} ${where}`)
}

/** One bit at a time, in the header and in what it covers. */
function requireEveryBit(sample: Sample, random: Random): void {
  for (let i = 0; i < 64; i++) {
    const at = random.below(sample.bytes.length)
    const bytes = sample.bytes.slice()
    bytes[at] = (bytes[at] as number) ^ (1 << random.below(8))
    const [header, , isWhole] = partsOf({ ...sample, bytes })
    assert.equal(typeof header, 'boolean')
    if (isWhole === true) throw new Violation(`a bit flipped at ${at} of a group is not noticed`)
  }
}
