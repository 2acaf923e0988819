/** `bifrost verify` and `bifrost repair`: for the person whose disk was damaged. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { Bifrost, type Finding, type LogRecord } from '../../index.ts'
import {
  assertUntouched,
  cutTo,
  findRecord,
  flipBit,
  lastByteOf,
  pictureOf,
  segmentFiles,
} from '../support/corrupt.ts'
import { bifrostCommand } from './cli-process.ts'
import { closedStore, liveStore, order, RECORDS } from './cli-stores.ts'

/** The loglet of `orders`, the first log that was made. */
const ORDERS = 1
const LOST = 100

interface Verified {
  readonly ok: boolean
  readonly groups: number
  readonly frames: number
  readonly bytes: number
  readonly findings: readonly Finding[]
}

/** A store of which record 100 of `orders` was hit by a flipped bit, and where. */
async function damagedStore(
  t: TestContext,
): Promise<{ readonly dir: string; readonly file: string; readonly position: number }> {
  const dir = await closedStore(t)
  const { path, file, frame } = findRecord(dir, ORDERS, LOST)
  flipBit(path, lastByteOf(frame))
  return { dir, file, position: frame.position }
}

test('bifrost verify exits with 0 for a sound store, and changes nothing', async (t) => {
  const dir = await closedStore(t)
  const before = pictureOf(dir)
  const { code, stdout, stderr } = await bifrostCommand('verify', dir)
  assert.deepEqual([code, stderr], [0, ''])
  assert.match(stdout, /^ok: \d+ groups, \d+ frames, \d+ bytes\n$/)
  const json = await bifrostCommand('verify', dir, '--json')
  const { ok, frames, findings } = JSON.parse(json.stdout) as Verified
  assert.deepEqual([json.code, ok, findings], [0, true, []])
  assert.ok(frames > RECORDS)
  assertUntouched(dir, before)
})

test('bifrost verify names label, file, position, log and LSN of damage, and exits with 1', async (t) => {
  const { dir, file, position } = await damagedStore(t)
  const before = pictureOf(dir)
  const { code, stdout, stderr } = await bifrostCommand('verify', dir)
  assert.deepEqual([code, stderr], [1, ''])
  const [finding, verdict] = stdout.split('\n')
  assert.equal(
    finding,
    `R4 ${file}:${position} a frame doesn't check; at stake: "orders" ${String(LOST)}`,
  )
  assert.match(verdict ?? '', /^DAMAGED: \d+ groups, \d+ frames, \d+ bytes$/)
  const json = await bifrostCommand('verify', dir, '--json')
  const { ok, findings } = JSON.parse(json.stdout) as Verified
  assert.deepEqual([json.code, ok], [1, false])
  assert.deepEqual(findings, [
    {
      label: 'R4',
      file,
      position,
      message: "a frame doesn't check",
      logs: [{ logId: 'orders', from: LOST, to: LOST }],
    },
  ])
  assertUntouched(dir, before)
})

test('bifrost verify names each of several damages', async (t) => {
  const { dir } = await damagedStore(t)
  const last = findRecord(dir, ORDERS, RECORDS)
  flipBit(last.path, lastByteOf(last.frame))
  flipBit(join(dir, 'metadata'), 20)
  const { code, stdout } = await bifrostCommand('verify', dir)
  assert.equal(code, 1)
  assert.match(stdout, /^R4 .*at stake: "orders" 100$/m)
  assert.match(stdout, new RegExp(`^R\\d ${last.file}:${last.frame.position} `, 'm'))
  assert.match(stdout, /^R7 metadata:0 /m)
})

test('bifrost verify names a segment that is missing', async (t) => {
  const dir = await closedStore(t)
  const [, second = ''] = segmentFiles(dir)
  unlinkSync(join(dir, second))
  const { code, stdout } = await bifrostCommand('verify', dir)
  assert.equal(code, 1)
  assert.match(stdout, new RegExp(`^R6 ${second}:0 .*at stake: "orders" \\d+ to \\d+`, 'm'))
})

test('bifrost verify reports a torn tail, which is no damage', async (t) => {
  const { bifrost, dir } = await liveStore(t)
  await bifrost.close()
  unlinkSync(join(dir, 'metadata'))
  const last = findRecord(dir, ORDERS, 100)
  cutTo(last.path, lastByteOf(last.frame))
  const before = pictureOf(dir)
  const { code, stdout } = await bifrostCommand('verify', dir, '--json')
  const { findings } = JSON.parse(stdout) as Verified
  assert.ok(findings.some(({ label, file }) => label === 'R3' && file === last.file))
  assert.deepEqual(new Set(findings.map(({ label }) => label)), new Set(['R3', 'R7']))
  assert.equal(code, 1, 'the metadata is missing')
  assertUntouched(dir, before)
})

test('bifrost verify finds a store sound while another process is writing', async (t) => {
  const { bifrost, dir } = await liveStore(t)
  const over = new AbortController()
  const writing = (async () => {
    for (let id = 101; !over.signal.aborted; id++) {
      await Promise.all(Array.from({ length: 4 }, () => bifrost.append('orders', order(id))))
    }
  })()
  const verified = await bifrostCommand('verify', dir)
  over.abort()
  await writing
  assert.match(verified.stdout, /^ok: /)
  assert.deepEqual([verified.code, verified.stderr], [0, ''])
})

test('bifrost repair refuses without --accept-data-loss, and changes nothing', async (t) => {
  const { dir } = await damagedStore(t)
  const before = pictureOf(dir)
  const { code, stdout, stderr } = await bifrostCommand('repair', dir)
  assert.deepEqual([code, stdout], [2, ''])
  assert.match(stderr, /say --accept-data-loss/)
  assertUntouched(dir, before)
  assert.ok(!existsSync(`${dir}.quarantine`))
})

test('bifrost repair refuses while the store is open', async (t) => {
  const { bifrost, dir } = await liveStore(t)
  const { code, stderr } = await bifrostCommand('repair', dir, '--accept-data-loss')
  assert.equal(code, 1)
  assert.match(stderr, /^bifrost: LOCKED: /)
  assert.equal(await bifrost.append('orders', order(101)), 101)
})

test('bifrost repair says so, and changes no record, when there is nothing to repair', async (t) => {
  const dir = await closedStore(t)
  const before = await bifrostCommand('dump', dir)
  const repaired = await bifrostCommand('repair', dir, '--accept-data-loss')
  assert.deepEqual(repaired, { code: 0, stdout: 'nothing to repair\n', stderr: '' })
  assert.deepEqual(await bifrostCommand('dump', dir), before)
})

test('bifrost repair sets the damage aside; then all else is there, and appends go on', async (t) => {
  const { dir, file, position } = await damagedStore(t)
  const damaged = readFileSync(join(dir, file))
  const { code, stdout, stderr } = await bifrostCommand('repair', dir, '--accept-data-loss')
  assert.deepEqual([code, stderr], [0, ''])
  assert.match(stdout, /^R4 .*at stake: "orders" 100$/m)
  assert.match(stdout, /\nrepaired\n$/)
  const [, aside = ''] = /^set aside: (.*)$/m.exec(stdout) ?? []
  const [, from, to] = /\.(\d+)-(\d+)$/.exec(aside) ?? []
  assert.ok(Number(from) <= position && position < Number(to), aside)
  assert.ok(aside.startsWith(`${dir}.quarantine/${file}.`))
  assert.deepEqual(readFileSync(aside), damaged.subarray(Number(from), Number(to)))
  assert.equal((await bifrostCommand('verify', dir)).code, 0)
  await assertOneLoss(t, dir)
})

/** Everything is there but the one record, for which there is a gap. */
async function assertOneLoss(t: TestContext, dir: string): Promise<void> {
  const bifrost = await Bifrost.open({ dir })
  t.after(() => bifrost.close())
  assert.equal(await bifrost.append('orders', order(RECORDS + 1)), RECORDS + 1)
  const records: LogRecord[] = []
  for await (const record of bifrost.createReader('orders', { after: 10, follow: false })) {
    records.push(record)
  }
  const gaps = records.filter(({ kind }) => kind !== 'data')
  assert.deepEqual(gaps, [{ kind: 'data-loss-gap', lsn: LOST, until: LOST }])
  assert.equal(records.length, RECORDS + 1 - 10)
  records.forEach((record, i) => {
    assert.equal(record.lsn, 11 + i)
    if (record.kind === 'data') assert.deepEqual(record.payload, order(record.lsn))
  })
}
