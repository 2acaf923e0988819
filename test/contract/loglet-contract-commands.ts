/** The loglet contract: trims, seals, and those who watch a loglet's state. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rejection } from '../support/expect-error.ts'
import {
  append,
  appendBatch,
  newLoglet,
  payloadsFrom,
  readOnce,
  stateWhere,
  type OpenProvider,
} from './loglet-probe.ts'

export function commandContract(open: OpenProvider): void {
  test('trim() clamps to the last record, never moves back, and never moves the tail', async (t) => {
    const provider = await open(t)
    const loglet = await newLoglet(provider)
    assert.equal(await loglet.trim(5), 0)
    await appendBatch(loglet, [1, 2, 3, 4])
    assert.equal(await loglet.trim(2), 2)
    assert.equal(await loglet.trim(1), 2)
    assert.equal(loglet.state.trimPoint, 2)
    assert.equal(await loglet.trim(Number.MAX_SAFE_INTEGER), 4)
    assert.equal(loglet.state.tail, 5)
    assert.equal(await append(loglet, 5), 5)
    assert.deepEqual(await payloadsFrom(loglet, 5), [5])
    assert.deepEqual((await readOnce(loglet, 1)).outcome, { kind: 'trim-gap', until: 4 })
  })

  test('trim() comes after the appends that were called before it', async (t) => {
    const loglet = await newLoglet(await open(t))
    const appends = [append(loglet, 1), append(loglet, 2)]
    assert.equal(await loglet.trim(2), 2)
    assert.deepEqual(await Promise.all(appends), [1, 2])
  })

  test('trims are counted', async (t) => {
    const provider = await open(t)
    const loglet = await newLoglet(provider)
    await appendBatch(loglet, [1, 2])
    await loglet.trim(1)
    await loglet.trim(2)
    assert.equal(provider.metrics().bifrost_localloglet_trims_total, 2)
  })

  test('seal() is idempotent, and the first reason wins', async (t) => {
    const loglet = await newLoglet(await open(t))
    await append(loglet, 1)
    const [first, second] = await Promise.all([loglet.seal('moved'), loglet.seal('other')])
    for (const state of [first, second, await loglet.seal(undefined), loglet.state]) {
      assert.equal(state.sealed, true)
      assert.equal(state.reason, 'moved')
      assert.equal(state.tail, 2)
    }
    const { tail, reason } = await rejection(append(loglet, 2), 'SEALED')
    assert.deepEqual({ tail, reason }, { tail: 2, reason: 'moved' })
    await rejection(appendBatch(loglet, [1, 2]), 'SEALED')
    assert.equal(loglet.state.tail, 2)
  })

  test('seal() without a reason keeps none', async (t) => {
    const loglet = await newLoglet(await open(t))
    assert.equal((await loglet.seal(undefined)).reason, undefined)
    assert.equal((await loglet.seal('late')).reason, undefined)
  })

  test('no append is acknowledged at or past a sealed tail that anybody saw', async (t) => {
    const loglet = await newLoglet(await open(t))
    const acked: number[] = []
    let sealedTail = 0
    const stop = loglet.watch(() => {
      if (loglet.state.sealed) sealedTail ||= loglet.state.tail
    })
    const appends: Promise<unknown>[] = []
    let sealing: Promise<unknown> | undefined
    for (let i = 0; i < 100; i++) {
      const pending = i % 3 === 0 ? appendBatch(loglet, [i, i]) : append(loglet, i)
      appends.push(
        pending.then(
          (offset) => acked.push(offset + (i % 3 === 0 ? 1 : 0)),
          () => undefined,
        ),
      )
      if (i === 60) sealing = loglet.seal('now')
      if (i % 25 === 24) await new Promise(setImmediate)
    }
    await Promise.all([...appends, sealing])
    stop()
    assert.ok(sealedTail > 0)
    assert.equal(loglet.state.tail, sealedTail)
    assert.ok(acked.length > 0)
    assert.equal(Math.max(...acked), sealedTail - 1)
    assert.equal((await payloadsFrom(loglet, 1)).length, sealedTail - 1)
  })

  test('a sealed loglet can be read and trimmed', async (t) => {
    const loglet = await newLoglet(await open(t))
    await appendBatch(loglet, [1, 2, 3])
    await loglet.seal(undefined)
    assert.equal(await loglet.trim(2), 2)
    assert.deepEqual(await payloadsFrom(loglet, 3), [3])
  })

  test('watch() tells of appends, trims and seals, until it is stopped', async (t) => {
    const loglet = await newLoglet(await open(t))
    const seen: string[] = []
    const stop = loglet.watch(() => {
      const { tail, trimPoint, sealed } = loglet.state
      seen.push(`${tail} ${trimPoint} ${sealed}`)
    })
    await append(loglet, 1)
    assert.equal(seen.at(-1), '2 0 false')
    await loglet.trim(1)
    assert.equal(seen.at(-1), '2 1 false')
    await loglet.seal(undefined)
    assert.equal(seen.at(-1), '2 1 true')
    stop()
    stop()
    const count = seen.length
    await loglet.trim(1)
    await rejection(append(loglet, 2), 'SEALED')
    assert.equal(seen.length, count)
  })

  test('watch() with one function twice makes two watches', async (t) => {
    const loglet = await newLoglet(await open(t))
    let calls = 0
    const count = (): number => calls++
    const stop = loglet.watch(count)
    loglet.watch(count)
    await append(loglet, 1)
    const twice = calls
    stop()
    await append(loglet, 2)
    assert.equal(twice % 2, 0)
    assert.equal(calls - twice, twice / 2)
  })

  test('a listener of watch() may read, append, and watch and stop watching', async (t) => {
    const loglet = await newLoglet(await open(t))
    let appended: Promise<number> | undefined
    let read: Promise<unknown> | undefined
    const stop = loglet.watch(() => {
      stop()
      loglet.watch(() => undefined)
      appended = append(loglet, 'from the listener')
      read = readOnce(loglet, 1)
    })
    await append(loglet, 'first')
    assert.equal(await appended, 2)
    await read
    assert.deepEqual(await payloadsFrom(loglet, 1), ['first', 'from the listener'])
  })

  test('a listener of watch() that watches again is called once for each change', async (t) => {
    const loglet = await newLoglet(await open(t))
    let calls = 0
    const listener = (): void => {
      stop()
      stop = loglet.watch(listener)
      assert.ok(++calls < 100, 'called without end')
    }
    let stop = loglet.watch(listener)
    await append(loglet, 1)
    const once = calls
    await append(loglet, 2)
    stop()
    assert.ok(once > 0)
    assert.equal(calls, 2 * once)
  })

  test('the state is what is durable when it is read', async (t) => {
    const loglet = await newLoglet(await open(t))
    const pending = append(loglet, 1)
    assert.equal(loglet.state.tail, 1)
    await stateWhere(loglet, () => loglet.state.tail === 2)
    assert.equal(await pending, 1)
    assert.equal(loglet.state.ended, undefined)
  })
}
