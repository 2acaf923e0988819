/**
 * Stores as they were written once, kept as text beside this file: every later version must open
 * them. `writeGolden` makes them; it is run once for a format version, never again.
 */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { repair } from '../../engine/repair.ts'
import { findRecord, flipBit } from '../support/corrupt.ts'
import { inRepository } from '../support/repository.ts'
import { copyOf, numbered, TestStore, type TestStoreOptions } from '../support/test-store.ts'

const LINE_BYTES = 32
const HOME = inRepository('test/golden/v1')
const OPTIONS: TestStoreOptions = {
  segmentSizeBytes: 64 * 1024,
  reserveBytes: 4096,
  makeStoreId: () => Uint8Array.from({ length: 16 }, (_, i) => 0xa0 + i),
}

/** One value of every kind that a payload may be made of. */
export const PAYLOADS: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  127,
  128,
  65_536,
  2 ** 40,
  -(2 ** 40),
  0.5,
  NaN,
  -0,
  2n ** 63n,
  -(2n ** 63n),
  '',
  'text',
  'é🦔'.repeat(100),
  new Uint8Array([0, 1, 255]),
  new Uint8Array(300).fill(7),
  new Date(0),
  new Date(Date.UTC(2026, 0, 5, 1, 2, 3, 4)),
  [],
  [1, [2, [3]]],
  {},
  { id: 7, name: 'an order', lines: [{ sku: 'a', count: 2 }], paid: true, note: null },
]

/** The names of the stores that are kept. */
export const GOLDEN_STORES = ['closed', 'killed', 'segments', 'repaired'] as const
export type GoldenStore = (typeof GOLDEN_STORES)[number]

const MAKERS: Readonly<Record<GoldenStore, (t: TestContext) => Promise<string>>> = {
  closed: async (t) => {
    const store = await TestStore.open(t, {
      ...OPTIONS,
      logs: ['payloads', 'keyed', 'gone', 'end'],
    })
    await store.appendBatch('payloads', PAYLOADS)
    await appendKeyed(store)
    await store.appendEach('gone', numbered(3))
    await store.appendEach('end', numbered(5))
    await store.appendMany([
      ['end', 'of two'],
      ['payloads', 'and here'],
    ])
    await store.trim('end', 2)
    await store.seal('end', 'moved elsewhere')
    await store.store.deleteLog('gone')
    await store.store.createLogs(['gone', 'ünïcode/../🦔'])
    await store.append('gone', 'a new incarnation')
    await store.close()
    return store.dir
  },
  killed: async (t) => {
    const store = await TestStore.open(t, { ...OPTIONS, logs: ['log'] })
    await store.appendEach('log', numbered(5))
    await store.appendBatch('log', numbered(3, 6))
    const dir = await store.killed(t)
    flipBit(findRecord(dir, 1, 7).path, findRecord(dir, 1, 7).frame.bodyEnd - 1)
    return dir
  },
  segments: async (t) => {
    const store = await manySegments(t)
    await store.trim('fill', 1)
    await store.trim('log', 4)
    await store.whenQuiet()
    await store.close()
    return store.dir
  },
  repaired: async (t) => {
    const store = await manySegments(t)
    await store.close()
    const dir = await copyOf(t, store.dir)
    const { path, frame } = findRecord(dir, 1, 6)
    flipBit(path, frame.bodyEnd - 1)
    await repair(dir, { acceptDataLoss: true })
    return dir
  },
}

async function appendKeyed(store: TestStore): Promise<void> {
  for (const keys of [['a'], ['a', 'b'], undefined]) {
    await new Promise((committed, failed) => {
      store.store.append(store.cell('keyed'), keys ?? 'none', keys, undefined, {
        committed,
        failed,
      })
    })
  }
}

/** Three records of `log` in each of four segments. */
async function manySegments(t: TestContext): Promise<TestStore> {
  const store = await TestStore.open(t, { ...OPTIONS, logs: ['log', 'fill'] })
  for (let segment = 0; segment < 4; segment++) {
    await store.appendEach('log', numbered(3, 3 * segment + 1))
    if (segment < 3) await store.append('fill', new Uint8Array(66 * 1024))
  }
  await store.whenQuiet()
  return store
}

/** Makes the stores, and keeps them. */
export async function writeGolden(t: TestContext): Promise<void> {
  fs.mkdirSync(HOME, { recursive: true })
  for (const name of GOLDEN_STORES) {
    const dir = await MAKERS[name](t)
    fs.writeFileSync(join(HOME, `${name}.txt`), textOf(dir))
  }
}

/** A directory as text: each file's name and size, and the lines of it that are not all zeros. */
function textOf(dir: string): string {
  const names = fs.readdirSync(dir).sort()
  return names
    .filter((name) => fs.statSync(join(dir, name)).isFile())
    .map(fileText)
    .join('\n')

  function fileText(name: string): string {
    const bytes = fs.readFileSync(join(dir, name))
    const lines = [`file ${name} ${bytes.length}`]
    for (let at = 0; at < bytes.length; at += LINE_BYTES) {
      const part = bytes.subarray(at, at + LINE_BYTES)
      if (part.some((byte) => byte !== 0)) lines.push(`${at} ${part.toString('hex')}`)
    }
    return `${lines.join('\n')}\n`
  }
}

/** Puts a golden store into an empty directory. */
export function restoreGolden(name: GoldenStore, dir: string): void {
  let bytes = Buffer.alloc(0)
  let path: string | undefined
  const put = (): void => {
    if (path !== undefined) fs.writeFileSync(path, bytes, { mode: 0o600 })
  }
  for (const line of fs.readFileSync(join(HOME, `${name}.txt`), 'utf8').split('\n')) {
    const [first = '', second = '', third = ''] = line.split(' ')
    if (first === 'file') {
      put()
      path = join(dir, second)
      bytes = Buffer.alloc(Number(third))
    } else if (first !== '') {
      assert.equal(bytes.write(second, Number(first), 'hex'), second.length / 2)
    }
  }
  put()
}
