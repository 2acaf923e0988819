/** Ways in which the bytes of files can be anything but what was written. */
import { FRAME_HEADER_BYTES, GROUP_HEADER_BYTES, GROUP_LENGTH_AT } from '../../codec/format.ts'
import { writeU32 } from '../../codec/bytes.ts'
import type { Random } from '../support/random.ts'
import { groupsOf, segmentAt } from './fuzz-stores.ts'

export type Files = Map<string, Uint8Array>

const LENGTHS = [0, 1, 8, 0xff, 0xffff, 0x00ff_ffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff]

type Mutation = (bytes: Uint8Array, random: Random, files: Files) => Uint8Array

/** A place, mostly where something is. */
function placeIn(bytes: Uint8Array, random: Random): number {
  const used = bytes.findLastIndex((byte) => byte !== 0) + 1
  return random.below(Math.max(1, random.chance(0.9) ? used : bytes.length))
}

function overwritten(bytes: Uint8Array, at: number, part: Uint8Array): Uint8Array {
  const copy = bytes.slice()
  if (at < copy.length) copy.set(part.subarray(0, copy.length - at), at)
  return copy
}

function joined(...parts: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts))
}

/** Some bytes of any file. */
function someBytes(random: Random, files: Files): Uint8Array {
  const source = random.pick([...files.values()])
  const from = placeIn(source, random)
  return source.slice(from, from + random.pick([1, 8, 48, 512, 4096]))
}

const flipBits: Mutation = (bytes, random) => {
  const copy = bytes.slice()
  for (let i = random.pick([1, 1, 1, 2, 8]); i > 0; i--) {
    const at = placeIn(bytes, random)
    copy[at] = (copy[at] ?? 0) ^ (1 << random.below(8))
  }
  return copy
}

const zeros: Mutation = (bytes, random) =>
  overwritten(bytes, placeIn(bytes, random), new Uint8Array(random.pick([1, 8, 512, 4096])))

const noise: Mutation = (bytes, random) =>
  overwritten(bytes, placeIn(bytes, random), random.bytes(random.pick([1, 4, 48, 512])))

const spliceOver: Mutation = (bytes, random, files) =>
  overwritten(bytes, placeIn(bytes, random), someBytes(random, files))

const insert: Mutation = (bytes, random, files) => {
  const at = placeIn(bytes, random)
  return joined(bytes.subarray(0, at), someBytes(random, files), bytes.subarray(at))
}

const remove: Mutation = (bytes, random) => {
  const at = placeIn(bytes, random)
  return joined(bytes.subarray(0, at), bytes.subarray(at + random.pick([1, 8, 512])))
}

const cut: Mutation = (bytes, random) => bytes.slice(0, placeIn(bytes, random))

const extend: Mutation = (bytes, random, files) => joined(bytes, someBytes(random, files))

/** The word that says how long something is. */
const lengthField: Mutation = (bytes, random) => {
  const copy = bytes.slice()
  const groups = groupsOf(bytes)
  const group = groups.length === 0 ? 0 : random.pick(groups).position
  const fields = [16, 76, group + GROUP_LENGTH_AT, group + GROUP_HEADER_BYTES]
  const at = random.chance(0.8) ? random.pick(fields) : placeIn(bytes, random)
  if (at + 4 > copy.length) return copy
  writeU32(copy, at, random.chance(0.7) ? random.pick(LENGTHS) : random.uint32())
  return copy
}

/** A group stands where another one ends, or stood. */
const repeatGroup: Mutation = (bytes, random) => {
  const groups = groupsOf(bytes)
  if (groups.length === 0) return flipBits(bytes, random, new Map())
  const { position, end } = random.pick(groups)
  const target = random.chance(0.5) ? groups.at(-1) : random.pick(groups)
  const at = random.chance(0.5) ? (target?.end ?? 0) : (target?.position ?? 0)
  return overwritten(bytes, at, bytes.slice(position, end))
}

/** A frame's bytes over another frame's. */
const repeatFrame: Mutation = (bytes, random) => {
  const groups = groupsOf(bytes)
  if (groups.length < 2) return flipBits(bytes, random, new Map())
  const from = random.pick(groups).position + GROUP_HEADER_BYTES
  const to = random.pick(groups).position + GROUP_HEADER_BYTES
  return overwritten(bytes, to, bytes.slice(from, from + FRAME_HEADER_BYTES + random.below(300)))
}

const empty: Mutation = () => new Uint8Array(0)

const MUTATIONS: readonly Mutation[] = [
  flipBits,
  flipBits,
  flipBits,
  zeros,
  noise,
  spliceOver,
  insert,
  remove,
  cut,
  extend,
  lengthField,
  lengthField,
  repeatGroup,
  repeatFrame,
  empty,
]

/** Mutates one file, or exchanges two; returns the paths of what has changed. */
export function mutate(files: Files, random: Random): readonly string[] {
  const paths = [...files.keys()]
  const segments = paths.filter((path) => segmentAt(path) !== undefined)
  if (random.below(20) === 0 && segments.length > 1) {
    const [a, b] = random.shuffled(segments)
    return exchange(files, a as string, b as string)
  }
  const path = random.chance(0.8) ? random.pick(segments) : random.pick(paths)
  const bytes = files.get(path) as Uint8Array
  files.set(path, random.pick(MUTATIONS)(bytes, random, files))
  return [path]
}

function exchange(files: Files, a: string, b: string): readonly string[] {
  const [first, second] = [files.get(a), files.get(b)]
  if (first !== undefined && second !== undefined) files.set(a, second).set(b, first)
  return [a, b]
}
