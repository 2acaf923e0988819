/** Makes the directory of a store so that no power loss takes it away again. */
import { dirname, resolve } from 'node:path'
import type { FileSystem } from './file-system.ts'
import { errorCode, isMissing } from './io.ts'

/**
 * Makes a directory and those above it that are missing, one after the other, each durable before
 * the next. Also syncs the entry of one that is there: whoever made it may have been killed first.
 */
export async function makeDurableDirectory(fileSystem: FileSystem, dir: string): Promise<void> {
  const path = resolve(dir)
  const isMade = await makeWithParents(fileSystem, path)
  if (isMade) {
    await fileSystem.syncDirectory(dirname(dirname(path)))
    await fileSystem.syncDirectory(dirname(path))
  } else await syncIfAllowed(fileSystem, dirname(path))
}

async function makeWithParents(fileSystem: FileSystem, path: string): Promise<boolean> {
  try {
    return await fileSystem.makeDirectory(path)
  } catch (error) {
    if (!isMissing(error) || path === dirname(path)) throw error
    await makeDurableDirectory(fileSystem, dirname(path))
    return fileSystem.makeDirectory(path)
  }
}

/** Somebody else's directory may be one in which this user may not even open the parent. */
async function syncIfAllowed(fileSystem: FileSystem, path: string): Promise<void> {
  try {
    await fileSystem.syncDirectory(path)
  } catch (error) {
    const code = errorCode(error)
    if (code !== 'EACCES' && code !== 'EPERM') throw error
  }
}
