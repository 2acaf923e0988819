/**
 * Crash between two steps of anything: a script of appends, rolls, trims, deletes and a close is
 * crashed at its operations, one after the other. What was acknowledged is there; of what was not,
 * each command happened or did not; and restarts leave no files behind.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { SimCrash } from '../support/sim-scheduler.ts'
import { SimStore } from '../support/sim-store.ts'
import type { LogView } from '../support/store-view.ts'
import { FILLING } from '../support/stores.ts'

/** What one step of the script does, and what holds once it was acknowledged. */
interface Step {
  readonly name: string
  run(sim: SimStore): Promise<unknown>
  /** Changes what must be there. */
  done(expected: Expected): void
}

/** Logs with their records, and trim points; a deleted log is not in it. */
type Expected = Map<string, { records: unknown[]; trimPoint: number }>

function append(log: string, ...payloads: readonly unknown[]): Step {
  return {
    name: `append ${payloads.length} to ${log}`,
    run: (sim) => {
      const records = payloads.map((payload) => ({ payload, keys: undefined }))
      const appended = new Promise((committed, failed) => {
        sim.store.appendBatch(sim.cell(log), records, undefined, { committed, failed })
      })
      return sim.disk.run(appended)
    },
    done: (expected) => expected.get(log)?.records.push(...payloads),
  }
}

function trim(log: string, upTo: number): Step {
  return {
    name: `trim ${log} to ${upTo}`,
    run: (sim) => sim.trim(log, upTo),
    done: (expected) => {
      const found = expected.get(log)
      if (found !== undefined) found.trimPoint = Math.max(found.trimPoint, upTo)
    },
  }
}

function create(...logs: string[]): Step {
  return {
    name: `create ${logs.join(', ')}`,
    run: (sim) => sim.create(...logs),
    done: (expected) => {
      for (const log of logs) expected.set(log, { records: [], trimPoint: 0 })
    },
  }
}

function remove(log: string): Step {
  return {
    name: `delete ${log}`,
    run: (sim) => sim.disk.run(sim.store.deleteLog(log)),
    done: (expected) => expected.delete(log),
  }
}

/** Lets timers go off: the metadata is written. */
const rest: Step = {
  name: 'rest',
  run: (sim) =>
    sim.disk.run(
      new Promise((resolve) => {
        sim.disk.clock.setTimer(() => resolve(undefined), 700)
      }),
    ),
  done: () => undefined,
}

const SCRIPT: readonly Step[] = [
  create('a', 'b', 'c'),
  append('a', 1, 2, 3),
  append('b', 'x'),
  rest,
  append('c', FILLING),
  append('a', 4, 5),
  append('c', FILLING),
  trim('a', 3),
  append('b', 'y', 'z'),
  trim('c', 2),
  append('a', 6),
  rest,
  remove('c'),
  create('c'),
  append('c', 'a new incarnation'),
  append('b', FILLING),
  append('a', 7, 8, 9),
  trim('b', 4),
  rest,
]

/** Runs the script until the crash; tells what was acknowledged, and what was under way. */
async function runScript(sim: SimStore): Promise<{
  readonly expected: Expected
  readonly pending: Step | undefined
}> {
  const expected: Expected = new Map()
  let pending: Step | undefined
  try {
    await sim.open()
    for (const step of SCRIPT) {
      pending = step
      await step.run(sim)
      step.done(expected)
      pending = undefined
    }
    await sim.close()
  } catch (error) {
    if (!(error instanceof SimCrash)) throw error
  }
  return { expected, pending }
}

function asExpected(views: readonly LogView[]): unknown {
  return views.map(({ logId, tail, trimPoint, records }) => {
    assert.equal(records.length, tail - 1 - trimPoint)
    return [logId, trimPoint, records.map(([, payload]) => payload)]
  })
}

function plain(expected: Expected): unknown {
  return [...expected].map(([logId, { records, trimPoint }]) => {
    return [logId, trimPoint, records.slice(trimPoint)]
  })
}

function isOneOf(found: unknown, ...allowed: readonly unknown[]): boolean {
  return allowed.some((one) => {
    try {
      assert.deepEqual(found, one)
      return true
    } catch {
      return false
    }
  })
}

/** The files of the store, without those that come and go with every open. */
function filesOf(sim: SimStore): string[] {
  return [...sim.disk.contents().keys()].filter((path) => !path.endsWith('.index'))
}

const WHOLE_RUN = 1
/** Each operation is crashed at with so many seeds. */
const SEEDS = 2

describe('Crash between two steps of anything', () => {
  test('the script alone leaves what it says', async () => {
    const sim = new SimStore(WHOLE_RUN)
    const { expected, pending } = await runScript(sim)
    assert.equal(pending, undefined)
    const report = await sim.open()
    assert.deepEqual(report.findings, [], 'it was closed')
    assert.deepEqual(asExpected(await sim.view()), plain(expected))
  })

  for (const kind of ['power', 'kill'] as const) {
    test(`one of the two states, after a crash (${kind}) at any operation`, async () => {
      const whole = new SimStore(WHOLE_RUN)
      await runScript(whole)
      const operations = whole.disk.faults.operationCount
      assert.ok(operations > 120, `${operations} operations`)
      for (let seed = 1; seed <= SEEDS * operations; seed++) {
        const k = 1 + (seed % operations)
        const sim = new SimStore(seed)
        sim.disk.crashAtOperation(k, kind)
        const { expected, pending } = await runScript(sim)
        const before = plain(expected)
        pending?.done(expected)
        const after = plain(expected)
        // With another seed the script may take fewer operations: then it crashes now.
        sim.disk.crash(kind)
        await sim.open()
        const found = asExpected(await sim.view())
        const at = `${kind} at operation ${k}, in "${pending?.name ?? 'nothing'}"`
        assert.ok(isOneOf(found, before, after), `${at}\n${sim.disk.describe()}`)
      }
    })
  }

  test('never more files at every restart, whether it is crashed or not', async () => {
    for (let seed = 1; seed <= 6; seed++) {
      const sim = new SimStore(seed)
      sim.disk.crashAtOperation(20 + 20 * seed, 'power')
      await runScript(sim)
      await sim.open()
      await sim.disk.run(new Promise((resolve) => sim.disk.clock.setTimer(() => resolve(0), 700)))
      const files = filesOf(sim)
      for (let restart = 0; restart < 6; restart++) {
        sim.disk.crash(restart % 2 === 0 ? 'power' : 'kill')
        sim.disk.crashAtOperation(3 + restart * 7, 'power')
        await sim.open().catch((error: unknown) => {
          if (!(error instanceof SimCrash)) throw error
        })
        sim.disk.crash('kill')
        await sim.open()
        await sim.disk.run(new Promise((resolve) => sim.disk.clock.setTimer(() => resolve(0), 700)))
        const now = filesOf(sim)
        assert.ok(
          now.every((file) => files.includes(file)),
          `${now.join(' ')}\n${sim.disk.describe()}`,
        )
      }
    }
  })
})

describe('Torn tail zeroed by a write whose sync failed, reopened, appended over, power lost', () => {
  test('old frames at their own place never check again', async () => {
    for (let seed = 1; seed <= 40; seed++) {
      const sim = new SimStore(seed)
      await sim.open()
      await sim.create('log')
      await sim.append('log', 'kept')
      const isCommit = ({ kind }: { readonly kind: string }): boolean => kind === 'commit'
      // A group of many records whose sync fails: some of its sectors are on the disk.
      sim.disk.faults.fail(isCommit, { code: 'EIO' })
      const old = Array.from({ length: 40 }, (_, i) => sim.appendUnrun('log', `old ${i}`))
      const outcomes = await sim.disk.run(Promise.allSettled(old))
      assert.ok(outcomes.every(({ status }) => status === 'rejected'))
      sim.disk.crash('power')
      // The recovery's own sync fails, and the process goes on to try again.
      const failing = sim.disk.faults.fail(
        ({ kind, path }) => kind === 'sync' && path.endsWith('.segment'),
        { code: 'EIO' },
      )
      await sim.open().catch(() => undefined)
      failing.remove()
      sim.disk.crash('kill')
      await sim.open()
      const shown = await sim.payloads('log')
      await sim.append('log', 'new')
      sim.disk.crash('power')
      await sim.open()
      assert.deepEqual(await sim.payloads('log'), [...shown, 'new'], sim.disk.describe())
      assert.ok(shown.length === 1 || shown.length === 41, 'all of the old group, or nothing')
    }
  })
})
