/**
 * kill -9 of a real process under load, many times on one store. A killed process shows that no
 * acknowledgement comes before its write and that recovery keeps what was written; that it was on
 * the disk, not only in the kernel's memory, is shown by the trace of system calls.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Bifrost } from '../../index.ts'
import { Random } from '../support/random.ts'
import { temporaryDirectory } from '../support/temp-dir.ts'
import { dumpStore } from './kill-dump.ts'
import { KillRun, type KillMoment } from './kill-run.ts'
import { KILL_STORE } from './kill-store.ts'

const LONG = process.env['BIFROST_LONG'] !== undefined
const KILLS = Number(process.env['BIFROST_KILLS'] ?? (LONG ? 150 : 50))
const SEED = Number(process.env['BIFROST_SEED'] ?? Date.now() % 2 ** 31)
/** After this many kills the store is opened twice without being closed. */
const OPEN_TWICE_EVERY = 6

/** The child closes the store after at most 200 ms. */
function aroundClose(random: Random): KillMoment {
  return { after: 'state', ms: random.between(50, 250) }
}

async function openTwice(run: KillRun): Promise<void> {
  await run.open()
  const once = run.segments()
  await run.open()
  for (const [name, bytes] of run.segments()) {
    const before = once.get(name)
    // Opening may give segments back, with a group that says so, but it changes nothing.
    if (before === undefined) assert.equal(bytes.length, 0, `${name} is new and holds something`)
    else assert.ok(bytes.subarray(0, before.length).equals(before), `${name} was changed`)
  }
}

async function look(dir: string): Promise<Parameters<KillRun['settle']>[0]> {
  const bifrost = await Bifrost.open({ dir, ...KILL_STORE })
  try {
    return { recovery: bifrost.recovery, logs: await dumpStore(bifrost) }
  } finally {
    await bifrost.close()
  }
}

test(`Bifrost.open() finds all that was acknowledged after each of ${KILLS} kills`, async (t) => {
  t.diagnostic(`BIFROST_SEED=${SEED}`)
  const dir = await temporaryDirectory(t)
  const random = new Random(SEED)
  const run = new KillRun(dir)
  for (let kill = 1; kill <= KILLS; kill++) {
    // Now and then the process dies before it has opened the store.
    if (random.chance(0.3)) await run.load({ after: 'start', ms: random.below(250) }, 0)
    await run.load({ after: 'state', ms: random.below(400) }, random.uint32())
    if (random.chance(0.3)) await run.load(aroundClose(random), random.uint32(), 'close')
    if (kill % OPEN_TWICE_EVERY === 0) await openTwice(run)
  }
  run.settle(await look(dir))
  const clean = await look(dir)
  run.settle(clean)
  assert.deepEqual(clean.recovery.findings, [], 'after a close there is nothing to recover')
  for (const [what, count] of [...run.counts].sort()) t.diagnostic(`${what}: ${count}`)
  assertEverythingHappened(run)
})

/** A run in which something never happened would prove nothing about it. */
function assertEverythingHappened(run: KillRun): void {
  const names = [...run.segments().keys()].sort()
  const first = Number.parseInt(names[0] ?? '', 10)
  assert.ok(first > 3, `segments were rolled and given back: ${names.join(' ')}`)
  for (const kind of ['append', 'many', 'trim', 'seal', 'create', 'delete']) {
    assert.ok((run.counts.get(`${kind} kept`) ?? 0) > 0, `${kind} was called`)
  }
  const unheard = run.counts.get('there without an acknowledgement') ?? 0
  assert.ok(unheard > 0, 'kills came between a write and its acknowledgement')
}
