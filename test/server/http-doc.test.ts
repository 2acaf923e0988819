/** docs/http.md: its session can be typed, and its code works when pasted. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sessionIn, userProject } from '../support/user-project.ts'

/** Tests run at the root of the project. */
const ROOT = process.cwd()
const DOCUMENT = readFileSync(join(ROOT, 'docs/http.md'), 'utf8')
const PORT = '4437'
const MARK = '=== end of step ==='

async function freePort(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return String(port)
}

interface Run {
  /** What it has printed when it has ended. */
  readonly printed: Promise<string>
}

/** Runs a command in a project; what it has started ends with the test. */
function start(t: TestContext, dir: string, command: string, ...args: string[]): Run {
  const child = spawn(command, args, {
    cwd: dir,
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { ...process.env, npm_config_update_notifier: 'false', npm_config_offline: 'true' },
  })
  t.after(() => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    } catch {
      // All of it has ended by itself.
    }
  })
  return { printed: text(child.stdout) }
}

test('docs/http.md shows a session that can be typed as it stands', async (t) => {
  const dir = await userProject(t)
  const port = await freePort()
  const steps = sessionIn(DOCUMENT, 'A session')
  assert.equal(steps.length, 3)
  const script = steps.map(({ commands }) => `${commands}echo '${MARK}'\n`).join('')
  const { printed } = start(t, dir, 'bash', '-c', script.replaceAll(PORT, port))
  const prints = (await printed).split(`${MARK}\n`).slice(0, -1)
  // A reply without a line end runs into the next one, as it does on a screen.
  assert.deepEqual(
    prints.map((step) => step.trimEnd()),
    steps.map((step) => step.prints.trimEnd()),
  )
})

const SERVERS = [
  ['node:http', '/orders', { authorization: 'Bearer open' }],
  ['Express', '/streams/orders', {}],
  ['Fastify', '/orders', {}],
] as const

function codeOf(what: string): string {
  const fences = [...DOCUMENT.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code = '']) => code)
  const imports = { 'node:http': 'createServer', Express: 'express()', Fastify: 'fastify()' }[what]
  const code = fences.find((fence) => fence.includes(imports ?? 'Request('))
  assert.ok(code !== undefined, what)
  return code
}

async function pasted(t: TestContext, code: string): Promise<Run> {
  const dir = await userProject(t)
  for (const name of ['express', 'fastify']) {
    symlinkSync(join(ROOT, 'node_modules', name), join(dir, 'node_modules', name))
  }
  writeFileSync(join(dir, 'pasted.mjs'), code)
  return start(t, dir, process.execPath, 'pasted.mjs')
}

/** Asks until somebody listens. */
async function patientFetch(url: string, init: RequestInit): Promise<Response> {
  for (let tries = 1; ; tries++) {
    try {
      return await fetch(url, init)
    } catch (error) {
      if (tries === 300) throw error
      await sleep(100)
    }
  }
}

describe('docs/http.md', () => {
  for (const [what, path, credentials] of SERVERS) {
    test(`shows how to mount the handler in ${what}`, async (t) => {
      const port = await freePort()
      await pasted(t, codeOf(what).replaceAll(PORT, port))
      const url = `http://127.0.0.1:${port}${path}`
      const headers = { 'content-type': 'application/json', ...credentials }
      const made = await patientFetch(url, { method: 'PUT', headers, body: '[{"id":1}]' })
      assert.equal(made.status, 201)
      const added = await fetch(url, { method: 'POST', headers, body: '{"id":2}' })
      assert.equal(added.status, 204)
      assert.deepEqual(await (await fetch(url, { headers })).json(), [{ id: 1 }, { id: 2 }])
      if (what === 'node:http') assert.equal((await fetch(url)).status, 401)
    })
  }

  test('shows how to use the handler as fetch', async (t) => {
    const { printed } = await pasted(t, codeOf('fetch'))
    assert.equal(await printed, 'hello\n')
  })
})
