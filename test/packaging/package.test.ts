/**
 * The package as its users get it: packed, unpacked into a project of its own, compiled against and
 * run there. Nothing is taken from a registry and nothing from `dist/`, which may be stale.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'

interface Manifest {
  readonly version: string
  readonly dependencies: Readonly<Record<string, string>>
}

const run = promisify(execFile)
const root = process.cwd()
const tsc = path.join(root, 'node_modules/typescript/bin/tsc')
const home = path.join(root, 'test/packaging')

/** A user's settings, with nothing forgiven: the declarations of all packages are checked too. */
const STRICT = {
  module: 'NodeNext',
  target: 'ES2022',
  lib: ['ES2023'],
  types: ['node'],
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  skipLibCheck: false,
  noEmit: true,
}

describe('the packed package', () => {
  let folder = ''
  let project = ''
  let tarball: readonly string[] = []

  before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'bifrost-package-'))
    const packed = await pack(folder)
    tarball = (await run('tar', ['-tzf', packed])).stdout.trim().split('\n')
    project = await makeProject(folder, packed)
  })
  after(() => rm(folder, { recursive: true }))

  test('holds the compiled code, its manifest, README and LICENSE, and nothing else', () => {
    const outside = tarball.filter((file) => !file.startsWith('package/dist/'))
    assert.deepEqual(outside.sort(), [
      'package/LICENSE',
      'package/README.md',
      'package/package.json',
    ])
    const inside = tarball.filter((file) => file.startsWith('package/dist/'))
    const odd = inside.filter(
      (file) => !/^package\/dist\/[a-z0-9/-]+\.(js|js\.map|d\.ts)$/.test(file),
    )
    assert.deepEqual(odd, ['package/dist/server/page.html'])
    assert.ok(inside.includes('package/dist/index.js'))
    assert.ok(inside.includes('package/dist/index.d.ts'))
    assert.ok(inside.includes('package/dist/server/index.d.ts'))
    assert.ok(!inside.some((file) => /\/(test|perf)\//.test(file)))
  })

  test('has source maps that carry their sources', async () => {
    const file = path.join(project, 'node_modules/bifrost-log/dist/index.js.map')
    const map = JSON.parse(await readFile(file, 'utf8')) as { sourcesContent?: readonly string[] }
    assert.equal(map.sourcesContent?.[0], await readFile(path.join(root, 'index.ts'), 'utf8'))
  })

  test("has the contract's types, and a strict user's program compiles", async () => {
    const failed = run(process.execPath, [tsc, '-p', project]).catch(
      (error: unknown) => error as { stdout: string },
    )
    assert.equal((await failed).stdout, '')
  })

  test('is compared with the contract in every name that the contract exports', async () => {
    const contract = await readFile(path.join(home, 'api.d.ts'), 'utf8')
    const comparison = await readFile(path.join(home, 'consumer/contract.ts'), 'utf8')
    const names = [...contract.matchAll(/^export [a-z ]*\b(\w+)(?=[<:(]| =| \{| extends)/gm)]
    assert.equal(names.length, contract.match(/^export /gm)?.length)
    const missing = names.filter(
      ([, name = '']) =>
        !comparison.includes(`shipped.${name}>`) && !comparison.includes(`shipped.${name}<`),
    )
    assert.deepEqual(missing, [])
  })

  test('has a command line, which its manifest names', async () => {
    const home = path.join(project, 'node_modules/bifrost-log')
    const { bin } = JSON.parse(await readFile(path.join(home, 'package.json'), 'utf8')) as {
      bin: { bifrost: string }
    }
    const command = path.join(home, bin.bifrost)
    assert.ok((await readFile(command, 'utf8')).startsWith('#!/usr/bin/env node\n'))
    const { stdout } = await run(process.execPath, [command, '--help'], { cwd: project })
    assert.match(stdout, /bifrost serve --dir DIR/)
  })

  for (const provider of ['memory', 'local']) {
    test(`runs under plain Node.js on the ${provider} provider`, async () => {
      const dir = path.join(project, 'data')
      const { stdout, stderr } = await run(process.execPath, ['run.js', provider, dir], {
        cwd: project,
      })
      assert.equal(stdout, 'done\n')
      assert.equal(stderr, '')
    })
  }
})

/** Builds and packs a copy, so that neither a stale `dist/` nor another build gets in the way. */
async function pack(folder: string): Promise<string> {
  const copy = path.join(folder, 'copy')
  await mkdir(copy)
  for (const file of ['package.json', 'README.md', 'LICENSE']) {
    await cp(path.join(root, file), path.join(copy, file))
  }
  const build = path.join(root, 'tsconfig.build.json')
  const dist = path.join(copy, 'dist')
  await run(process.execPath, [tsc, '-p', build, '--outDir', dist])
  await run(process.execPath, [path.join(root, '.ci/copy-page.mjs'), dist])
  await run('npm', ['pack', '--ignore-scripts', '--pack-destination', folder], { cwd: copy })
  const { version } = await manifest()
  return path.join(folder, `bifrost-log-${version}.tgz`)
}

async function manifest(): Promise<Manifest> {
  return JSON.parse(await readFile(path.join(root, 'package.json'), 'utf8')) as Manifest
}

/** A user's project: the unpacked package, its dependencies, and the consumer's files. */
async function makeProject(folder: string, packed: string): Promise<string> {
  const project = path.join(folder, 'project')
  const modules = path.join(project, 'node_modules')
  await mkdir(path.join(modules, 'bifrost-log'), { recursive: true })
  await mkdir(path.join(modules, '@types'))
  await run('tar', [
    '-xzf',
    packed,
    '-C',
    path.join(modules, 'bifrost-log'),
    '--strip-components=1',
  ])
  for (const name of [...Object.keys((await manifest()).dependencies), '@types/node']) {
    await symlink(path.join(root, 'node_modules', name), path.join(modules, name))
  }
  await cp(path.join(home, 'consumer'), project, { recursive: true })
  await cp(path.join(home, 'api.d.ts'), path.join(project, 'api.d.ts'))
  await writeFile(path.join(project, 'package.json'), '{ "private": true, "type": "module" }')
  await writeFile(path.join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions: STRICT }))
  assert.ok((await readdir(project)).includes('usage.ts'))
  return project
}
