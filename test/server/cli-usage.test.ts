/** How the command line is called, and what it says to those who call it wrongly. */
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryDirectory } from '../support/temp-dir.ts'
import { bifrostCommand, shell } from './cli-process.ts'
import { closedStore } from './cli-stores.ts'

const COMMANDS = ['serve', 'inspect', 'dump', 'verify', 'repair']

test('bifrost --help shows how each command is called', async () => {
  for (const flag of ['--help', '-h', 'help']) {
    const { code, stdout, stderr } = await bifrostCommand(flag)
    assert.deepEqual([code, stderr], [0, ''])
    for (const name of COMMANDS) assert.match(stdout, new RegExp(`^  bifrost ${name} `, 'm'))
  }
})

for (const name of COMMANDS) {
  test(`bifrost ${name} --help shows how it is called, and no other command`, async () => {
    const { code, stdout, stderr } = await bifrostCommand(name, '--help')
    assert.deepEqual([code, stderr], [0, ''])
    assert.deepEqual(stdout.match(/^ {2}bifrost \w+/gm), [`  bifrost ${name}`])
  })
}

const WRONG: readonly (readonly [what: string, args: readonly string[], says: RegExp])[] = [
  ['no command', [], /^bifrost: What shall be done\?\n\nUsage:/],
  ['an unknown command', ['frobnicate'], /There is no command frobnicate\n\nUsage:/],
  ['a name that every object has', ['constructor'], /There is no command constructor\n/],
  ['no directory', ['verify'], /The directory of a store is missing\n\nUsage:/],
  ['an empty directory name', ['dump', ''], /The directory of a store is missing\n/],
  ['two directories', ['inspect', 'a', '--dir', 'b'], /There are two directories\n/],
  ['an argument too many', ['inspect', 'a', 'b'], /What is "b" for\?\n/],
  ['an unknown option', ['verify', '.', '--quick'], /Unknown option '--quick'\n\nUsage:/],
  ['no value where one is needed', ['dump', '.', '--log'], /'--log <value>' argument missing\n/],
  ['an LSN of 0', ['dump', '.', '--from', '0'], /--from is a whole number from 1 to/],
  ['an LSN that is no number', ['dump', '.', '--to', '1e3'], /--to is a whole number from 1 to/],
  ['a port out of range', ['serve', '--dir', '.', '--port', '70000'], /--port is a whole number/],
  ['an unknown limit', ['serve', '--dir', '.', '--limit', 'x=1'], /--limit takes NAME=NUMBER/],
]

for (const [what, args, says] of WRONG) {
  test(`bifrost exits with 2 and shows the usage on stderr for ${what}`, async () => {
    const { code, stdout, stderr } = await bifrostCommand(...args)
    assert.deepEqual([code, stdout], [2, ''])
    assert.match(stderr, says)
    assert.match(stderr, /\n {2}bifrost \w+ /)
  })
}

const TOOLS: readonly (readonly string[])[] = [
  ['inspect'],
  ['dump'],
  ['verify'],
  ['repair', '--accept-data-loss'],
]

for (const [tool = '', ...options] of TOOLS) {
  test(`bifrost ${tool} makes nothing where there is no store, and says so`, async (t) => {
    const dir = await temporaryDirectory(t)
    const nowhere = await bifrostCommand(tool, join(dir, 'missing'), ...options)
    assert.deepEqual([nowhere.code, nowhere.stdout], [1, ''])
    assert.match(nowhere.stderr, /^bifrost: OPEN_FAILED: .*ENOENT.*missing'\n$/)
    assert.deepEqual(readdirSync(dir), [])
    if (tool === 'repair') return
    const empty = await bifrostCommand(tool, dir, ...options)
    assert.deepEqual([empty.code, empty.stdout], [1, ''])
    assert.match(empty.stderr, /^bifrost: OPEN_FAILED: .*\n$/)
    assert.deepEqual(readdirSync(dir), [])
  })
}

test('bifrost ends quietly when who reads what it prints has seen enough', async (t) => {
  const dir = await closedStore(t)
  const line = 'bifrost dump "$1" | head -n 1; echo "${PIPESTATUS[@]}"'
  const { stdout, stderr } = await shell(line, dir)
  const [record = '', codes] = stdout.trimEnd().split('\n')
  assert.equal((JSON.parse(record) as { lsn: number }).lsn, 1)
  assert.deepEqual([codes, stderr], ['0 0', ''])
})
