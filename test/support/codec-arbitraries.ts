/** Arbitrary values of what the format holds, and ways to spoil its bytes, for property tests. */
import fc from 'fast-check'
import { FRAME_KIND, STORE_ID_BYTES, type FrameKind } from '../../codec/format.ts'
import type { GroupFields } from '../../codec/group.ts'
import type { LogFacts, LogletFacts, StoreFacts } from '../../codec/log-state.ts'
import type { Metadata } from '../../codec/metadata.ts'
import { MAX_POSITION } from '../../codec/offset.ts'
import type { SegmentEnd, SegmentHeader } from '../../codec/segment-header.ts'

/** As fc.record, of plain objects only. */
function record<T extends object>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> {
  return fc.record(model, { noNullPrototype: true }) as fc.Arbitrary<T>
}

export const u32: fc.Arbitrary<number> = fc.integer({ min: 0, max: 0xffff_ffff })
/** A safe integer that is not negative: small ones and great ones. */
export const count: fc.Arbitrary<number> = fc.oneof(fc.nat(), fc.maxSafeNat())
export const position: fc.Arbitrary<number> = fc.oneof(
  fc.integer({ min: 1, max: 1000 }),
  fc.integer({ min: 1, max: MAX_POSITION }),
)
export const bytes: fc.Arbitrary<Uint8Array> = fc.uint8Array({ maxLength: 300 })
export const storeId: fc.Arbitrary<Uint8Array> = fc.uint8Array({
  minLength: STORE_ID_BYTES,
  maxLength: STORE_ID_BYTES,
})

const segmentEnd: fc.Arbitrary<SegmentEnd> = record({
  end: count,
  groupPosition: count,
  groupNumber: count,
  groupChecksum: u32,
})

export const segmentFields: fc.Arbitrary<
  Omit<SegmentHeader, 'snapshotLength' | 'snapshotChecksum'>
> = record({ storeId, segment: position, createdAtMs: count, previous: segmentEnd })

export const groupFields: fc.Arbitrary<GroupFields> = record({
  number: count,
  frames: fc.integer({ min: 1, max: 0xffff_ffff }),
  durable: record({ segment: u32, position: count }),
  generation: u32,
  previous: u32,
})

export const frameKind: fc.Arbitrary<FrameKind> = fc.constantFrom(...Object.values(FRAME_KIND))

/** One frame: what it is about, and a body of any bytes. */
export const frameFields: fc.Arbitrary<{
  readonly kind: FrameKind
  readonly loglet: number
  readonly offset: number
  readonly body: Uint8Array
}> = record({ kind: frameKind, loglet: u32, offset: count, body: bytes })

export const logId: fc.Arbitrary<string> = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 40 })
  .filter((id) => Buffer.byteLength(id) <= 255)

const seal = fc.option(record({ reason: fc.option(fc.string(), { nil: undefined }) }), {
  nil: undefined,
})

function logletFacts(id: number): fc.Arbitrary<LogletFacts> {
  const gap = fc.tuple(position, position).map(([a, b]) => {
    return { from: Math.min(a, b), to: Math.max(a, b) }
  })
  return record({
    tail: fc.oneof(position, fc.constant(MAX_POSITION + 1)),
    trimmed: fc.double({ min: 0, max: 0.999, noNaN: true }),
    seal,
    createdAtMs: count,
    gaps: fc.array(gap, { maxLength: 20 }),
  }).map(({ tail, trimmed, ...rest }) => {
    return { id, tail, trimPoint: Math.floor((tail - 1) * trimmed), ...rest }
  })
}

/** The state of a store with up to 8 logs of up to 3 links. */
export const storeFacts: fc.Arbitrary<StoreFacts> = fc
  .uniqueArray(fc.tuple(logId, fc.integer({ min: 1, max: 3 })), {
    maxLength: 8,
    selector: ([id]) => id,
  })
  .chain((names) => {
    const total = names.reduce((sum, [, links]) => sum + links, 0)
    return record({
      names: fc.constant(names),
      firstSegment: position,
      burnt: fc.nat(1000),
      baseLsns: fc.array(position, { minLength: total, maxLength: total }),
      loglets: fc.tuple(...Array.from({ length: total }, (_, i) => logletFacts(i + 1))),
    })
  })
  .map(({ names, firstSegment, burnt, baseLsns, loglets }) => {
    let next = 1
    const logs = new Map<string, LogFacts>()
    for (const [id, count] of names) {
      const links = Array.from({ length: count }, () => {
        const link = { loglet: next, baseLsn: baseLsns[next - 1] as number }
        next++
        return link
      })
      logs.set(id, { logId: id, links })
    }
    const known = new Map(loglets.map((loglet) => [loglet.id, loglet]))
    return { nextLogletId: next + burnt, firstSegment, logs, loglets: known, isPartial: false }
  })

export const metadata: fc.Arbitrary<Metadata> = record({
  storeId,
  generation: count,
  place: record({
    segment: count,
    position: count,
    groupPosition: count,
    groupNumber: count,
    groupChecksum: u32,
  }),
  newestSegment: count,
  clean: fc.boolean(),
  nextLogletId: count,
  loglets: fc.array(
    record({ loglet: count, released: count, trimPoint: count, sealed: fc.boolean() }),
    { maxLength: 20 },
  ),
})

/** Any value of msgpack, and some that structures of ours are made of. */
export const anyValue: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom(null, true, false, -1, 0, 1, NaN, 2 ** 53, 0.5, '', 'log'),
    count,
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n }),
    fc.string({ maxLength: 10 }),
    storeId,
    fc.array(tie('value'), { maxLength: 8 }),
  ),
})).value

/** Calls `visit` with a copy of the bytes in which one bit of one byte is flipped, for each byte. */
export function eachFlip(
  original: Uint8Array,
  visit: (flipped: Uint8Array, at: number) => void,
): void {
  for (let at = 0; at < original.length; at++) {
    const flipped = original.slice()
    flipped[at] = (flipped[at] as number) ^ (1 << (at % 8))
    visit(flipped, at)
  }
}

/** Calls `visit` with each part of the bytes that is shorter at its end. */
export function eachCut(
  original: Uint8Array,
  visit: (cut: Uint8Array, length: number) => void,
): void {
  for (let length = 0; length < original.length; length++) {
    visit(original.slice(0, length), length)
  }
}

/** Replaces one thing somewhere inside nested arrays. */
export function withReplaced(value: unknown, path: readonly number[], by: unknown): unknown {
  const [at, ...rest] = path
  if (!Array.isArray(value) || value.length === 0 || at === undefined) return by
  const copy: unknown[] = [...(value as unknown[])]
  const i = at % copy.length
  copy[i] = withReplaced(copy[i], rest, by)
  return copy
}
