/** R5: trailing segments without a whole group are emptied and reused, never removed. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { describe, test } from 'node:test'
import { cutTo, flipBit, mapSegment, putBytes, rewrite } from '../support/corrupt.ts'
import { Random } from '../support/random.ts'
import { requireRecovered, SMALL } from '../support/recovery-checks.ts'
import { killedStore, rollingStore, segmentAt } from '../support/stores.ts'
import { numbered, TestStore } from '../support/test-store.ts'

/** What may be left of a segment that was being rolled to. */
const LEFT: [string, (path: string) => void][] = [
  ['is 0 bytes long', (path) => cutTo(path, 0)],
  ['has a part of its header', (path) => cutTo(path, 60)],
  ['has only its header', (path) => cutTo(path, 88)],
  ['has header and snapshot, but no group', (path) => cutTo(path, mapSegment(path).start)],
  ['has a part of its group', (path) => cutTo(path, mapSegment(path).end - 40)],
  ['has a group whose frames are hit', (path) => flipBit(path, mapSegment(path).end - 20)],
  ['is noise', (path) => rewrite(path, (bytes) => new Random(5).bytes(bytes.length))],
]

describe('R5', () => {
  for (const [what, leave] of LEFT) {
    test(`Last segment 0 bytes, or only a header: one that ${what} is reused, and offsets go on`, async (t) => {
      const dir = await rollingStore(t)
      const path = segmentAt(dir, 2)
      leave(path)
      const { size, ino } = fs.statSync(path)
      const { store, report } = await requireRecovered(t, dir)
      const found = report.findings.find(({ label }) => label === 'R5')
      if (size > 0) assert.deepEqual([found?.file, found?.position], ['0000000002.segment', 0])
      assert.equal(fs.statSync(path).ino, ino, 'the same file')
      assert.equal(await store.append('log', 'next'), 4)
      assert.equal(mapSegment(path).header.segment, 2, 'it is the next segment again')
      assert.deepEqual(await store.payloads('log'), [...numbered(3), 'next'])
    })
  }

  test('it is emptied and synced before anything is appended to the segment before it', async (t) => {
    const dir = await rollingStore(t)
    flipBit(segmentAt(dir, 2), mapSegment(segmentAt(dir, 2)).end - 20)
    const store = await TestStore.open(t, { ...SMALL, dir })
    const opened = store.faults.trace.slice()
    const steps = opened.filter(({ path }) => path === segmentAt(dir, 2))
    const zeroed = steps.findIndex(({ kind }) => kind === 'write')
    assert.ok(steps.slice(zeroed).some(({ kind }) => kind === 'sync'))
    assert.ok(opened.every(({ kind }) => kind !== 'commit'))
    const bytes = fs.readFileSync(segmentAt(dir, 2))
    assert.ok(bytes.every((byte) => byte === 0))
  })

  test('two of them are emptied', async (t) => {
    const dir = await rollingStore(t)
    flipBit(segmentAt(dir, 2), mapSegment(segmentAt(dir, 2)).end - 20)
    fs.writeFileSync(segmentAt(dir, 3), new Random(1).bytes(500))
    const { store, report } = await requireRecovered(t, dir)
    const files = report.findings.filter(({ label }) => label === 'R5').map(({ file }) => file)
    assert.deepEqual(files, ['0000000002.segment', '0000000003.segment'])
    await store.append('fill', new Uint8Array(66 * 1024))
    await store.append('fill', new Uint8Array(66 * 1024))
    await store.append('log', 'next')
    const left = await store.killed(t)
    const again = await TestStore.open(t, { ...SMALL, dir: left })
    assert.deepEqual(await again.payloads('log'), [...numbered(3), 'next'])
  })

  test('the reserve, all zeros, is no finding, and keeps its bytes', async (t) => {
    const dir = await killedStore(t)
    const { size, ino } = fs.statSync(segmentAt(dir, 2))
    assert.ok(size > 0)
    const { labels } = await requireRecovered(t, dir)
    assert.deepEqual(labels, ['R1', 'R9'])
    const after = fs.statSync(segmentAt(dir, 2))
    assert.deepEqual([after.ino, after.size >= size], [ino, true])
  })

  test('noise behind the end of an older segment is cut, and read by nobody', async (t) => {
    const dir = await rollingStore(t)
    const { end } = mapSegment(segmentAt(dir, 1))
    putBytes(segmentAt(dir, 1), end, new Random(1).bytes(3000))
    const { store } = await requireRecovered(t, dir)
    assert.equal(fs.statSync(segmentAt(dir, 1)).size, end)
    assert.deepEqual(await store.payloads('log'), numbered(6))
  })

  test('a store whose only segment has no whole group yet goes on with it', async (t) => {
    const before = await TestStore.open(t, SMALL)
    const hold = before.hold(({ path }) => path.endsWith('metadata.new'))
    const created = before.store.createLogs(['log'])
    created.catch(() => undefined)
    await hold.reached
    const left = await requireHeld(before)
    hold.release()
    await created
    const dir = await before.killed(t)
    fs.copyFileSync(`${left}/metadata`, `${dir}/metadata`)
    fs.rmSync(segmentAt(dir, 2))
    flipBit(segmentAt(dir, 1), mapSegment(segmentAt(dir, 1)).end - 8)
    const { store, view } = await requireRecovered(t, dir)
    assert.deepEqual(view, [])
    await store.store.createLogs(['log'])
    assert.equal(await store.append('log', 'first'), 1)

    function requireHeld(held: TestStore): Promise<string> {
      return Promise.resolve(held.dir).then((path) => {
        const copy = fs.mkdtempSync(`${path}-held-`)
        t.after(() => fs.rmSync(copy, { recursive: true }))
        fs.cpSync(path, copy, { recursive: true })
        return copy
      })
    }
  })
})
