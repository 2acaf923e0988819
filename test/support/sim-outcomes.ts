/**
 * Small scenarios on simulated disks: run with many seeds, they show what can happen and what
 * can't. They use sectors that are filled with one letter, so that an outcome is a word.
 */
import type { StoreFile } from '../../engine/file-system.ts'
import { SimDisk, type SimDiskOptions } from './sim-disk.ts'
import { SECTOR_BYTES as SECTOR } from './sim-medium.ts'

/** The file that scenarios work on. */
export const PATH = '/d/file'

/** All outcomes of a scenario, on disks with the seeds from 1 on. */
export async function outcomesOf(
  seeds: number,
  scenario: (disk: SimDisk) => Promise<string>,
  options: Omit<SimDiskOptions, 'seed'> = {},
): Promise<Set<string>> {
  const outcomes = new Set<string>()
  for (let seed = 1; seed <= seeds; seed++) {
    const disk = new SimDisk({ seed, ...options })
    disk.makeDirectory('/d')
    outcomes.add(await scenario(disk))
  }
  return outcomes
}

/** A file whose bytes, size and name are durable, open for writing. */
export async function syncedFile(disk: SimDisk, content: Uint8Array): Promise<StoreFile> {
  const file = await disk.run(disk.fileSystem.open(PATH, 'create'))
  if (content.length > 0) await disk.run(file.write(content, 0))
  await disk.run(file.sync())
  await disk.run(disk.fileSystem.syncDirectory('/d'))
  return file
}

/** Bytes that all are this letter. */
export function filled(letter: string, length: number): Uint8Array {
  return new Uint8Array(length).fill(letter.charCodeAt(0))
}

/** One sector for each letter. */
export function joined(letters: string): Uint8Array {
  return new Uint8Array(Buffer.concat(letters.split('').map((letter) => filled(letter, SECTOR))))
}

/** One letter a sector: the one it is filled with, 0 for zeros, ? for anything else. */
export function sectorsOf(disk: SimDisk, path = PATH): string {
  const bytes = disk.readFile(path)
  let word = ''
  for (let at = 0; at < bytes.length; at += SECTOR) {
    const sector = bytes.subarray(at, at + SECTOR)
    const first = sector[0] ?? 0
    const isFilled = sector.every((byte) => byte === first)
    word += isFilled ? (first === 0 ? '0' : String.fromCharCode(first)) : '?'
  }
  return word
}

/** The names of the files in the directory. */
export function namesIn(disk: SimDisk): string {
  return [...disk.contents().keys()].map((path) => path.slice('/d/'.length)).join(' ')
}
