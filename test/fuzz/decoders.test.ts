/**
 * Every decoder over bytes that are anything: random, or mutated encodings, with and without sums
 * that check. A decoder says that they don't check, or throws a LogError, and nothing else.
 */
import { test } from 'node:test'
import { checksum } from '../../codec/checksum.ts'
import { LogError } from '../../codec/errors.ts'
import { METADATA_CHECKSUM_AT, METADATA_HEADER_BYTES } from '../../codec/format.ts'
import { writeU32 } from '../../codec/bytes.ts'
import { decodeFrame } from '../../codec/frame.ts'
import { decodeGroupHeader, framesCheck } from '../../codec/group.ts'
import { decodeSnapshot, encodeSnapshot } from '../../codec/log-state.ts'
import { decodeMetadata } from '../../codec/metadata.ts'
import { createdAtMsOf, decodeRecord, RecordEncoder, recordMatches } from '../../codec/record.ts'
import { checkedSnapshot, decodeSegmentHeader } from '../../codec/segment-header.ts'
import { decodeIndex } from '../../engine/index-file.ts'
import { numberOf } from '../support/explore-suite.ts'
import { Random } from '../support/random.ts'
import { mutate } from './fuzz-mutations.ts'
import { fuzzedStores } from './fuzz-stores.ts'

const SECONDS = numberOf('FUZZ_SECONDS', 10, 30) / 5
const BATCH = 200
const WINDOW = 4096
const WANTED = new Set(['key', 'other'])

type Decode = (bytes: Uint8Array, random: Random) => void

function anywhere(random: Random): { at: number; position: number; seed: number } {
  return { at: random.below(64), position: 8 * random.below(1000), seed: random.uint32() }
}

const DECODERS: Readonly<Record<string, Decode>> = {
  'segment header and snapshot': (bytes) => {
    const header = decodeSegmentHeader(bytes)
    if (header !== undefined) checkedSnapshot(bytes, header)
  },
  snapshot: (bytes) => void decodeSnapshot(bytes),
  'group header': (bytes, random) => {
    const { at, position, seed } = anywhere(random)
    const header = decodeGroupHeader(bytes, at, seed, position)
    if (header !== undefined) framesCheck(bytes, at, header, seed, position)
  },
  frame: (bytes, random) => {
    const { at, position, seed } = anywhere(random)
    decodeFrame(bytes, at, random.chance(0.5) ? bytes.length : random.below(5000), seed, position)
  },
  record: (bytes, random) => {
    const start = random.below(8)
    const end = random.chance(0.8) ? bytes.length : random.below(5000)
    createdAtMsOf(bytes, start)
    recordMatches(bytes, start, end, WANTED)
    decodeRecord(bytes, start, end)
  },
  metadata: (bytes) => void decodeMetadata(bytes),
  'metadata whose sum is right': (bytes) => void decodeMetadata(resummed(bytes)),
  index: (bytes, random) => {
    const last = { number: random.below(9), checksum: random.uint32() }
    decodeIndex(bytes, { seed: random.uint32(), last })
  },
}

function resummed(bytes: Uint8Array): Uint8Array {
  if (bytes.length < METADATA_HEADER_BYTES) return bytes
  const copy = bytes.slice()
  writeU32(copy, 16, copy.length - METADATA_HEADER_BYTES)
  const head = checksum(copy, 0, METADATA_CHECKSUM_AT, 0)
  writeU32(copy, METADATA_CHECKSUM_AT, checksum(copy, METADATA_HEADER_BYTES, copy.length, head))
  return copy
}

/** Encodings to start from: the files of stores, parts of them, records and snapshots. */
async function samples(): Promise<Uint8Array[]> {
  const found: Uint8Array[] = []
  for (const { base } of await fuzzedStores()) {
    for (const bytes of base.disk.contents().values()) {
      if (bytes.length === 0) continue
      for (const from of [0, 88, 16 * 8, 1000]) found.push(bytes.slice(from, from + WINDOW))
    }
  }
  const encoder = new RecordEncoder(1 << 20)
  for (const payload of [
    null,
    'text',
    1n << 60n,
    -0,
    new Date(0),
    [1, { a: [new Uint8Array(9)] }],
  ]) {
    found.push(encoder.encode(payload, ['key', 'k'.repeat(40)]).body)
  }
  found.push(
    encodeSnapshot({ nextLogletId: 3, firstSegment: 1, logs: new Map(), loglets: new Map() }),
  )
  return found.filter((bytes) => bytes.length > 0)
}

test('Decoders take any bytes', async (t) => {
  const sources = await samples()
  const seed = Date.now() % 2 ** 30
  const random = new Random(seed)
  t.diagnostic(`seed ${seed}`)
  const until = performance.now() + SECONDS * 1000
  let runs = 0
  while (performance.now() < until) {
    for (let i = 0; i < BATCH; i++) runs += decodeAll(mutated(sources, random), random)
  }
  t.diagnostic(`${runs} decodings`)
})

function mutated(sources: readonly Uint8Array[], random: Random): Uint8Array {
  if (random.below(20) === 0) return random.bytes(random.below(300))
  const name = '0000000001.segment'
  const files = new Map([[name, random.pick(sources)]])
  for (let i = random.pick([1, 1, 2, 5]); i > 0; i--) mutate(files, random)
  return files.get(name) as Uint8Array
}

function decodeAll(bytes: Uint8Array, random: Random): number {
  let runs = 0
  for (const [name, decode] of Object.entries(DECODERS)) {
    runs++
    try {
      decode(bytes, random)
    } catch (error) {
      if (error instanceof LogError) continue
      const hex = Buffer.from(bytes).toString('hex').slice(0, 2000)
      throw new Error(`${name}: ${String(error)}, for ${hex}`, { cause: error })
    }
  }
  return runs
}
