/** docs/faults.md: every case that a log must pass has tests, and they are there under their names. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'

/** Tests run at the root of the project. */
const ROOT = process.cwd()

/** How many cases each group has: a row that gets lost should not go unnoticed. */
const CASES: Readonly<Record<string, number>> = {
  'At the tail and in the middle': 13,
  'Writes and syncs that fail': 10,
  'Batches and tails': 11,
  'Life in a process': 15,
}

interface NamedTest {
  readonly file: string
  readonly title: string
}

interface Row {
  readonly group: string
  readonly name: string
  readonly answer: string
  readonly tests: readonly NamedTest[]
}

function rowsOf(group: string, section: string): Row[] {
  const lines = section.split('\n').filter((line) => line.startsWith('| '))
  return lines.slice(2).map((line) => {
    const [name = '', answer = '', tests = ''] = line.slice(2, -2).split(' | ')
    return { group, name, answer, tests: tests.split('<br>').map((cell) => namedTest(cell, name)) }
  })
}

function namedTest(cell: string, name: string): NamedTest {
  const [, file, title] = /^`([a-z0-9/-]+)` (.+)$/.exec(cell) ?? []
  assert.ok(file !== undefined && title !== undefined, `a file and a title for: ${name}`)
  return { file, title }
}

const sections = readFileSync(join(ROOT, 'docs/faults.md'), 'utf8').split(/^## /m).slice(1)
const rows = sections.flatMap((section) => rowsOf(section.split('\n', 1)[0] ?? '', section))

/** Whether a test of this file has a title that begins so. */
function hasTest({ file, title }: NamedTest): boolean {
  const path = [`${file}.test.ts`, `${file}.ts`]
    .map((name) => join(ROOT, 'test', name))
    .find(existsSync)
  if (path === undefined) return false
  const source = readFileSync(path, 'utf8')
  const escaped = title.replaceAll('`', '\\`')
  const starts = ["'", '"'].map((quote) => quote + title).concat(`\`${escaped}`)
  return starts.some((start) => isTitle(source, start))
}

/** A title is the first argument of a call of a test function. */
function isTitle(source: string, start: string): boolean {
  for (let at = source.indexOf(start); at >= 0; at = source.indexOf(start, at + 1)) {
    if (/\b(?:test|it)\(\s*(?:t,\s*)?$/.test(source.slice(Math.max(0, at - 40), at))) return true
  }
  return false
}

test('docs/faults.md has all groups, with all their cases', () => {
  const counts = new Map<string, number>()
  for (const { group } of rows) counts.set(group, (counts.get(group) ?? 0) + 1)
  assert.deepEqual(Object.fromEntries(counts), CASES)
  assert.equal(new Set(rows.map(({ name }) => name)).size, rows.length, 'each case once')
  for (const { name, answer } of rows) assert.ok(answer.length > 0, name)
})

for (const group of Object.keys(CASES)) {
  describe(`docs/faults.md, ${group}`, () => {
    for (const row of rows.filter((known) => known.group === group)) {
      test(`names tests that are there for: ${row.name}`, () => {
        const missing = row.tests.filter((named) => !hasTest(named))
        assert.deepEqual(missing, [])
      })
    }
  })
}
