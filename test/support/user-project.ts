/** A user's project: a directory in which the package, as it was built for the tests, is installed. */
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { spawnSync } from 'node:child_process'
import type { TestContext } from 'node:test'
import { temporaryDirectory } from './temp-dir.ts'

const DOOR = new URL('../../index.js', import.meta.url).href
const SERVER = new URL('../../server/index.js', import.meta.url).href
const CLI = new URL('../../server/cli.js', import.meta.url).href

const MANIFEST = {
  type: 'module',
  exports: { '.': './index.js', './server': './server.js' },
  bin: { bifrost: './cli.js' },
}

/** Makes the project; it goes away with the test. */
export async function userProject(t: TestContext): Promise<string> {
  const dir = await temporaryDirectory(t)
  const installed = join(dir, 'node_modules', 'bifrost-log')
  const bin = join(dir, 'node_modules', '.bin')
  for (const folder of [installed, bin]) mkdirSync(folder, { recursive: true })
  const put = (name: string, text: string): void => writeFileSync(join(installed, name), text)
  put('package.json', JSON.stringify(MANIFEST))
  put('index.js', `export * from ${JSON.stringify(DOOR)}\n`)
  put('server.js', `export * from ${JSON.stringify(SERVER)}\n`)
  put('cli.js', `#!/usr/bin/env node\nawait import(${JSON.stringify(CLI)})\n`)
  chmodSync(join(installed, 'cli.js'), 0o755)
  symlinkSync('../bifrost-log/cli.js', join(bin, 'bifrost'))
  return dir
}

/** Runs lines of shell as they stand in a document; returns all that they print. */
export function runShell(dir: string, lines: string): string {
  const { stdout } = spawnSync('bash', ['-c', `exec 2>&1\n${lines}`], {
    cwd: dir,
    encoding: 'utf8',
    // A coverage run of the tests is not the user's, and npm should not look for news.
    env: { ...process.env, npm_config_update_notifier: 'false', npm_config_offline: 'true' },
  })
  return stdout
}

/** The shell commands of a document's section, each with what it says that they print. */
export function sessionIn(
  markdown: string,
  heading: string,
): { readonly commands: string; readonly prints: string }[] {
  const section = markdown.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? ''
  const fences = section.matchAll(/^```sh\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?/gms)
  return Array.from(fences, ([, commands = '', prints = '']) => ({ commands, prints }))
}
