/** R7: metadata that is missing, damaged, old or of another history is rebuilt, and said to be. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { describe, test, type TestContext } from 'node:test'
import { cutTo, flipBit, mapSegment, zeroRange } from '../support/corrupt.ts'
import {
  metadataPath,
  requireRecovered,
  requireRefused,
  SMALL,
  type Recovered,
} from '../support/recovery-checks.ts'
import { closedStore, FILLING, killedStore, segmentAt } from '../support/stores.ts'
import { temporaryDirectory } from '../support/temp-dir.ts'
import { copyOf, numbered, TestStore } from '../support/test-store.ts'

/** A closed store with a trim and a seal, in which every log can be checked. */
async function richStore(t: TestContext): Promise<TestStore> {
  const store = await TestStore.open(t, { ...SMALL, logs: ['trimmed', 'sealed', 'fill'] })
  await store.appendEach('trimmed', numbered(10))
  await store.appendEach('sealed', numbered(3))
  await store.trim('trimmed', 4)
  await store.seal('sealed', 'moved')
  await store.append('fill', FILLING)
  await store.appendEach('trimmed', numbered(5, 11))
  await store.trim('trimmed', 6)
  await store.close()
  return store
}

/** That a rich store came back with everything, its metadata rebuilt. */
async function requireRebuilt(t: TestContext, dir: string, why: RegExp): Promise<Recovered> {
  const recovered = await requireRecovered(t, dir)
  const { store, report, view } = recovered
  const found = report.findings.find(({ label }) => label === 'R7')
  assert.deepEqual([found?.file, report.metadataRebuilt], ['metadata', true])
  assert.match(found?.message ?? '', why)
  assert.deepEqual(await store.payloads('trimmed', 7), numbered(9, 7), 'trims hold')
  assert.deepEqual((await store.readOnce('trimmed', 1)).outcome, { kind: 'trim-gap', until: 6 })
  assert.equal(view.find(({ logId }) => logId === 'sealed')?.seal, 'moved', 'seals hold')
  assert.equal(await store.append('trimmed', 'next'), 16, 'offsets go on')
  return recovered
}

const SPOILED: [string, (path: string) => void, RegExp][] = [
  ['gone', (path) => fs.rmSync(path), /missing/],
  ['0 bytes', (path) => cutTo(path, 0), /damaged/],
  ['cut in its prefix', (path) => cutTo(path, 10), /damaged/],
  ['cut in its body', (path) => cutTo(path, fs.statSync(path).size - 1), /damaged/],
  ['bit-flipped in its magic', (path) => flipBit(path, 2), /damaged/],
  ['bit-flipped in its version', (path) => flipBit(path, 8), /damaged/],
  ['bit-flipped in its body', (path) => flipBit(path, 40), /damaged/],
  ['zeros', (path) => zeroRange(path, 0, 10_000), /damaged/],
]

describe('R7', () => {
  for (const [what, spoil, why] of SPOILED) {
    test(`Metadata ${what}: rebuilt, said so; trims and seals still hold`, async (t) => {
      const dir = await copyOf(t, (await richStore(t)).dir)
      spoil(metadataPath(dir))
      await requireRebuilt(t, dir, why)
    })
  }

  test('Metadata from yesterday: one of a clean close, with groups behind it', async (t) => {
    const store = await richStore(t)
    const yesterday = fs.readFileSync(metadataPath(store.dir))
    const again = await TestStore.open(t, { ...SMALL, dir: store.dir })
    await again.append('fill', 'today')
    await again.close()
    const dir = await copyOf(t, store.dir)
    fs.writeFileSync(metadataPath(dir), yesterday)
    await requireRebuilt(t, dir, /old.*clean close/)
  })

  test('Metadata from yesterday: one that a group knows to be old', async (t) => {
    const store = await TestStore.open(t, { ...SMALL, logs: ['trimmed', 'sealed', 'fill'] })
    const yesterday = fs.readFileSync(metadataPath(store.dir))
    await store.close()
    const again = await TestStore.open(t, { ...SMALL, dir: store.dir })
    await again.append('fill', 'today')
    const dir = await again.killed(t)
    fs.writeFileSync(metadataPath(dir), yesterday)
    const { report } = await requireRecovered(t, dir)
    assert.match(report.findings[0]?.message ?? '', /old.*newer one/)
  })

  test('Metadata from yesterday: one that names no segment as new as the tail', async (t) => {
    const store = await TestStore.open(t, { ...SMALL, logs: ['log', 'fill'] })
    const old = fs.readFileSync(metadataPath(store.dir))
    for (let i = 0; i < 3; i++) await store.append('fill', FILLING)
    const dir = await store.killed(t)
    fs.writeFileSync(metadataPath(dir), old)
    const { report, store: again } = await requireRecovered(t, dir)
    assert.equal(report.metadataRebuilt, true)
    assert.equal(await again.append('log', 'next'), 1)
  })

  test('Metadata of another history: two copies written apart, then their metadata swapped', async (t) => {
    const before = await closedStore(t, 3)
    const [one, other] = [await copyOf(t, before), await copyOf(t, before)]
    const shorter = await TestStore.open(t, { ...SMALL, dir: other })
    await shorter.append('log', 'the other history')
    await shorter.close()
    const longer = await TestStore.open(t, { ...SMALL, dir: one })
    await longer.appendEach('log', ['one', 'two', 'three of this history'])
    await longer.close()
    const dir = await copyOf(t, one)
    fs.copyFileSync(metadataPath(other), metadataPath(dir))
    const { report, store } = await requireRecovered(t, dir)
    assert.match(report.findings[0]?.message ?? '', /another history/)
    assert.deepEqual(await store.payloads('log', 4), ['one', 'two', 'three of this history'])
  })

  test('Metadata of another history that vouches for more than there is: CORRUPT', async (t) => {
    const before = await closedStore(t, 3)
    const [one, other] = [await copyOf(t, before), await copyOf(t, before)]
    const longer = await TestStore.open(t, { ...SMALL, dir: other })
    await longer.appendEach('log', numbered(10))
    await longer.close()
    fs.copyFileSync(metadataPath(other), metadataPath(one))
    const error = await requireRefused(t, one, 'CORRUPT')
    assert.equal(error.label, 'R4')
    assert.deepEqual(error.logs, [{ logId: 'log', from: 4, to: 13 }])
  })

  test('Metadata that is old is no reason to take a torn tail for damage', async (t) => {
    const dir = await killedStore(t, 5)
    const path = segmentAt(dir, 1)
    flipBit(path, mapSegment(path).end - 9)
    fs.rmSync(metadataPath(dir))
    const { store } = await requireRecovered(t, dir)
    assert.deepEqual(await store.payloads('log'), numbered(4))
  })

  test('metadata that was rebuilt is not rebuilt again at the next open', async (t) => {
    const dir = await killedStore(t, 5)
    fs.rmSync(metadataPath(dir))
    const first = await TestStore.open(t, { ...SMALL, dir })
    const held = first.hold(({ path }) => path.endsWith('2.segment'))
    const left = await copyOf(t, dir)
    held.release()
    const again = await TestStore.open(t, { ...SMALL, dir: left })
    assert.equal(again.store.recovery.metadataRebuilt, false)
  })

  test('a new store whose first metadata is not covered yet is no other history', async (t) => {
    const before = await TestStore.open(t, SMALL)
    let writes = 0
    const hold = before.hold(({ kind, path }) => {
      return kind === 'rename' && path.endsWith('metadata.new') && ++writes > 1
    })
    await before.store.createLogs(['log'])
    const dir = await copyOf(t, before.dir)
    hold.release()
    const { labels, store } = await requireRecovered(t, dir)
    assert.deepEqual(labels, ['R1', 'R9'])
    assert.equal(await store.append('log', 'first'), 1)
  })

  test('a new store is made in a directory without any file, and beside other files', async (t) => {
    const dir = await temporaryDirectory(t)
    fs.writeFileSync(`${dir}/README`, 'somebody else keeps this here')
    const store = await TestStore.open(t, { ...SMALL, dir, logs: ['log'] })
    assert.deepEqual(store.store.recovery.findings, [])
    assert.equal(await store.append('log', 'first'), 1)
    assert.equal(fs.readFileSync(`${dir}/README`, 'utf8'), 'somebody else keeps this here')
  })

  for (const size of [0, 1, 20_000]) {
    test(`a new store is made beside a segment 1 of ${size} zeros, the only one`, async (t) => {
      const dir = await temporaryDirectory(t)
      fs.writeFileSync(segmentAt(dir, 1), new Uint8Array(size))
      const { store } = await requireRecovered(t, dir)
      await store.store.createLogs(['log'])
      assert.equal(await store.append('log', 'first'), 1)
    })
  }

  const NEVER: [string, (dir: string) => void][] = [
    ['segment 1 is zeros and segment 2 is there', (dir) => fs.writeFileSync(segmentAt(dir, 2), '')],
    ['segment 1 is zeros but for one byte', (dir) => flipBit(segmentAt(dir, 1), 5000)],
    [
      'the only segment is not segment 1',
      (dir) => fs.renameSync(segmentAt(dir, 1), segmentAt(dir, 2)),
    ],
  ]
  for (const [what, change] of NEVER) {
    test(`a new store is never made without metadata when ${what}`, async (t) => {
      const dir = await temporaryDirectory(t)
      fs.writeFileSync(segmentAt(dir, 1), new Uint8Array(20_000))
      fs.writeFileSync(`${dir}/lock`, '')
      change(dir)
      const { label } = await requireRefused(t, dir, 'CORRUPT')
      assert.equal(label, 'R7')
    })
  }

  test('a new store is never made when no group is whole and the metadata is gone', async (t) => {
    const dir = await killedStore(t, 0)
    fs.rmSync(metadataPath(dir))
    fs.rmSync(segmentAt(dir, 2))
    flipBit(segmentAt(dir, 1), 90)
    await requireRefused(t, dir, 'CORRUPT')
  })

  test('a new store is never made when the metadata is damaged and no segment is there', async (t) => {
    const dir = await killedStore(t, 0)
    flipBit(metadataPath(dir), 40)
    fs.rmSync(segmentAt(dir, 1))
    fs.rmSync(segmentAt(dir, 2))
    await requireRefused(t, dir, 'CORRUPT')
  })
})
