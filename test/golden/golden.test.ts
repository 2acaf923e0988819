/** Stores of format version 1, as they were written once, open and read as what they are. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { FORMAT_VERSION, METADATA_MAGIC, PREFIX_BYTES, SEGMENT_MAGIC } from '../../codec/format.ts'
import { writePrefix } from '../../codec/prefix.ts'
import { segmentOfName } from '../../engine/file-names.ts'
import { verify } from '../../engine/inspect.ts'
import { putBytes } from '../support/corrupt.ts'
import { requireRecovered, requireRefused, SMALL } from '../support/recovery-checks.ts'
import { viewOf, type LogView } from '../support/store-view.ts'
import { temporaryDirectory } from '../support/temp-dir.ts'
import { numbered, TestStore } from '../support/test-store.ts'
import {
  GOLDEN_STORES,
  PAYLOADS,
  restoreGolden,
  writeGolden,
  type GoldenStore,
} from './golden-stores.ts'

async function golden(t: TestContext, name: GoldenStore): Promise<string> {
  const dir = await temporaryDirectory(t)
  restoreGolden(name, dir)
  return dir
}

/** What is to be seen of a log, without its times. */
function plain({ logId, tail, trimPoint, seal, isSealed, records, losses }: LogView): unknown {
  const payloads = records.map(([, payload]) => payload)
  return { logId, tail, trimPoint, seal: isSealed ? (seal ?? null) : undefined, payloads, losses }
}

function log(logId: string, payloads: readonly unknown[], more: object = {}): unknown {
  const nothing = { tail: payloads.length + 1, trimPoint: 0, seal: undefined, losses: [] }
  return { logId, ...nothing, payloads, ...more }
}

const FILLED = new Uint8Array(66 * 1024)

const EXPECTED: Readonly<Record<GoldenStore, readonly unknown[]>> = {
  closed: [
    log('payloads', [...PAYLOADS, 'and here']),
    log('keyed', [['a'], ['a', 'b'], 'none']),
    log('end', ['record 3', 'record 4', 'record 5', 'of two'], {
      tail: 7,
      trimPoint: 2,
      seal: 'moved elsewhere',
    }),
    log('gone', ['a new incarnation']),
    log('ünïcode/../🦔', []),
  ],
  killed: [log('log', numbered(5))],
  segments: [
    log('log', numbered(8, 5), { tail: 13, trimPoint: 4 }),
    log('fill', [FILLED, FILLED], { tail: 4, trimPoint: 1 }),
  ],
  repaired: [
    log('log', [...numbered(5), ...numbered(6, 7)], { tail: 13, losses: [[6, 6]] }),
    log('fill', [FILLED, FILLED, FILLED]),
  ],
}

// Run with WRITE_GOLDEN=1 to keep the stores of a new format version.
test('golden stores are written', { skip: process.env['WRITE_GOLDEN'] !== '1' }, async (t) => {
  await writeGolden(t)
})

describe(`A store of format version ${FORMAT_VERSION}`, () => {
  for (const name of GOLDEN_STORES) {
    test(`${name}: opens with all that it holds, and goes on`, async (t) => {
      const dir = await golden(t, name)
      const { store, view } = await requireRecovered(t, dir)
      assert.deepEqual(view.map(plain), EXPECTED[name])
      for (const { logId, tail, isSealed } of view) {
        if (!isSealed) assert.equal(await store.append(logId, 'next'), tail)
      }
      await store.close()
      const again = await TestStore.open(t, { ...SMALL, dir })
      assert.deepEqual(again.store.recovery.findings, [])
      const grown = (await viewOf(again.store)).map(({ tail }) => tail)
      assert.deepEqual(
        grown,
        view.map(({ tail, isSealed }) => (isSealed ? tail : tail + 1)),
      )
    })

    test(`${name}: verify reads all of it`, async (t) => {
      const { ok, findings } = await verify(await golden(t, name))
      if (name === 'repaired') assert.ok(findings.every(({ label }) => label !== 'R6'))
      else assert.ok(ok, JSON.stringify(findings))
    })

    for (const [file, magic] of [
      ['metadata', METADATA_MAGIC],
      ['segment', SEGMENT_MAGIC],
    ] as const) {
      test(`${name}: a ${file} of version 2 is UNSUPPORTED_VERSION, and not a byte changes`, async (t) => {
        const dir = await golden(t, name)
        const prefix = new Uint8Array(PREFIX_BYTES)
        writePrefix(prefix, magic, 2)
        const segments = fs.readdirSync(dir).filter((found) => segmentOfName(found) !== undefined)
        for (const path of file === 'metadata' ? [file] : segments) {
          const changed = await golden(t, name)
          putBytes(join(changed, path), 0, prefix)
          await requireRefused(t, changed, 'UNSUPPORTED_VERSION')
        }
      })
    }
  }

  test('killed: the torn batch is gone, and reported', async (t) => {
    const { report, labels } = await requireRecovered(t, await golden(t, 'killed'))
    assert.deepEqual(labels, ['R3', 'R9'])
    assert.equal(report.droppedFrames, 3)
  })

  test('closed: nothing is found', async (t) => {
    const store = await TestStore.open(t, { ...SMALL, dir: await golden(t, 'closed') })
    assert.deepEqual(store.store.recovery.findings, [])
  })
})
