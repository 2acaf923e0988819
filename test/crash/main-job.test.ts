/** The main job: it ends well when all is well, and each of its checks sees what it is there for. */
import assert from 'node:assert/strict'
import { spawnSync, type SpawnSyncReturns } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Bifrost } from '../../index.ts'
import {
  checkAppends,
  checkBytes,
  checkLedger,
  checkReads,
  checkWholeBatches,
} from '../../perf/main-job/check.ts'
import { BATCH_RECORDS, Flights, type Flight } from '../../perf/main-job/flights.ts'
import { Ledger } from '../../perf/main-job/ledger.ts'
import { temporaryDirectory } from '../support/temp-dir.ts'

const PROGRAM = fileURLToPath(new URL('../../perf/main-job.js', import.meta.url))
const FS_EXT_MODE = new URL('./fs-ext-mode.js', import.meta.url).href

function row(origin: string, delay: number): Flight {
  return { date: '2001/01/01 00:01', delay, distance: 337, origin, destination: 'LAX' }
}

const ROWS = Array.from({ length: 40 }, (_, i) => row(i % 3 === 0 ? 'SFO' : 'SAN', i))
const FLIGHTS = new Flights(ROWS)
const BATCHES = 12
const ignore = (): void => undefined

interface SmallStore {
  readonly dir: string
  readonly bifrost: Bifrost
  readonly ledger: Ledger
}

/** A store as the load leaves it, with a few batches. */
async function smallStore(t: TestContext): Promise<SmallStore> {
  const dir = await temporaryDirectory(t)
  const bifrost = await Bifrost.open({ dir, logs: FLIGHTS.origins })
  t.after(() => bifrost.close())
  const ledger = new Ledger()
  const batches = FLIGHTS.batches()
  for (let i = 0; i < BATCHES; i++) {
    const { origin, number, rows } = batches.next().value
    ledger.acknowledge(origin, number, await bifrost.appendBatch(origin, rows))
  }
  return { dir, bifrost, ledger }
}

function run(args: string[], env: NodeJS.ProcessEnv = {}): SpawnSyncReturns<string> {
  return spawnSync(process.execPath, [PROGRAM, ...args], {
    encoding: 'utf8',
    env: { ...process.env, ...env },
  })
}

test('main-job.ts exits with 0, says that everything held, and leaves nothing', async (t) => {
  const dir = await temporaryDirectory(t)
  const { status, stdout, stderr } = run(['--seconds', '1', '--dir', dir])
  assert.equal(status, 0, stdout + stderr)
  assert.match(stdout, /SIGKILL after 1\.\d+ s/)
  assert.match(stdout, /all [\d,]+ acknowledged records are there/)
  assert.match(stdout, /recovered in [\d.]+ ms/)
  assert.match(stdout, /records in a group commit( +[\d,.]+){6}/)
  assert.match(stdout, /Everything held, for [\d,]+ records/)
  assert.match(stdout, /What it cannot show/)
  assert.deepEqual(readdirSync(dir), [])
})

test('main-job.ts exits with 1 and the reason if the load dies by itself', async (t) => {
  const dir = await temporaryDirectory(t)
  const env = { NODE_OPTIONS: `--import ${FS_EXT_MODE}`, FS_EXT_MODE: 'missing' }
  const { status, stdout } = run(['--seconds', '1', '--dir', dir], env)
  assert.equal(status, 1, stdout)
  assert.match(stdout, /The load ended by itself:[^]*LOCK_UNAVAILABLE/)
  assert.doesNotMatch(stdout, /Everything held/)
  assert.deepEqual(readdirSync(dir), [])
})

test('main-job.ts exits with 2 and its usage for arguments that it does not know', () => {
  for (const args of [['--loud'], ['--seconds', '0'], ['--callers', '8'], ['--dir', '/dev/null']]) {
    const { status, stderr } = run(args)
    assert.equal(status, 2)
    assert.match(stderr, /Usage: npm start/)
  }
})

test('Flights.load() finds 20,000 rows of 220 airports', () => {
  const flights = Flights.load()
  assert.equal(flights.rows.length, 20_000)
  assert.equal(flights.origins.length, 220)
})

test('Flights.batches() gives each log its rows in order, over and over', () => {
  const lsns = new Map<string, number>()
  const batches = FLIGHTS.batches()
  for (let i = 0; i < 100; i++) {
    const { origin, number, rows } = batches.next().value
    const before = lsns.get(origin) ?? 0
    assert.equal(number * BATCH_RECORDS, before)
    assert.equal(rows.length, BATCH_RECORDS)
    rows.forEach((found, k) => assert.equal(found, FLIGHTS.at(origin, before + 1 + k)))
    lsns.set(origin, before + BATCH_RECORDS)
  }
})

test('the checks pass over a store that holds everything', async (t) => {
  const { dir, bifrost, ledger } = await smallStore(t)
  const tails = await checkReads(bifrost, FLIGHTS, ignore)
  checkLedger(ledger, tails)
  checkWholeBatches(tails)
  const after = await checkAppends(bifrost, FLIGHTS, tails)
  await bifrost.close()
  const records = (BATCHES + FLIGHTS.origins.length) * BATCH_RECORDS
  assert.equal(await checkBytes(dir, FLIGHTS, after, ignore), records)
})

test('checkLedger() sees an acknowledged batch that is not there', async (t) => {
  const { bifrost, ledger } = await smallStore(t)
  const tails = await checkReads(bifrost, FLIGHTS, ignore)
  const tail = tails.get('SFO') as number
  ledger.acknowledge('SFO', (tail - 1) / BATCH_RECORDS, tail)
  assert.throws(() => checkLedger(ledger, tails), /LOST: Batch \d+ of SFO/)
})

test('checkLedger() sees an acknowledgement with a wrong LSN', () => {
  const ledger = new Ledger()
  ledger.acknowledge('SFO', 1, 4)
  assert.throws(() => checkLedger(ledger, new Map([['SFO', 100]])), /acknowledged at 4, not 5/)
})

test('checkReads() and checkBytes() see a record that is another one', async (t) => {
  const { dir, bifrost } = await smallStore(t)
  const tails = await checkReads(bifrost, FLIGHTS, ignore)
  const others = new Flights(ROWS.map((r, i) => (i === 9 ? { ...r, delay: r.delay + 1 } : r)))
  await assert.rejects(checkReads(bifrost, others, ignore), /SFO at 4 reads/)
  await bifrost.close()
  await assert.rejects(checkBytes(dir, others, tails, ignore), /SFO at 4 is stored as/)
})

test('checkBytes() sees a record that is not stored', async (t) => {
  const { dir, bifrost } = await smallStore(t)
  const tails = new Map(await checkReads(bifrost, FLIGHTS, ignore))
  await bifrost.close()
  tails.set('SAN', (tails.get('SAN') as number) + BATCH_RECORDS)
  await assert.rejects(checkBytes(dir, FLIGHTS, tails, ignore), /SAN: \d+ records are stored/)
})

test('checkWholeBatches() sees a batch of which a part is there', () => {
  checkWholeBatches(new Map([['SFO', 9]]))
  assert.throws(() => checkWholeBatches(new Map([['SFO', 11]])), /SFO ends with 2 records/)
})

test('checkAppends() sees an append that does not go on at the tail', async (t) => {
  const { bifrost } = await smallStore(t)
  await assert.rejects(checkAppends(bifrost, FLIGHTS, new Map([['SFO', 3]])), /SFO goes on at/)
})
