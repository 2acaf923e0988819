/** A store neither keeps a process alive that has nothing left to do, nor lets it go too soon. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Bifrost } from '../../index.ts'
import { temporaryDirectory } from '../support/temp-dir.ts'

const CHILD = fileURLToPath(new URL('./life-child.js', import.meta.url))

/** A process that does not end by itself is killed after this long, and its test fails. */
const TIMEOUT_MS = 60_000

/** Runs the child to its end; returns what it said. `onLine` is told each line when it comes. */
async function live(
  dir: string,
  way: string,
  onLine?: (line: string) => Promise<void>,
): Promise<string[]> {
  const child = spawn(process.execPath, [CHILD, dir, way], {
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: TIMEOUT_MS,
    killSignal: 'SIGKILL',
  })
  const exit = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>
  const lines: string[] = []
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line)
    await onLine?.(line)
  }
  assert.deepEqual(await exit, [0, null], `it ended by itself, and had said: ${lines.join(', ')}`)
  return lines
}

async function openStore(t: TestContext): Promise<{ dir: string; bifrost: Bifrost }> {
  const dir = await temporaryDirectory(t)
  const bifrost = await Bifrost.open({ dir, logs: ['log'] })
  t.after(() => bifrost.close())
  return { dir, bifrost }
}

async function assertStored(dir: string, payload: unknown): Promise<void> {
  const bifrost = await Bifrost.open({ dir })
  const record = await bifrost.readNextSingleOpt('log', 0)
  assert.ok(record?.kind === 'data')
  assert.equal(record.payload, payload)
  await bifrost.close()
}

test('Bifrost.close() leaves nothing that keeps the process alive', async (t) => {
  const dir = await temporaryDirectory(t)
  assert.deepEqual(await live(dir, 'close'), ['closed '])
  await assertStored(dir, 'a record')
})

test('a process that never closes its store ends by itself, and loses nothing', async (t) => {
  const dir = await temporaryDirectory(t)
  assert.deepEqual(await live(dir, 'leave'), ['appended 1'])
  await assertStored(dir, 'a record')
})

test('a process ends by itself though a reader still follows its own store', async (t) => {
  const dir = await temporaryDirectory(t)
  assert.deepEqual(await live(dir, 'leave a reader'), ['read a record'])
})

test('Bifrost.append() keeps the process alive while its group is delayed', async (t) => {
  const dir = await temporaryDirectory(t)
  assert.deepEqual(await live(dir, 'wait for a delayed commit'), ['appended 1'])
})

test('Bifrost.open() keeps the process alive while it waits for the lock', async (t) => {
  const { dir, bifrost } = await openStore(t)
  const lines = await live(dir, 'wait for the lock', async (line) => {
    if (line !== 'waiting') return
    // Long enough for the other process to have met the lock.
    await new Promise((resolve) => setTimeout(resolve, 100))
    await bifrost.close()
  })
  assert.deepEqual(lines, ['waiting', 'appended 1'])
})

test('Bifrost.open() keeps the process alive while a follower looks again', async (t) => {
  const { dir, bifrost } = await openStore(t)
  await bifrost.append('log', 'a record')
  await bifrost.close()
  for (const name of readdirSync(dir)) if (name.endsWith('1.segment')) rmSync(join(dir, name))
  assert.deepEqual(await live(dir, 'wait for damage to pass'), ['CORRUPT'])
})

test('a reader that follows the store of another process keeps its own alive', async (t) => {
  const { dir, bifrost } = await openStore(t)
  const lines = await live(dir, 'follow', async (line) => {
    if (line !== 'following') return
    await new Promise((resolve) => setTimeout(resolve, 300))
    await bifrost.append('log', 'a record')
    await bifrost.append('log', 'the last record')
  })
  assert.deepEqual(lines, ['following', 'read a record', 'read the last record'])
})

test('a process ends by itself though it never closes a store that it follows', async (t) => {
  const { dir, bifrost } = await openStore(t)
  await bifrost.append('log', 'a record')
  await bifrost.close()
  assert.deepEqual(await live(dir, 'leave a follower'), ['data'])
})
