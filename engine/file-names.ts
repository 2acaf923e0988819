/** The names of a store's files. None of them is made from anything a user says. */
import { join } from 'node:path'

const DIGITS = 10
const SEGMENT = /^(\d{10})\.segment$/
const INDEX = /^(\d{10})\.index(?:\.new)?$/

export const LOCK_FILE = 'lock'
export const METADATA_FILE = 'metadata'
/** Where new metadata is written before it takes the old one's place. */
export const METADATA_TEMPORARY = 'metadata.new'

/** The greatest segment number, by the width of the name and of the format's fields. */
export const MAX_SEGMENT = 0xffff_ffff

export function segmentFile(segment: number): string {
  return `${String(segment).padStart(DIGITS, '0')}.segment`
}

export function indexFile(segment: number): string {
  return `${String(segment).padStart(DIGITS, '0')}.index`
}

export function segmentPath(dir: string, segment: number): string {
  return join(dir, segmentFile(segment))
}

export function indexPath(dir: string, segment: number): string {
  return join(dir, indexFile(segment))
}

/** The number in a segment file's name; undefined for any other name. */
export function segmentOfName(name: string): number | undefined {
  return numberIn(name, SEGMENT)
}

/** The number in an index file's name, also of one that was not finished. */
export function segmentOfIndexName(name: string): number | undefined {
  return numberIn(name, INDEX)
}

function numberIn(name: string, pattern: RegExp): number | undefined {
  const digits = pattern.exec(name)?.[1]
  if (digits === undefined) return undefined
  const number = Number(digits)
  return number >= 1 && number <= MAX_SEGMENT ? number : undefined
}

/** The numbers of all segment files among `names`, ascending. */
export function segmentsAmong(names: readonly string[]): number[] {
  return names
    .map(segmentOfName)
    .filter((segment) => segment !== undefined)
    .sort((a, b) => a - b)
}
