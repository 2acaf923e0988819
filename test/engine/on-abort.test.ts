/** Many listeners on one signal, and none left behind. */
import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { describe, test } from 'node:test'
import { onAbort } from '../../engine/on-abort.ts'

function listenersOf(signal: AbortSignal): number {
  return getEventListeners(signal, 'abort').length
}

describe('onAbort()', () => {
  test('calls each listener once when the signal aborts', () => {
    const controller = new AbortController()
    let calls = 0
    const count = (): void => {
      calls++
    }
    onAbort(controller.signal, count)
    onAbort(controller.signal, count)
    controller.abort()
    assert.equal(calls, 2)
    assert.equal(listenersOf(controller.signal), 0)
  })

  test('adds one event listener for a thousand listeners, without a warning', async () => {
    const warnings: Error[] = []
    const warn = (warning: Error): void => {
      warnings.push(warning)
    }
    process.on('warning', warn)
    const { signal } = new AbortController()
    const stops = Array.from({ length: 1000 }, () => onAbort(signal, () => undefined))
    assert.equal(listenersOf(signal), 1)
    for (const stop of stops) stop()
    assert.equal(listenersOf(signal), 0)
    await new Promise((resolve) => setImmediate(resolve))
    process.off('warning', warn)
    assert.deepEqual(warnings, [])
  })

  test('does not call a listener that was taken back, whoever is left', () => {
    const controller = new AbortController()
    const called: string[] = []
    const stop = onAbort(controller.signal, () => called.push('gone'))
    onAbort(controller.signal, () => called.push('left'))
    stop()
    stop()
    controller.abort()
    stop()
    assert.deepEqual(called, ['left'])
  })

  test('serves a signal again after the last listener was taken back', () => {
    const controller = new AbortController()
    onAbort(controller.signal, () => assert.fail('it was taken back'))()
    let called = false
    onAbort(controller.signal, () => {
      called = true
    })
    controller.abort()
    assert.ok(called)
  })

  test('lets a listener take others back while it is called', () => {
    const controller = new AbortController()
    const called: string[] = []
    const stops: (() => void)[] = []
    for (const name of ['a', 'b', 'c']) {
      stops.push(
        onAbort(controller.signal, () => {
          called.push(name)
          for (const stop of stops) stop()
        }),
      )
    }
    controller.abort()
    assert.deepEqual(called.slice(0, 1), ['a'])
    assert.equal(listenersOf(controller.signal), 0)
  })
})
