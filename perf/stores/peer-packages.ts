/**
 * The packages of the peers. They have a package.json of their own in perf/peers/, so that nobody
 * installs them who doesn't compare; the first comparison does.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { projectPath } from '../support/project.ts'
import type { PeerKind } from './store.ts'

const PACKAGES: Readonly<Record<PeerKind, string | undefined>> = {
  'better-sqlite3': 'better-sqlite3',
  'better-sqlite3-single': 'better-sqlite3',
  lmdb: 'lmdb',
  'classic-level': 'classic-level',
  rocksdb: 'rocksdb',
  redis: '@redis/client',
  'append-fsync': undefined,
}

/** Every peer that appends for many callers; better-sqlite3 by its hand-made group commit. */
export const PEERS: readonly PeerKind[] = [
  'better-sqlite3',
  'lmdb',
  'rocksdb',
  'classic-level',
  'redis',
  'append-fsync',
]

/** Every peer that can be scanned for what it holds. */
export const SCANNED_PEERS: readonly PeerKind[] = [
  'better-sqlite3',
  'lmdb',
  'rocksdb',
  'classic-level',
  'redis',
]

/** Loads a peer's package, which may not be there to compile with: who asks knows its type. */
// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- callers state T
export function requirePeer<T>(name: string): T {
  return createRequire(projectPath('perf', 'peers', 'package.json'))(name) as T
}

/** Installs the peers if they are not, and tells which of them work here. */
export function readyPeers(wanted: readonly PeerKind[]): readonly PeerKind[] {
  installPeerPackages()
  return wanted.filter((peer) => {
    const obstacle = obstacleTo(peer)
    if (obstacle !== undefined) say(`${peer} does not take part: ${obstacle}`)
    return obstacle === undefined
  })
}

/** Installs the packages of perf/peers/ as its lock file says, unless they are. */
export function installPeerPackages(): void {
  if (isInstalled()) return
  say('Installing the peers of perf/peers/ (some are compiled; this takes minutes) …')
  const cli = process.env['npm_execpath']
  const [command, first] =
    cli?.endsWith('npm-cli.js') === true ? [process.execPath, [cli]] : ['npm', []]
  const { status } = spawnSync(command, [...first, 'ci'], {
    cwd: projectPath('perf', 'peers'),
    // What npm prints must not end up between the figures.
    stdio: ['ignore', 2, 2],
    env: { ...process.env, ...ownHeaders() },
  })
  if (status !== 0) throw new Error('`npm ci` failed in perf/peers; its messages are above')
}

/** npm notes what it has installed in a lock file of its own. */
function isInstalled(): boolean {
  const wanted = packagesIn('package-lock.json')
  const installed = packagesIn(join('node_modules', '.package-lock.json'))
  return Object.entries(wanted).every(([where, { version, optional }]) => {
    const found = installed[where]
    return where === '' || (found === undefined ? optional === true : found.version === version)
  })
}

interface LockedPackage {
  readonly version?: string
  readonly optional?: boolean
}

function packagesIn(lockFile: string): Readonly<Record<string, LockedPackage>> {
  const path = projectPath('perf', 'peers', lockFile)
  if (!existsSync(path)) return {}
  const { packages } = JSON.parse(readFileSync(path, 'utf8')) as {
    packages: Record<string, LockedPackage>
  }
  return packages
}

/** Node.js usually comes with the headers that addons are built with; this spares their download. */
function ownHeaders(): NodeJS.ProcessEnv {
  const prefix = join(process.execPath, '..', '..')
  const isThere = existsSync(join(prefix, 'include', 'node', 'node_version.h'))
  return isThere ? { npm_package_config_node_gyp_nodedir: prefix } : {}
}

/** Why a peer can't take part; undefined if it can. */
function obstacleTo(peer: PeerKind): string | undefined {
  const name = PACKAGES[peer]
  try {
    if (name !== undefined) requirePeer(name)
  } catch (error) {
    return (error as Error).message.split('\n')[0]
  }
  if (peer !== 'redis') return undefined
  const { status } = spawnSync('redis-server', ['--version'], { stdio: 'ignore' })
  return status === 0
    ? undefined
    : 'there is no redis-server (Debian: apt-get install redis-server)'
}

function say(message: string): void {
  process.stderr.write(`${message}\n`)
}
