/** Fills a store until nothing fits any more, and knows what must be in it then. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { LogError, type Bifrost, type BifrostOptions } from '../../index.ts'

/** Small files, so that trimming gives space back soon. */
export const FILLED_STORE: BifrostOptions = {
  segmentSizeBytes: 256 * 1024,
  reserveBytes: 16 * 1024,
}

interface FilledPayload {
  readonly id: number
  readonly pad: Uint8Array
}

/** From large to small, in the end one by one, so that then not even a small record fits. */
const STEPS = [
  { size: 32 * 1024, callers: 8 },
  { size: 1024, callers: 8 },
  { size: 0, callers: 8 },
  { size: 0, callers: 1 },
]
const LOGS = ['a', 'b'] as const

/** What was acknowledged: by log and LSN, the record's id and size. */
interface Filled {
  readonly id: number
  readonly size: number
}
type Ledger = Map<string, Map<number, Filled>>

export class Filler {
  readonly ledger: Ledger = new Map(LOGS.map((log) => [log, new Map<number, Filled>()]))
  rejected = 0
  #nextId = 1

  /** Appends until even the smallest records are WRITE_FAILED; 'mostly' leaves room for some. */
  async fill(bifrost: Bifrost, mostly = false): Promise<void> {
    for (const { size, callers } of mostly ? STEPS.slice(0, 2) : STEPS) {
      while (await this.#appendSome(bifrost, size, callers)) continue
    }
  }

  /** Several at once, so that they share groups; false once all of them were rejected. */
  async #appendSome(bifrost: Bifrost, size: number, callers: number): Promise<boolean> {
    const appends = Array.from({ length: callers }, (_, i) =>
      this.append(bifrost, LOGS[i % LOGS.length] as string, size),
    )
    return (await Promise.all(appends)).includes(true)
  }

  /** Appends a record; false if it is WRITE_FAILED. */
  async append(bifrost: Bifrost, log: string, size: number): Promise<boolean> {
    const id = this.#nextId++
    try {
      const payload: FilledPayload = { id, pad: new Uint8Array(size).fill(id & 0xff) }
      this.take(log, await bifrost.append(log, payload), id, size)
      return true
    } catch (error) {
      assert.ok(LogError.is(error, 'WRITE_FAILED'), String(error))
      this.rejected++
      return false
    }
  }

  /** A record was acknowledged. */
  take(log: string, lsn: number, id: number, size: number): void {
    const records = this.ledger.get(log)
    assert.ok(records, `there is a log ${log}`)
    assert.ok(!records.has(lsn), `LSN ${lsn} of ${log} was given twice`)
    records.set(lsn, { id, size })
    this.#nextId = Math.max(this.#nextId, id + 1)
  }

  /** All that was acknowledged is there, and nothing else: no rejected record has appeared. */
  async assertHolds(bifrost: Bifrost): Promise<void> {
    for (const [log, records] of this.ledger) {
      const trimPoint = await bifrost.getTrimPoint(log)
      const found = new Map<number, FilledPayload>()
      for await (const record of bifrost.createReader<FilledPayload>(log, { follow: false })) {
        if (record.kind === 'data') found.set(record.lsn, record.payload)
        else assert.deepEqual([record.kind, record.lsn, record.until], ['trim-gap', 1, trimPoint])
      }
      const expected = [...records].filter(([lsn]) => lsn > trimPoint)
      assert.deepEqual([...found.keys()], expected.map(([lsn]) => lsn).sort(ascending), log)
      for (const [lsn, { id, size }] of expected) {
        assert.equal(found.get(lsn)?.id, id)
        assert.deepEqual(found.get(lsn)?.pad, new Uint8Array(size).fill(id & 0xff))
      }
    }
  }

  /** Appends to a log until it succeeds. */
  appendOnceThereIsRoom(bifrost: Bifrost, log: string, size: number): Promise<void> {
    return onceThereIsRoom(() => this.append(bifrost, log, size))
  }
}

const RETRY_MS = 20
const MAX_TRIES = 1500

/** Tries until it works: space comes back in the background. */
export async function onceThereIsRoom(attempt: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    if (await attempt()) return
    await sleep(RETRY_MS)
  }
  assert.fail('No space came back')
}

function ascending(a: number, b: number): number {
  return a - b
}
