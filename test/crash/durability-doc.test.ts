/** docs/durability.md: what it says about a damaged disk can be followed, command by command. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { runShell, sessionIn, userProject } from '../support/user-project.ts'

/** Tests run at the root of the project. */
const DOCUMENT = readFileSync(join(process.cwd(), 'docs/durability.md'), 'utf8')
const WHEN = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g
/** Where the document's reader has the project. */
const HOME = '/home/you'

test('docs/durability.md can be followed to damage a file and get the data back', async (t) => {
  const dir = await userProject(t)
  const session = sessionIn(DOCUMENT, 'A damaged disk, step by step')
  assert.ok(session.length >= 5, 'the steps are found')
  for (const { commands, prints } of session) {
    const printed = runShell(dir, commands).replaceAll(dir, HOME)
    assert.equal(printed.replaceAll(WHEN, 'now'), prints.replaceAll(WHEN, 'now'), commands)
  }
  assert.ok(existsSync(join(dir, 'data.quarantine')))
})

test('docs/durability.md names a command for the simulated disk that package.json has', () => {
  const { scripts } = JSON.parse(readFileSync(join(process.cwd(), 'package.json'), 'utf8')) as {
    scripts: Record<string, string>
  }
  const [, name = ''] = /^npm run (\w+) -- --seconds 3600$/m.exec(DOCUMENT) ?? []
  assert.match(scripts[name] ?? '', /explore-cores\.js$/)
})
