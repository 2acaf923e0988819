/**
 * Preloaded into a process with --import, this makes fs-ext be what the environment variable
 * FS_EXT_MODE says, as the machines of users have it:
 *
 *     missing    it is not installed
 *     unbuilt    its install script was blocked, so that the addon was never compiled
 *     no-locks   it works, but the file system has no locks
 *     noisy      it works, and the flags of each flock go to stdout
 */
import Module from 'node:module'

interface FlockModule {
  flockSync(descriptor: number, flags: string): void
}
interface Loader {
  _load(request: string, ...rest: unknown[]): unknown
}

const loader = Module as unknown as Loader
const load = loader._load.bind(Module)
const mode = process.env['FS_EXT_MODE']

loader._load = (request, ...rest) => {
  if (request === 'fs-ext') return loadFsExt(() => load(request, ...rest) as FlockModule)
  if (mode === 'unbuilt' && request.includes('fs_ext')) throw notFound(request)
  return load(request, ...rest)
}

function loadFsExt(real: () => FlockModule): FlockModule {
  if (mode === 'missing') throw notFound('fs-ext')
  const fsExt = real()
  if (mode === 'no-locks') return { ...fsExt, flockSync: refuse }
  if (mode !== 'noisy') return fsExt
  return {
    ...fsExt,
    flockSync(descriptor, flags) {
      process.stdout.write(`flock ${flags}\n`)
      fsExt.flockSync(descriptor, flags)
    },
  }
}

function refuse(): never {
  throw Object.assign(new Error('ENOLCK, No locks available'), { code: 'ENOLCK' })
}

function notFound(request: string): Error {
  return Object.assign(new Error(`Cannot find module '${request}'`), { code: 'MODULE_NOT_FOUND' })
}
