/** Damage at random places, as verify reports it and as repair mends it, through the public door. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { basename, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { Bifrost, repair, verify, type Finding, type LogRecord } from '../../index.ts'
import { cutTo, flipBit, zeroRange } from '../support/corrupt.ts'
import { rejection } from '../support/expect-error.ts'
import { Random } from '../support/random.ts'
import { temporaryDirectory } from '../support/temp-dir.ts'

const LOGS = ['a', 'b', 'c'] as const
const ROUNDS = 200
const TRIMMED = 50

type LogName = (typeof LOGS)[number]

function payloadOf(logId: LogName, lsn: number): unknown {
  return logId === 'c' ? lsn : { logId, lsn, text: logId.repeat(logId === 'a' ? 200 : 150) }
}

/** A closed store of three logs in a few small segments, groups of three records each. */
async function sampleStore(t: TestContext): Promise<string> {
  const dir = join(await temporaryDirectory(t), 'store')
  const bifrost = await Bifrost.open({ dir, logs: LOGS, segmentSizeBytes: 64 * 1024 })
  for (let lsn = 1; lsn <= ROUNDS; lsn++) {
    await Promise.all(LOGS.map((logId) => bifrost.append(logId, payloadOf(logId, lsn))))
  }
  await bifrost.trim('c', TRIMMED)
  await bifrost.close()
  return dir
}

/** The lost LSNs of a log, as ranges. */
type Losses = Record<string, string[]>

/** Reads everything, checks every payload, and returns the gaps. */
async function readAll(dir: string): Promise<Losses> {
  const bifrost = await Bifrost.open({ dir })
  const losses: Losses = {}
  for (const logId of LOGS) {
    const lost: string[] = []
    let next = 1
    const reader = bifrost.createReader(logId, { follow: false })
    for await (const record of reader as AsyncIterable<LogRecord>) {
      assert.equal(record.lsn, next)
      next = record.kind === 'data' ? next + 1 : record.until + 1
      if (record.kind === 'data') assert.deepEqual(record.payload, payloadOf(logId, record.lsn))
      if (record.kind === 'data-loss-gap') lost.push(`${record.lsn}-${record.until}`)
    }
    assert.equal(next, ROUNDS + 1, `${logId} ends where it did`)
    assert.equal(await bifrost.append(logId, 'after'), ROUNDS + 1)
    if (lost.length > 0) losses[logId] = merged(lost)
  }
  await bifrost.close()
  return losses
}

function lossesIn(findings: readonly Finding[]): Losses {
  const losses: Losses = {}
  for (const { logs } of findings) {
    for (const { logId, from, to } of logs) (losses[logId] ??= []).push(`${from}-${to}`)
  }
  for (const logId of Object.keys(losses)) losses[logId] = merged(losses[logId] ?? [])
  return losses
}

/** Ranges in order, neighbours joined. */
function merged(ranges: readonly string[]): string[] {
  const joined: [number, number][] = []
  const sorted = ranges.map((range) => range.split('-').map(Number) as [number, number])
  for (const [from, to] of sorted.sort((x, y) => x[0] - y[0])) {
    const last = joined.at(-1)
    if (last !== undefined && last[1] + 1 >= from) last[1] = Math.max(last[1], to)
    else joined.push([from, to])
  }
  return joined.map(([from, to]) => `${from}-${to}`)
}

function segmentsOf(dir: string): string[] {
  const names = fs.readdirSync(dir).filter((name) => name.endsWith('.segment'))
  return names.sort().map((name) => join(dir, name))
}

type Damage = (path: string, random: Random) => string

const DAMAGES: Readonly<Record<string, Damage>> = {
  'a flipped bit': (path, random) => {
    const at = random.below(fs.statSync(path).size)
    flipBit(path, at, random.below(8))
    return `bit at ${at}`
  },
  'a lost sector': (path, random) => {
    const at = random.below(Math.floor(fs.statSync(path).size / 512)) * 512
    zeroRange(path, at, at + 512)
    return `sector at ${at}`
  },
  'a lost page': (path, random) => {
    const at = random.below(Math.ceil(fs.statSync(path).size / 4096)) * 4096
    zeroRange(path, at, at + 4096)
    return `page at ${at}`
  },
  'a cut file': (path, random) => {
    const size = random.below(fs.statSync(path).size)
    cutTo(path, size)
    return `cut to ${size}`
  },
  'a missing file': (path) => {
    fs.unlinkSync(path)
    return 'gone'
  },
}

for (const [name, damage] of Object.entries(DAMAGES)) {
  test(`repair() keeps all that checks and names all that is lost, with ${name}`, async (t) => {
    const sample = await sampleStore(t)
    const healthy = await verify(sample)
    assert.deepEqual(healthy.findings, [])
    assert.equal(healthy.ok, true)
    for (let seed = 1; seed <= 15; seed++) {
      const dir = `${sample}-${seed}`
      fs.cpSync(sample, dir, { recursive: true })
      const random = new Random(seed)
      const path = random.pick(segmentsOf(dir).slice(0, -1))
      const what = damage(path, random)
      await mendAndCheck(dir, `seed ${seed}: ${basename(path)}, ${what}`)
    }
  })
}

async function mendAndCheck(dir: string, what: string): Promise<void> {
  const before = await verify(dir)
  if (before.ok) return
  const expected = lossesIn(before.findings)
  const { findings, quarantined } = await repair(dir, { acceptDataLoss: true })
  assert.deepEqual(lossesIn(findings), expected, what)
  for (const kept of quarantined) assert.ok(fs.existsSync(kept), what)
  const after = await verify(dir)
  assert.deepEqual(after.findings, [], what)
  const again = await repair(dir, { acceptDataLoss: true })
  assert.deepEqual(again, { findings: [], quarantined: [] }, what)
  const lost = await readAll(dir)
  for (const [logId, ranges] of Object.entries(lost)) {
    assert.deepEqual(ranges, expected[logId], `${what}: ${logId}`)
  }
  for (const logId of Object.keys(expected)) {
    assert.ok(logId in lost, `${what}: ${logId} was named, and is whole`)
  }
}

test('repair() mends a damaged group header without a loss', async (t) => {
  const dir = await sampleStore(t)
  const [first] = segmentsOf(dir)
  assert.ok(first !== undefined)
  const magic = Buffer.from('BRGP')
  const at = fs.readFileSync(first).indexOf(magic, 20_000)
  flipBit(first, at + 20, 3)
  const { ok, findings } = await verify(dir)
  assert.equal(ok, false)
  assert.deepEqual(lossesIn(findings), {})
  const { quarantined } = await repair(dir, { acceptDataLoss: true })
  assert.equal(quarantined.length, 1)
  assert.deepEqual(await readAll(dir), {})
})

test('repair() copies the damaged bytes beside the store and deletes nothing', async (t) => {
  const dir = await sampleStore(t)
  const [first] = segmentsOf(dir)
  assert.ok(first !== undefined)
  zeroRange(first, 8192, 12_288)
  const damaged = fs.readFileSync(first)
  const { quarantined } = await repair(dir, { acceptDataLoss: true })
  assert.ok(quarantined.length > 0)
  for (const path of quarantined) {
    const [, from, to] = /\.(\d+)-(\d+)$/.exec(path) ?? []
    assert.deepEqual(fs.readFileSync(path), damaged.subarray(Number(from), Number(to)))
  }
})

test('repair() goes on where a crash left it, at every operation', async (t) => {
  const { repairOn } = await import('../../engine/repair.ts')
  const { FaultFileSystem } = await import('../support/fault-file-system.ts')
  const { NodeFileSystem } = await import('../../engine/node-file-system.ts')
  const { systemClock } = await import('../../engine/clock.ts')
  const sample = await sampleStore(t)
  const [, second] = segmentsOf(sample)
  assert.ok(second !== undefined)
  zeroRange(second, 4096, 8192)
  const expected = lossesIn((await verify(sample)).findings)
  for (let k = 1; ; k += 3) {
    const dir = `${sample}-${k}`
    fs.cpSync(sample, dir, { recursive: true })
    const fileSystem = new FaultFileSystem(new NodeFileSystem())
    fileSystem.faults.failOperation(k, { code: 'EIO' }, true)
    const environment = { fileSystem, clock: systemClock }
    const outcome = await repairOn(environment, dir, { acceptDataLoss: true }).then(
      () => 'done',
      () => 'failed',
    )
    await repair(dir, { acceptDataLoss: true })
    assert.equal((await verify(dir)).ok, true, `after operation ${k}`)
    assert.deepEqual(await readAll(dir), expected, `after operation ${k}`)
    if (outcome === 'done') break
  }
})

test('repair() refuses without acceptDataLoss, and while the store is open', async (t) => {
  const dir = await sampleStore(t)
  const refused = repair(dir, {} as { acceptDataLoss: true })
  await rejection(refused, 'INVALID_OPTION')
  const bifrost = await Bifrost.open({ dir })
  await rejection(repair(dir, { acceptDataLoss: true }), 'LOCKED')
  await bifrost.close()
})

test('repair() refuses segments of two histories, and changes nothing', async (t) => {
  const dir = await sampleStore(t)
  const other = `${dir}-other`
  fs.cpSync(dir, other, { recursive: true })
  for (const at of [dir, other]) {
    const bifrost = await Bifrost.open({ dir: at, segmentSizeBytes: 64 * 1024 })
    for (let i = 0; i < 80; i++) await bifrost.append('a', `${at} ${'x'.repeat(1000)} ${i}`)
    await bifrost.close()
  }
  const mixed = segmentsOf(dir).slice(-3)[0]
  assert.ok(mixed !== undefined)
  fs.copyFileSync(join(other, basename(mixed)), mixed)
  const before = fs.readFileSync(mixed)
  assert.equal((await verify(dir)).ok, false)
  await rejection(repair(dir, { acceptDataLoss: true }), 'CORRUPT')
  assert.deepEqual(fs.readFileSync(mixed), before)
})

test('verify() changes no byte and no time of the store', async (t) => {
  const dir = await sampleStore(t)
  const [first] = segmentsOf(dir)
  assert.ok(first !== undefined)
  flipBit(first, 30_000)
  const picture = (): unknown =>
    fs.readdirSync(dir).map((name) => {
      const { size, mtimeMs, ctimeMs } = fs.statSync(join(dir, name))
      return [name, size, mtimeMs, ctimeMs]
    })
  const before = picture()
  const { ok, findings } = await verify(dir)
  assert.equal(ok, false)
  assert.equal(findings[0]?.label, 'R4')
  assert.deepEqual(picture(), before)
})

test('verify() finds nothing beside a live writer', async (t) => {
  const dir = await temporaryDirectory(t)
  const bifrost = await Bifrost.open({ dir, logs: ['log'], segmentSizeBytes: 64 * 1024 })
  let isDone = false
  const writing = Promise.all(
    Array.from({ length: 8 }, async () => {
      for (let i = 0; !isDone; i++) {
        const lsn = await bifrost.append('log', 'x'.repeat(500))
        if (i % 50 === 0) await bifrost.trim('log', Math.max(0, lsn - 400))
      }
    }),
  )
  for (let i = 0; i < 5; i++) {
    const { ok, findings } = await verify(dir)
    assert.deepEqual(
      findings.filter(({ label }) => label === 'R4' || label === 'R6'),
      [],
    )
    assert.equal(ok, true)
  }
  isDone = true
  await writing
  await bifrost.close()
})

test('verify() reports progress, and ABORTED when its signal says so', async (t) => {
  const dir = await sampleStore(t)
  const seen: [number, number][] = []
  await verify(dir, { onProgress: (done, total) => seen.push([done, total]) })
  const [done, total] = seen.at(-1) ?? [0, 1]
  assert.equal(done, total)
  const signal = AbortSignal.abort(new Error('enough'))
  await rejection(verify(dir, { signal }), 'ABORTED')
})

test('verify() is OPEN_FAILED where there is no store', async (t) => {
  await rejection(verify(await temporaryDirectory(t)), 'OPEN_FAILED')
})
