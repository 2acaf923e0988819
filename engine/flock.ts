/**
 * The one file that knows fs-ext. It is loaded when the first store opens, so that the package can
 * be imported, and the in-memory provider used, where fs-ext was not built.
 */
import { createRequire } from 'node:module'
import { logError } from '../codec/errors.ts'

interface FsExt {
  flockSync(descriptor: number, flags: 'exnb'): void
}

const require = createRequire(import.meta.url)

function loadFsExt(): FsExt {
  try {
    return require('fs-ext') as FsExt
  } catch (cause) {
    throw logError(
      'LOCK_UNAVAILABLE',
      'The package fs-ext, which locks the store, could not be loaded. It is compiled when it is ' +
        'installed: run `npm rebuild fs-ext`, with a C++ compiler, make and python3 at hand, and ' +
        'with install scripts allowed for it',
      { cause },
    )
  }
}

/**
 * Takes an exclusive lock on an open file without waiting. Returns false if somebody else has it;
 * throws LOCK_UNAVAILABLE if the file system can't lock or fs-ext is not there.
 */
export function tryFlock(descriptor: number): boolean {
  const fsExt = loadFsExt()
  try {
    fsExt.flockSync(descriptor, 'exnb')
    return true
  } catch (cause) {
    const code = (cause as { code?: string }).code
    if (code === 'EAGAIN' || code === 'EWOULDBLOCK') return false
    throw logError('LOCK_UNAVAILABLE', 'The file system could not lock the store', { cause })
  }
}
