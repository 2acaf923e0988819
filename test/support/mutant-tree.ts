/** Copies of the compiled tree with something changed, and what the explorer makes of them. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Edit, Mutant } from './mutant-list.ts'

/** The root of the build that this module is part of. */
const BUILD = fileURLToPath(new URL('../..', import.meta.url))
const FOLDERS = ['codec', 'engine', 'loglets', 'test/support']

/** What became of a mutant. */
export interface Verdict {
  readonly mutant: Mutant
  /** Undefined: nobody noticed. */
  readonly caught: string | undefined
  readonly seconds: number
}

export interface MutantLimits {
  /** Lives to try; whoever is not caught by then is not caught. */
  readonly seeds: number
  /** Against a mutant that makes everything slow. */
  readonly seconds: number
}

/** Runs the explorer on a mutant, in a process of its own. */
export async function judgeMutant(mutant: Mutant, limits: MutantLimits): Promise<Verdict> {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'bifrost-mutant-'))
  const startedAt = performance.now()
  try {
    copyBuild(root)
    for (const edit of mutant.edits ?? []) applyEdit(root, edit)
    const caught = await explore(root, mutant, limits)
    return { mutant, caught, seconds: (performance.now() - startedAt) / 1000 }
  } finally {
    fs.rmSync(root, { recursive: true, force: true })
  }
}

function copyBuild(root: string): void {
  for (const folder of FOLDERS) {
    const isCode = (source: string): boolean => !/\.(map|ts|tsbuildinfo)$/.test(source)
    fs.cpSync(path.join(BUILD, folder), path.join(root, folder), {
      recursive: true,
      filter: isCode,
    })
  }
  fs.symlinkSync(nodeModules(), path.join(root, 'node_modules'))
  fs.writeFileSync(path.join(root, 'package.json'), '{ "type": "module" }')
}

function nodeModules(): string {
  for (let folder = BUILD; ; folder = path.dirname(folder)) {
    const found = path.join(folder, 'node_modules')
    if (fs.existsSync(found)) return fs.realpathSync(found)
    assert.notEqual(folder, path.dirname(folder), 'the packages are installed')
  }
}

/** The text must be there once and only once: a mutant that changes nothing proves nothing. */
function applyEdit(root: string, { file, from, to }: Edit): void {
  const target = path.join(root, file)
  const source = fs.readFileSync(target, 'utf8')
  const parts = source.split(from)
  assert.equal(parts.length - 1, 1, `how often ${file} has the text of the mutant: ${from}`)
  fs.writeFileSync(target, parts.join(to))
}

function explore(
  root: string,
  mutant: Mutant,
  { seeds, seconds }: MutantLimits,
): Promise<string | undefined> {
  const { layer, profile, suite = 'explore' } = mutant
  const args = [path.join(root, 'test/support/explore-main.js'), '--mutant', '--suite', suite]
  args.push('--count', String(seeds), '--seconds', String(seconds))
  if (layer !== undefined) args.push('--layer', layer)
  if (profile !== undefined) args.push('--profile', profile)
  return new Promise((resolve, reject) => {
    // What a broken engine covers is no coverage of ours.
    const env = { ...process.env, NODE_V8_COVERAGE: undefined }
    const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    child.stdout.on('data', (data: Buffer) => (output += data.toString()))
    child.stderr.on('data', (data: Buffer) => (output += data.toString()))
    child.on('error', reject)
    child.on('close', (code) => {
      resolve(code === 0 ? undefined : firstLine(output))
    })
  })
}

/** What was wrong, without a stack. */
function firstLine(output: string): string {
  const lines = output.split('\n').filter((line) => /seed|Error/.test(line))
  return (lines[0] ?? output.slice(0, 200)).slice(0, 200)
}
