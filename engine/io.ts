/** Small things around the file-system seam: whole reads, whole writes, kinds of errors. */
import { constants } from 'node:os'
import type { FileSystem, StoreFile } from './file-system.ts'

/** The code of a failed system call, such as 'ENOSPC'. */
export function errorCode(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null | undefined)?.code
  return typeof code === 'string' ? code : undefined
}

const { ENOSPC, EDQUOT, EFBIG } = constants.errno

const SPACE_ERRORS: ReadonlySet<number> = new Set([ENOSPC, EDQUOT, EFBIG])

/**
 * Whether a write failed because there was no room for it, so that what it did is known. By the
 * number, because Node has no name for EDQUOT.
 */
export function isSpaceError(error: unknown): boolean {
  const number = (error as { errno?: unknown } | null | undefined)?.errno
  return typeof number === 'number' && SPACE_ERRORS.has(Math.abs(number))
}

/** Whether a file or directory is not there. */
export function isMissing(error: unknown): boolean {
  return errorCode(error) === 'ENOENT'
}

/** One system call never takes more than this, well below the 2 GiB that all systems allow. */
export const MAX_CALL_BYTES: number = 256 * 1024 * 1024

/** Anything that bytes can be read from by position. */
export type ReadableFile = Pick<StoreFile, 'read'>

/** Reads until `length` bytes are there or the file ends; resolves with how many are. */
export async function readFully(
  file: ReadableFile,
  target: Uint8Array,
  at: number,
  length: number,
  position: number,
): Promise<number> {
  let done = 0
  while (done < length) {
    const wanted = Math.min(length - done, MAX_CALL_BYTES)
    const count = await file.read(target, at + done, wanted, position + done)
    if (count === 0) break
    done += count
  }
  return done
}

/** Writes all of `source`; a short write is followed by the rest, to learn why it was short. */
export async function writeFully(
  file: StoreFile,
  source: Uint8Array,
  position: number,
): Promise<void> {
  let done = 0
  while (done < source.length) {
    const part = source.subarray(done, Math.min(source.length, done + MAX_CALL_BYTES))
    const count = await file.write(part, position + done)
    if (count === 0) throw new Error(`Nothing of ${part.length} bytes was written`)
    done += count
  }
}

/** Opens a file, hands it to `use`, and closes it whatever happens. */
export async function withFile<T>(
  fileSystem: FileSystem,
  path: string,
  mode: 'read' | 'write' | 'create' | 'open-or-create',
  use: (file: StoreFile) => Promise<T>,
): Promise<T> {
  const file = await fileSystem.open(path, mode)
  try {
    return await use(file)
  } finally {
    await file.close()
  }
}

/** The whole file if it has at most `maxBytes`; undefined if it is missing or longer. */
export async function readSmallFile(
  fileSystem: FileSystem,
  path: string,
  maxBytes: number,
): Promise<Uint8Array | undefined> {
  try {
    return await withFile(fileSystem, path, 'read', async (file) => {
      const size = await file.size()
      if (size > maxBytes) return undefined
      const bytes = new Uint8Array(size)
      return bytes.subarray(0, await readFully(file, bytes, 0, size, 0))
    })
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

const ZEROS = new Uint8Array(1024 * 1024)

/** Zeros to write from, as buffers that together have `length` bytes. Nobody may write to them. */
export function zeros(length: number): Uint8Array[] {
  const buffers: Uint8Array[] = []
  for (let left = length; left > 0; left -= ZEROS.length) {
    buffers.push(left >= ZEROS.length ? ZEROS : ZEROS.subarray(0, left))
  }
  return buffers
}

/** Writes zeros from `from` to `to`. */
export async function writeZeros(file: StoreFile, from: number, to: number): Promise<void> {
  let at = from
  for (const part of zeros(to - from)) {
    await writeFully(file, part, at)
    at += part.length
  }
}
