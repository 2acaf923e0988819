/**
 * Proves that every dependency rule bites: a small lawful tree, and the same tree with one breach of
 * each rule, go through dependency-cruiser with the project's own configuration.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { pathToFileURL } from 'node:url'

interface Violation {
  readonly from: string
  readonly to: string
  readonly rule: { readonly name: string }
}

const root = process.cwd()
const cruiser = path.join(root, 'node_modules/dependency-cruiser/bin/dependency-cruise.mjs')
const config = path.join(root, '.dependency-cruiser.cjs')

/** The package's dependencies, one of the server's, and one that is there only for development. */
const MANIFEST = {
  type: 'module',
  dependencies: { 'crc-32': '1', 'fs-ext': '1', msgpackr: '1', 'prom-client': '1' },
  devDependencies: { typescript: '1' },
}

/** A store in miniature: what each file imports. Every allowance that the rules make is used. */
const LAWFUL: Readonly<Record<string, readonly string[]>> = {
  'index.ts': ['./loglets/bifrost.ts', './engine/inspect.ts'],
  'codec/checksum.ts': ['crc-32', 'node:zlib', 'node:assert/strict'],
  'codec/msgpack.ts': ['msgpackr'],
  'codec/frame.ts': ['./checksum.ts', './msgpack.ts'],
  'engine/flock.ts': ['fs-ext'],
  'engine/node-file-system.ts': ['node:fs', 'node:fs/promises', './flock.ts'],
  'engine/inspect.ts': ['../codec/frame.ts'],
  'engine/log-store.ts': ['./node-file-system.ts', './inspect.ts'],
  'loglets/lsn.ts': [],
  'loglets/local-loglet.ts': ['../engine/log-store.ts'],
  'loglets/bifrost.ts': ['./local-loglet.ts', './lsn.ts'],
  'server/http.ts': ['../index.ts', '../engine/inspect.ts', './pages.ts', 'prom-client'],
  'server/pages.ts': ['node:fs', 'node:http'],
  'perf/load.ts': ['../index.ts', 'node:fs', 'typescript'],
}

/** For each rule: a file, what it must not import, and the module that is reported. */
const BREACHES: Readonly<Record<string, readonly [file: string, imports: string, to: string]>> = {
  'no-circular': ['codec/checksum.ts', './frame.ts', 'codec/frame.ts'],
  'no-orphans': ['codec/lonely.ts', '', 'codec/lonely.ts'],
  'no-dead-modules': ['engine/forgotten.ts', '../codec/frame.ts', 'engine/forgotten.ts'],
  resolvable: ['loglets/bifrost.ts', './nowhere.ts', './nowhere.ts'],
  'codec-is-a-leaf': ['codec/frame.ts', '../engine/flock.ts', 'engine/flock.ts'],
  'codec-does-no-io': ['codec/frame.ts', 'node:net', 'net'],
  'engine-below-loglets': ['engine/inspect.ts', '../loglets/lsn.ts', 'loglets/lsn.ts'],
  'loglets-below-server': ['loglets/bifrost.ts', '../server/http.ts', 'server/http.ts'],
  'loglets-do-not-know-bifrost': ['loglets/local-loglet.ts', './lsn.ts', 'loglets/lsn.ts'],
  'index-opens-to-no-server': ['index.ts', './server/http.ts', 'server/http.ts'],
  'server-uses-the-public-api': ['server/http.ts', '../loglets/lsn.ts', 'loglets/lsn.ts'],
  'fs-only-in-node-file-system': ['loglets/bifrost.ts', 'node:fs/promises', 'fs/promises'],
  'msgpackr-has-one-door': ['codec/checksum.ts', 'msgpackr', 'node_modules/msgpackr/index.js'],
  'crc-32-has-one-door': ['server/http.ts', 'crc-32', 'node_modules/crc-32/index.js'],
  'fs-ext-has-one-door': ['engine/log-store.ts', 'fs-ext', 'node_modules/fs-ext/index.js'],
  'no-other-npm-below-server': [
    'engine/log-store.ts',
    'prom-client',
    'node_modules/prom-client/index.js',
  ],
  'shipped-code-has-shipped-dependencies': [
    'server/http.ts',
    'typescript',
    'node_modules/typescript/index.js',
  ],
  'shipped-code-imports-no-tests': ['server/http.ts', '../perf/load.ts', 'perf/load.ts'],
}

describe('dependency rules', () => {
  let folder = ''
  let lawful: readonly Violation[] = []
  let breached: readonly Violation[] = []

  before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'bifrost-boundaries-'))
    await writeProject(folder)
    lawful = cruise(folder)
    for (const [file, imports] of Object.values(BREACHES)) {
      await writeModule(folder, file, [imports], 'a')
    }
    breached = cruise(folder)
  })
  after(() => rm(folder, { recursive: true }))

  test('a lawful tree breaks none', () => {
    assert.deepEqual(lawful, [])
  })

  test('each has a breach here', async () => {
    const { default: ruleSet } = (await import(pathToFileURL(config).href)) as {
      default: { forbidden: readonly { name: string }[] }
    }
    const names = ruleSet.forbidden.map((rule) => rule.name)
    assert.deepEqual(names.sort(), Object.keys(BREACHES).sort())
  })

  for (const [name, [from, imports, to]] of Object.entries(BREACHES)) {
    test(`${name} reports ${from}${imports && ` importing ${imports}`}`, () => {
      const found = breached.filter(({ rule }) => rule.name === name)
      const pairs = found.map((violation) => `${violation.from} -> ${violation.to}`)
      assert.ok(pairs.includes(`${from} -> ${to}`), `only ${JSON.stringify(pairs)}`)
    })
  }
})

async function writeProject(folder: string): Promise<void> {
  await cp(config, path.join(folder, '.dependency-cruiser.cjs'))
  await cp(path.join(root, 'tsconfig.json'), path.join(folder, 'tsconfig.json'))
  await writeFile(path.join(folder, 'package.json'), JSON.stringify(MANIFEST))
  const packages = { ...MANIFEST.dependencies, ...MANIFEST.devDependencies }
  for (const name of Object.keys(packages)) {
    const home = path.join('node_modules', name)
    await writeModule(folder, path.join(home, 'index.js'), [])
    await writeFile(path.join(folder, home, 'package.json'), JSON.stringify({ name, version: '1' }))
  }
  for (const [file, imports] of Object.entries(LAWFUL)) await writeModule(folder, file, imports)
}

async function writeModule(
  folder: string,
  file: string,
  imports: readonly string[],
  flag = 'w',
): Promise<void> {
  const text = imports.filter((name) => name !== '').map((name) => `import '${name}'\n`)
  await mkdir(path.dirname(path.join(folder, file)), { recursive: true })
  await writeFile(path.join(folder, file), text.join(''), { flag })
}

function cruise(folder: string): readonly Violation[] {
  const args = [cruiser, '--config', '.dependency-cruiser.cjs', '--output-type', 'json', '.']
  const run = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' })
  assert.equal(run.stderr, '')
  const report = JSON.parse(run.stdout) as { summary: { violations: readonly Violation[] } }
  return report.summary.violations
}
