/** The examples in the docs of what users import: each compiles under our own rules, and runs. */
import assert from 'node:assert/strict'
import { readFileSync, readdirSync } from 'node:fs'
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, test } from 'node:test'
import { runInThisContext } from 'node:vm'
import ts from 'typescript'
import * as door from '../../index.ts'

const root = process.cwd()
const ROOMS = ['codec', 'engine', 'loglets']

interface Example {
  /** The file and line of the code. */
  readonly place: string
  readonly code: string
}

/** What an example may use without declaring it. */
const GIVEN = ['bifrost', 'order', 'console'] as const
const PREAMBLE = `
import { Bifrost, LogError, Lsn, repair, verify } from './index.ts'
declare const bifrost: Bifrost
declare const order: { id: number }
`

function examplesIn(file: string): Example[] {
  const text = readFileSync(path.join(root, file), 'utf8')
  const fences = text.matchAll(/@example\n[ *]*```ts\n([^]*?)\n[ *]*```/g)
  return Array.from(fences, ({ index, 1: block = '' }) => ({
    place: `${file}:${text.slice(0, index).split('\n').length}`,
    code: block.replaceAll(/^ *\* ?/gm, ''),
  }))
}

const files = ROOMS.flatMap((room) => readdirSync(path.join(root, room)).map((f) => `${room}/${f}`))
const examples = files.filter((file) => file.endsWith('.ts')).flatMap(examplesIn)

/** All examples as functions of one module that lies beside index.ts. */
function moduleOf(all: readonly Example[]): string {
  const functions = all.map(({ code }, i) => `export async function example${i}() {\n${code}\n}`)
  return `${PREAMBLE}\n${functions.join('\n')}`
}

function diagnosticsOf(source: string): string[] {
  const parsed: { readonly config?: unknown } = ts.readConfigFile(
    path.join(root, 'tsconfig.json'),
    (file) => readFileSync(file, 'utf8'),
  )
  const { options } = ts.parseJsonConfigFileContent(parsed.config, ts.sys, root)
  const name = path.join(root, 'doc-examples.ts')
  const host = ts.createCompilerHost(options)
  const readSource = host.getSourceFile.bind(host)
  host.getSourceFile = (file, languageVersion) =>
    file === name
      ? ts.createSourceFile(file, source, languageVersion)
      : readSource(file, languageVersion)
  const program = ts.createProgram([name], { ...options, noUnusedLocals: false }, host)
  const file = program.getSourceFile(name)
  const all = [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)]
  return all.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))
}

/** Runs an example with a store in memory at hand, and one on disk in ./data. */
async function run(code: string): Promise<unknown[][]> {
  const printed: unknown[][] = []
  const { outputText } = ts.transpileModule(code, {
    compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext },
  })
  const bifrost = await storeWithOrders({ provider: 'memory' })
  const names = [...GIVEN, ...Object.keys(door)]
  const log = (...values: unknown[]): number => printed.push(values)
  const call = runInThisContext(`(async (${names.join(', ')}) => { {\n${outputText}\n} })`) as (
    ...given: unknown[]
  ) => Promise<void>
  await call(bifrost, { id: 7 }, { log }, ...Object.values(door))
  await bifrost.close()
  return printed
}

async function storeWithOrders(options: door.BifrostOptions): Promise<door.Bifrost> {
  const bifrost = await door.Bifrost.open({ ...options, logs: ['orders', 'emails'] })
  await bifrost.appendBatch('orders', [{ id: -2 }, { id: -1 }])
  return bifrost
}

describe('the examples in the docs', () => {
  test('are there, for everything that has a verb', () => {
    const code = examples.map((example) => example.code).join('\n')
    for (const word of ['open', 'append', 'appendBatch', 'appendMany', 'appendStream', 'trim']) {
      assert.match(code, new RegExp(`\\.${word}\\(`))
    }
    for (const word of ['createReader', 'createAppender', 'LogError.is', 'verify(', 'repair(']) {
      assert.ok(code.includes(word), word)
    }
  })

  test('compile under the rules of this project', () => {
    assert.deepEqual(diagnosticsOf(moduleOf(examples)), [])
  })

  for (const { place, code } of examples) {
    test(`${place} runs, and prints what it says`, async (t) => {
      const directory = await mkdtemp(path.join(await realpath(tmpdir()), 'bifrost-docs-'))
      process.chdir(directory)
      t.after(async () => {
        process.chdir(root)
        await rm(directory, { recursive: true, force: true })
      })
      await (await storeWithOrders({ dir: './data' })).close()
      const printed = await run(code)
      const promised = code.match(/\/\/ true$/gm)?.length ?? 0
      const truths = printed.filter(([value]) => value === true)
      assert.ok(truths.length >= promised, `printed ${JSON.stringify(printed)}`)
    })
  }
})
