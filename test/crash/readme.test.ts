/** The README: its code works when pasted, its commands are there, its links lead somewhere. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryDirectory } from '../support/temp-dir.ts'

const DOOR = new URL('../../index.js', import.meta.url).href
/** Tests run at the root of the project. */
const ROOT = process.cwd()
const README = readFileSync(join(ROOT, 'README.md'), 'utf8')
const CODE = [...README.matchAll(/```ts\n(.*?)```/gs)].map(([, code = '']) => code)
const MAX_LINES = 10

test('README.md shows code of ten lines that works when pasted, and works again', async (t) => {
  const dir = await temporaryDirectory(t)
  const [code = ''] = CODE
  assert.ok(code.split('\n').filter((line) => line !== '').length <= MAX_LINES, code)
  const installed = join(dir, 'node_modules', 'bifrost-log')
  mkdirSync(installed, { recursive: true })
  writeFileSync(
    join(installed, 'package.json'),
    JSON.stringify({ type: 'module', exports: './index.js' }),
  )
  writeFileSync(join(installed, 'index.js'), `export * from ${JSON.stringify(DOOR)}\n`)
  writeFileSync(join(dir, 'pasted.mjs'), code)
  const lines = [1, 2, 3].map((id) => `${id} { id: ${id} }\n`)
  for (const again of [[], [4, 5, 6]]) {
    const expected = [...lines, ...again.map((lsn) => `${lsn} { id: ${lsn - 3} }\n`)].join('')
    const run = spawnSync(process.execPath, ['pasted.mjs'], { cwd: dir, encoding: 'utf8' })
    assert.deepEqual([run.status, run.stdout, run.stderr], [0, expected, ''])
  }
})

test('README.md names commands that package.json has', () => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>
  }
  for (const [, command] of README.matchAll(/`npm (?:run )?(\w+)`/g)) {
    assert.ok(scripts[String(command)] !== undefined, `npm ${String(command)}`)
  }
})

test('README.md links to what is there', () => {
  const links = [...README.matchAll(/\]\(([^)#]+)\)/g)].map(([, path = '']) => path)
  assert.ok(links.length > 0)
  for (const path of links) assert.ok(existsSync(join(ROOT, path)), path)
})
