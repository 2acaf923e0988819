/**
 * The conformance suite of the Durable Streams protocol, against `bifrost serve` as it is built, on
 * a real store. vitest runs it, because the suite is written for that; node:test must not, and so
 * the file is called `.spec.ts`.
 */
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runConformanceTests } from '@durable-streams/server-conformance-tests'
import { afterAll, beforeAll, describe, test, type RunnerTask } from 'vitest'
import { ServeProcess } from '../server/serve-process.ts'

const CLI = fileURLToPath(new URL('../../.build/server/cli.js', import.meta.url))
const SKIPPED = new URL('./skipped.md', import.meta.url)
const TESTS_AT_LEAST = 300

const config = { baseUrl: '', longPollTimeoutMs: 2000 }
let dir = ''
let server: ServeProcess

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'bifrost-conformance-'))
  const args = ['--limit', `longPollMs=${config.longPollTimeoutMs}`]
  server = await ServeProcess.start({ dir, cli: CLI, args })
  config.baseUrl = server.url
})

afterAll(async () => {
  await server.stop()
  await rm(dir, { recursive: true, force: true })
})

runConformanceTests(config)

describe('what is skipped', () => {
  test('is what skipped.md names, and nothing else', ({ task, expect }) => {
    const tests = testsIn(task.file.tasks)
    const skipped = tests.filter(({ mode }) => mode === 'skip').map(titleOf)
    expect(skipped.sort()).toEqual(namedInList().sort())
    expect(tests.length - skipped.length).toBeGreaterThan(TESTS_AT_LEAST)
  })
})

function testsIn(tasks: readonly RunnerTask[]): RunnerTask[] {
  return tasks.flatMap((task) => (task.type === 'suite' ? testsIn(task.tasks) : [task]))
}

function titleOf(task: RunnerTask): string {
  return task.suite === undefined ? task.name : `${titleOf(task.suite)} > ${task.name}`
}

/** Each skipped test is an item of a list. */
function namedInList(): string[] {
  return Array.from(readFileSync(SKIPPED, 'utf8').matchAll(/^- (.+)$/gm), ([, name]) => name ?? '')
}
