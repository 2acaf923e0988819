/** R1: only zeros or the end of the file after the last whole group. That is the tail. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { describe, test, type TestContext } from 'node:test'
import { cutTo, mapSegment, putBytes } from '../support/corrupt.ts'
import { requireRecovered, SMALL } from '../support/recovery-checks.ts'
import { copyOf, numbered, TestStore } from '../support/test-store.ts'

/** What a process leaves that was killed after ten appends. */
async function killedStore(t: TestContext): Promise<string> {
  const store = await TestStore.open(t, { ...SMALL, logs: ['log'] })
  await store.appendEach('log', numbered(10))
  return store.killed(t)
}

function tailPath(dir: string): string {
  return `${dir}/0000000001.segment`
}

describe('R1', () => {
  test('zeros follow the last whole group: it is the tail', async (t) => {
    const dir = await killedStore(t)
    const { end, size } = mapSegment(tailPath(dir))
    assert.ok(size > end, 'there are zeros')
    const { store, labels, report } = await requireRecovered(t, dir)
    assert.deepEqual(labels, ['R1', 'R9'])
    const finding = report.findings.find(({ label }) => label === 'R1')
    assert.deepEqual(
      [finding?.file, finding?.position, report.droppedBytes],
      ['0000000001.segment', end, 0],
    )
    assert.deepEqual(await store.payloads('log'), numbered(10))
    assert.equal(await store.append('log', 'next'), 11)
  })

  test('the file ends at the last whole group: it is the tail', async (t) => {
    const dir = await killedStore(t)
    cutTo(tailPath(dir), mapSegment(tailPath(dir)).end)
    const { store, labels } = await requireRecovered(t, dir)
    assert.deepEqual(labels, ['R1', 'R9'])
    assert.deepEqual(await store.payloads('log'), numbered(10))
    assert.equal(await store.append('log', 'next'), 11)
  })

  test('more zeros than there were follow: it is the tail', async (t) => {
    const dir = await killedStore(t)
    putBytes(tailPath(dir), mapSegment(tailPath(dir)).size, new Uint8Array(100_000))
    const { store, labels } = await requireRecovered(t, dir)
    assert.deepEqual(labels, ['R1', 'R9'])
    assert.equal(await store.append('log', 'next'), 11)
  })

  test('the bytes past the durable mark are written again and synced, also here', async (t) => {
    const dir = await killedStore(t)
    const { groups, end } = mapSegment(tailPath(dir))
    const last = groups.at(-1)?.position ?? 0
    const store = await TestStore.open(t, { ...SMALL, dir })
    const steps = store.faults.trace.filter(({ path }) => path === tailPath(dir))
    const rewrite = steps.findIndex(
      ({ kind, position, length }) =>
        kind === 'write' && position === last && length === end - last,
    )
    assert.ok(rewrite >= 0, 'the last group is written in place')
    assert.ok(
      steps.slice(rewrite).some(({ kind }) => kind === 'sync'),
      'and synced',
    )
    const opened = steps.find(({ kind }) => kind === 'commit')
    assert.equal(opened, undefined, 'nothing is appended by an open')
  })

  test('header and snapshot are written again too when the mark is in an earlier segment', async (t) => {
    const store = await TestStore.open(t, { ...SMALL, logs: ['log'] })
    await store.append('log', new Uint8Array(66 * 1024))
    await store.whenQuiet()
    const hold = store.hold(({ path }) => path.endsWith('metadata.new'))
    await store.append('log', 'the only group of segment 2')
    const dir = await copyOf(t, store.dir)
    hold.release()
    const again = await TestStore.open(t, { ...SMALL, dir })
    const writes = again.faults.trace.filter(
      ({ kind, path }) => kind === 'write' && path.endsWith('2.segment'),
    )
    const { end } = mapSegment(`${dir}/0000000002.segment`)
    assert.ok(writes.some(({ position, length }) => position === 0 && length === end))
    assert.deepEqual(await again.payloads('log', 2), ['the only group of segment 2'])
  })

  test('nothing is found, and nothing written to a segment, after a clean close', async (t) => {
    const store = await TestStore.open(t, { ...SMALL, logs: ['log'] })
    await store.appendEach('log', numbered(3))
    await store.close()
    const before = fs.readFileSync(tailPath(store.dir))
    const again = await TestStore.open(t, { ...SMALL, dir: store.dir })
    assert.deepEqual(again.store.recovery.findings, [])
    assert.ok(
      !again.faults.trace.some(({ kind, path }) => kind === 'write' && path.endsWith('1.segment')),
    )
    assert.deepEqual(fs.readFileSync(tailPath(store.dir)), before)
  })

  test('the clean mark is cleared, durably, before the first write to a segment', async (t) => {
    const store = await TestStore.open(t, { ...SMALL, logs: ['log'] })
    await store.close()
    const again = await TestStore.open(t, { ...SMALL, dir: store.dir })
    const left = await again.killed(t)
    const { labels } = await requireRecovered(t, left)
    assert.deepEqual(labels, ['R1', 'R9'], 'it does not pass for clean')
  })
})
