/** R6: a live segment is missing, or is another store's. CORRUPT, and what is dead is never read. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { describe, test, type TestContext } from 'node:test'
import type { LogErrorOf } from '../../codec/errors.ts'
import { cutTo, flipBit, mapSegment } from '../support/corrupt.ts'
import { requireRecovered, requireRefused, SMALL } from '../support/recovery-checks.ts'
import { FILLING, rollingStore, segmentAt, segmentedStore } from '../support/stores.ts'
import { copyOf, numbered, TestStore } from '../support/test-store.ts'

async function refused(t: TestContext, dir: string): Promise<LogErrorOf<'CORRUPT'>> {
  const error = await requireRefused(t, dir, 'CORRUPT')
  assert.equal(error.label, 'R6')
  return error
}

/** A store of four segments with ten records of `log` in each, closed. */
async function fourSegments(t: TestContext): Promise<string> {
  const store = await segmentedStore(t, 4)
  await store.close()
  return copyOf(t, store.dir)
}

/** What an error says of one log. */
function rangeOf({ logs }: LogErrorOf<'CORRUPT'>, logId: string): unknown {
  const range = logs.find((candidate) => candidate.logId === logId)
  return range === undefined ? undefined : [range.from, range.to]
}

describe('R6', () => {
  for (const segment of [1, 2, 3]) {
    test(`Segment file missing in the middle: ${segment} of 4, and the range is named`, async (t) => {
      const dir = await fourSegments(t)
      fs.rmSync(segmentAt(dir, segment))
      const error = await refused(t, dir)
      assert.deepEqual([error.file, error.position], [`000000000${segment}.segment`, 0])
      const from = 10 * (segment - 1) + 1
      assert.deepEqual(rangeOf(error, 'log'), [from, from + 9])
      assert.deepEqual(rangeOf(error, 'fill'), [segment, segment])
    })
  }

  test('Segment file missing in the middle: the last one, with the tail', async (t) => {
    const dir = await fourSegments(t)
    fs.rmSync(segmentAt(dir, 4))
    const error = await refused(t, dir)
    assert.equal(error.file, '0000000004.segment')
    assert.deepEqual(rangeOf(error, 'log'), [31, 40])
  })

  test('Segment file missing in the middle: the last one and the reserve', async (t) => {
    const dir = await fourSegments(t)
    fs.rmSync(segmentAt(dir, 4))
    fs.rmSync(segmentAt(dir, 5))
    assert.equal((await refused(t, dir)).file, '0000000004.segment')
  })

  test('Segment file missing in the middle: the last one, that only its name vouches for', async (t) => {
    const dir = await rollingStore(t)
    fs.rmSync(segmentAt(dir, 2))
    const error = await refused(t, dir)
    assert.equal(error.file, '0000000002.segment')
  })

  test('Segment file missing in the middle: the reserve, which the metadata names', async (t) => {
    const dir = await fourSegments(t)
    fs.rmSync(segmentAt(dir, 5))
    assert.equal((await refused(t, dir)).file, '0000000005.segment')
  })

  test('Segment file missing in the middle: all of them', async (t) => {
    const dir = await fourSegments(t)
    for (const segment of [1, 2, 3, 4, 5]) fs.rmSync(segmentAt(dir, segment))
    await refused(t, dir)
  })

  test('Segment file missing in the middle: without metadata too', async (t) => {
    const dir = await fourSegments(t)
    fs.rmSync(`${dir}/metadata`)
    fs.rmSync(segmentAt(dir, 2))
    assert.deepEqual(rangeOf(await refused(t, dir), 'log'), [11, 20])
  })

  for (const segment of [1, 3, 4, 5]) {
    test(`segment ${segment} of 4 is another store's`, async (t) => {
      const dir = await fourSegments(t)
      const other = await segmentedStore(t, 6)
      fs.copyFileSync(segmentAt(other.dir, segment), segmentAt(dir, segment))
      assert.equal((await refused(t, dir)).file, `000000000${segment}.segment`)
    })

    test(`segment ${segment} of 4 is another store's, and the metadata is gone`, async (t) => {
      const dir = await fourSegments(t)
      fs.rmSync(`${dir}/metadata`)
      const other = await segmentedStore(t, 6)
      fs.copyFileSync(segmentAt(other.dir, segment), segmentAt(dir, segment))
      await refused(t, dir)
    })
  }

  test("a torn segment behind the tail is another store's, and the metadata is gone", async (t) => {
    const dir = await fourSegments(t)
    fs.rmSync(`${dir}/metadata`)
    const other = await segmentedStore(t, 6)
    const path = segmentAt(dir, 5)
    fs.copyFileSync(segmentAt(other.dir, 5), path)
    cutTo(path, mapSegment(path).start)
    assert.equal((await refused(t, dir)).file, '0000000005.segment')
  })

  for (const [from, to] of [
    [1, 2],
    [4, 3],
    [3, 4],
    [2, 5],
  ] as const) {
    test(`segment ${to} of 4 is a copy of segment ${from}`, async (t) => {
      const dir = await fourSegments(t)
      fs.copyFileSync(segmentAt(dir, from), segmentAt(dir, to))
      assert.equal((await refused(t, dir)).file, `000000000${to}.segment`)
    })
  }

  test('cp -r of a store while closed: the copy is a good backup', async (t) => {
    const dir = await fourSegments(t)
    const copy = await copyOf(t, dir)
    for (const path of [dir, copy]) {
      const store = await TestStore.open(t, { ...SMALL, dir: path })
      assert.deepEqual(store.store.recovery.findings, [])
      assert.deepEqual(await store.payloads('log'), numbered(40))
    }
  })

  for (const segment of [2, 3, 4]) {
    test(`two copies written apart, then their segments mixed: segment ${segment} of 4`, async (t) => {
      const before = await TestStore.open(t, { ...SMALL, logs: ['log', 'fill'] })
      await before.appendEach('log', numbered(3))
      await before.append('fill', FILLING)
      await before.close()
      const dirs = [await copyOf(t, before.dir), await copyOf(t, before.dir)] as const
      for (const [i, dir] of dirs.entries()) {
        const store = await TestStore.open(t, { ...SMALL, dir })
        for (let n = 0; n < 3; n++) {
          await store.append('log', `copy ${i}, record ${n}`)
          await store.append('fill', FILLING)
        }
        await store.close()
      }
      fs.copyFileSync(segmentAt(dirs[1], segment), segmentAt(dirs[0], segment))
      const error = await requireRefused(t, dirs[0], 'CORRUPT')
      assert.ok(['R4', 'R6'].includes(error.label), error.message)
    })
  }

  test('a file that the state calls dead is a leftover: never read, and unlinked', async (t) => {
    const store = await segmentedStore(t, 4)
    const dead = fs.readFileSync(segmentAt(store.dir, 1))
    await store.trim('log', 20)
    await store.trim('fill', 2)
    await store.whenQuiet()
    await store.close()
    for (const bytes of [dead, dead.subarray(0, 100), Buffer.from('not a segment at all')]) {
      const dir = await copyOf(t, store.dir)
      fs.writeFileSync(segmentAt(dir, 1), bytes)
      fs.writeFileSync(segmentAt(dir, 2), bytes)
      const again = await TestStore.open(t, { ...SMALL, dir })
      assert.deepEqual(await again.payloads('log', 21), numbered(20, 21))
      assert.ok(!fs.existsSync(segmentAt(dir, 1)) && !fs.existsSync(segmentAt(dir, 2)))
      assert.ok(
        !again.faults.trace.some(({ kind, path }) => kind === 'read' && /1.segment$/.test(path)),
      )
    }
  })

  test('a leftover is unlinked only after the tail was settled', async (t) => {
    const store = await segmentedStore(t, 4)
    await store.trim('log', 20)
    const hold = store.hold(({ kind, path }) => kind === 'unlink' && path.endsWith('.segment'))
    await store.trim('fill', 2)
    await hold.reached
    const dir = await copyOf(t, store.dir)
    hold.release()
    const { store: again } = await requireRecovered(t, dir)
    const steps = again.faults.trace
    const unlink = steps.findIndex(
      ({ kind, path }) => kind === 'unlink' && path.endsWith('1.segment'),
    )
    const sync = steps.findIndex(({ kind, path }) => kind === 'sync' && path.endsWith('4.segment'))
    assert.ok(sync >= 0 && sync < unlink, `sync ${sync}, unlink ${unlink}`)
    assert.ok(steps.slice(unlink).some(({ kind }) => kind === 'syncDirectory'))
  })

  test('damage is reported before a missing segment is', async (t) => {
    const dir = await fourSegments(t)
    flipBit(segmentAt(dir, 4), mapSegment(segmentAt(dir, 4)).start + 60)
    fs.rmSync(segmentAt(dir, 2))
    const error = await requireRefused(t, dir, 'CORRUPT')
    assert.equal(error.label, 'R4')
  })
})
