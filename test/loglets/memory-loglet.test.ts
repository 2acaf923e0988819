/** What the in-memory loglet does beyond the contract: memory, time, groups and its last offset. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { resolveStoreOptions } from '../../engine/options.ts'
import { MemoryProvider, type MemoryInternals } from '../../loglets/memory-provider.ts'
import type { Loglet } from '../../loglets/loglet.ts'
import { append, appendBatch, newLoglet, payloadsFrom, readOnce } from '../contract/loglet-probe.ts'
import { collectGarbage } from '../support/collect-garbage.ts'
import { rejection } from '../support/expect-error.ts'
import { Gate } from './memory-store.ts'

function provider(internals: MemoryInternals = {}, options = {}): MemoryProvider {
  return new MemoryProvider(resolveStoreOptions({ ...options, dir: '(memory)' }), internals)
}

async function filled(count: number): Promise<{ loglet: Loglet; refs: WeakRef<object>[] }> {
  const loglet = await newLoglet(provider())
  const refs: WeakRef<object>[] = []
  for (let i = 0; i < count; i++) await append(loglet, new Uint8Array(1000))
  await loglet.read({
    from: 1,
    to: count,
    maxBytes: Infinity,
    visit: (_offset, bytes) => {
      refs.push(new WeakRef(bytes))
      return true
    },
  })
  return { loglet, refs }
}

describe('MemoryLoglet', () => {
  test('frees what is trimmed', async () => {
    const { loglet, refs } = await filled(100)
    await loglet.trim(60)
    await new Promise((resolve) => setTimeout(resolve, 10))
    collectGarbage()
    const alive = refs.filter((ref) => ref.deref() !== undefined)
    assert.ok(alive.length <= 41, `${alive.length} bodies are still held`)
  })

  test('reads on rightly through many small trims', async () => {
    const loglet = await newLoglet(provider())
    const count = 5000
    await appendBatch(
      loglet,
      Array.from({ length: count }, (_, i) => i + 1),
    )
    for (let upTo = 7; upTo < count; upTo += 7) {
      assert.equal(await loglet.trim(upTo), upTo)
      const { records } = await readOnce(loglet, upTo + 1, { to: upTo + 1 })
      if (upTo < count) assert.equal(records[0]?.payload, upTo + 1)
    }
    assert.equal(await append(loglet, 'last'), count + 1)
    assert.deepEqual(await payloadsFrom(loglet, 4999), [4999, 5000, 'last'])
  })

  test('stamps records when their group is formed, never earlier than the one before', async () => {
    const times = [500, 400, 600]
    const clock = { now: () => times.shift() ?? 0 }
    const loglet = await newLoglet(provider({ clock }))
    for (const n of [1, 2, 3, 4]) await append(loglet, n)
    const { records } = await readOnce(loglet, 1)
    assert.deepEqual(
      records.map(({ createdAtMs }) => createdAtMs),
      [500, 500, 600, 600],
    )
  })

  test('commits what was queued since the last group together, within the limits', async () => {
    const gate = new Gate()
    const memory = provider({ schedule: gate.schedule }, { batchCommitCount: 3 })
    const making = newLoglet(memory)
    gate.step()
    const loglet = await making
    const appends = [1, 2, 3, 4, 5].map((n) => append(loglet, n))
    assert.equal(loglet.state.tail, 1)
    gate.step()
    assert.equal(loglet.state.tail, 4)
    gate.step()
    assert.equal(loglet.state.tail, 6)
    assert.equal(gate.isHolding, false)
    await Promise.all(appends)
    const { count, max, sum } = memory.metrics().bifrost_localloglet_write_batch_count
    assert.deepEqual([count, max, sum], [2, 3, 5])
  })

  test('takes one command whatever its size, and more while the bytes of a group hold', async () => {
    const gate = new Gate()
    const memory = provider({ schedule: gate.schedule }, { batchCommitBytes: 1000 })
    const making = newLoglet(memory)
    gate.step()
    const loglet = await making
    const sizes = [5000, 400, 400, 400]
    const appends = sizes.map((size) => append(loglet, new Uint8Array(size)))
    const tails: number[] = []
    while (gate.isHolding) {
      gate.step()
      tails.push(loglet.state.tail)
    }
    assert.deepEqual(tails, [2, 4, 5])
    await Promise.all(appends)
  })

  test('refuses to go past its last offset, and names none twice', async () => {
    const loglet = await newLoglet(provider({ maxOffset: 3 }))
    assert.equal(await appendBatch(loglet, [1, 2]), 1)
    await rejection(appendBatch(loglet, [3, 4]), 'INVALID_LSN')
    assert.equal(await append(loglet, 3), 3)
    await rejection(append(loglet, 4), 'INVALID_LSN')
    assert.equal(loglet.state.tail, 4)
  })

  test('lets others have their turn while a long log is read', async () => {
    const loglet = await newLoglet(provider())
    await appendBatch(loglet, Array<string>(200).fill('x'.repeat(100)))
    let turns = 0
    const count = (): void => {
      turns++
      timer = setImmediate(count)
    }
    let timer = setImmediate(count)
    let next = 1
    while (next <= 200) next += (await readOnce(loglet, next, { maxBytes: 1000 })).records.length
    clearImmediate(timer)
    assert.ok(turns >= 15, `${turns} turns`)
  })

  test('says nothing of disks', async () => {
    const memory = provider()
    await append(await newLoglet(memory), 1)
    const metrics = memory.metrics()
    assert.equal(metrics.bifrost_localloglet_sync_duration_seconds.count, 0)
    assert.equal(metrics.bifrost_segments, 0)
    assert.equal(metrics.bifrost_disk_bytes, 0)
    assert.equal(metrics.bifrost_recovery_dropped_bytes_total, 0)
    assert.deepEqual(memory.recovery.findings, [])
    assert.equal(memory.status.failure, undefined)
  })
})
