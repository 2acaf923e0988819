/**
 * Makes a clone ready to run: installs the packages if the installed ones are not those of the lock
 * file, checks that the native lock addon loads, and compiles sources and tests into `.build/`. It
 * runs before `npm start`, `npm test` and the checks, needs no package itself, and does nothing
 * twice. It must never change a file that is under version control.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { copyPage } from './copy-page.mjs'

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '..')
const OLDEST_NODE = [20, 19]

process.chdir(root)
checkNode()
if (!isInstalled()) install()
if (!lockAddonLoads()) rebuildLockAddon()
removeOrphans('.build')
compile()

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number)
  if (major > OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor >= OLDEST_NODE[1])) return
  stop(`Node.js ${OLDEST_NODE.join('.')} or newer is needed; this is ${process.versions.node}.`)
}

/**
 * npm notes what it has installed in a lock file of its own. Comparing the two by content, not by
 * age, also notices an installation that was interrupted or is of another branch.
 */
function isInstalled() {
  if (!existsSync('node_modules/.package-lock.json')) return false
  const wanted = packagesIn('package-lock.json')
  const installed = packagesIn('node_modules/.package-lock.json')
  return Object.entries(wanted).every(
    ([where, { version, optional }]) =>
      where === '' || (installed[where] ? installed[where].version === version : optional === true),
  )
}

function packagesIn(lockFile) {
  return JSON.parse(readFileSync(lockFile, 'utf8')).packages
}

function install() {
  say('Installing the packages of package-lock.json …')
  if (npm('ci', '--include=dev') !== 0) stop('`npm ci` failed; its messages are above.')
}

/** Without fs-ext no store can be opened, so its absence should show here and not in every test. */
function lockAddonLoads() {
  try {
    createRequire(path.join(root, 'package.json'))('fs-ext')
    return true
  } catch (error) {
    say(`fs-ext does not load: ${error.message.split('\n')[0]}`)
    return false
  }
}

function rebuildLockAddon() {
  say('Building fs-ext for this Node.js …')
  npm('rebuild', 'fs-ext', '--ignore-scripts=false', '--foreground-scripts')
  if (lockAddonLoads()) return
  stop(
    'fs-ext, which locks a store against a second writer, could not be built. It takes python3,\n' +
      "make and a C++ compiler (Debian: apt-get install python3 make g++), and Node.js's headers.\n" +
      'Then run: npm rebuild fs-ext',
  )
}

function npm(...args) {
  // npm tells its scripts where it is, so that the same npm goes on, whatever is on the PATH.
  const cli = process.env.npm_execpath
  const [command, first] = cli?.endsWith('npm-cli.js') ? [process.execPath, [cli]] : ['npm', []]
  const env = { ...process.env, ...localHeaders() }
  return spawnSync(command, [...first, ...args], { stdio: 'inherit', env }).status
}

/** Node.js usually comes with the headers that addons are built with; this spares their download. */
function localHeaders() {
  const prefix = path.join(path.dirname(process.execPath), '..')
  try {
    const header = readFileSync(path.join(prefix, 'include', 'node', 'node_version.h'), 'utf8')
    const part = (name) => new RegExp(`define NODE_${name}_VERSION (\\d+)`).exec(header)?.[1]
    const version = ['MAJOR', 'MINOR', 'PATCH'].map(part).join('.')
    return version === process.versions.node ? { npm_package_config_node_gyp_nodedir: prefix } : {}
  } catch {
    return {}
  }
}

/** A test whose source is gone must not go on passing, so its compiled file goes too. */
function removeOrphans(folder) {
  if (!existsSync(folder)) return
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    const match = /^(.*)\.js(\.map)?$/.exec(path.join(entry.parentPath, entry.name))
    if (!match || !entry.isFile()) continue
    if (!existsSync(`${path.relative('.build', match[1])}.ts`)) rmSync(match[0])
  }
}

function compile() {
  const tsc = path.join('node_modules', 'typescript', 'bin', 'tsc')
  const record = path.join('.build', 'tsconfig.tsbuildinfo')
  const args = [tsc, '-p', 'tsconfig.test.json', '--incremental', '--tsBuildInfoFile', record]
  const { status } = spawnSync(process.execPath, args, { stdio: 'inherit' })
  if (status !== 0) stop('The sources do not compile; the messages are above.')
  copyPage('.build')
}

/** To stderr, so that what a script prints on stdout is only its own. */
function say(message) {
  process.stderr.write(`${message}\n`)
}

function stop(message) {
  say(message)
  process.exit(1)
}
