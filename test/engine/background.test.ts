/** Work beside commits: counted, its failures logged, nothing left unhandled. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { logError } from '../../codec/errors.ts'
import { Background } from '../../engine/background.ts'
import { turn } from '../support/test-store.ts'

function logged(): {
  readonly warnings: [object, string][]
  readonly background: Background
} {
  const warnings: [object, string][] = []
  const background = new Background({
    info: () => assert.fail('nothing to say'),
    warn: (fields, message) => warnings.push([fields, message]),
    error: () => assert.fail('nothing so bad'),
  })
  return { warnings, background }
}

describe('Background', () => {
  test('idle() resolves at once when nothing runs', async () => {
    await logged().background.idle()
  })

  test('idle() waits for all that runs, and for what that leads to', async () => {
    const { background } = logged()
    const done: string[] = []
    background.run('The first', async () => {
      await turn()
      background.run('The second', async () => {
        await turn()
        done.push('second')
      })
      done.push('first')
    })
    await background.idle()
    assert.deepEqual(done, ['first', 'second'])
  })

  test('run() logs a failure under what it is, and goes on', async () => {
    const { background, warnings } = logged()
    const err = new Error('EIO')
    background.run('Writing the metadata', () => Promise.reject(err))
    await background.idle()
    assert.deepEqual(warnings, [[{ err }, 'Writing the metadata failed; it is tried again']])
  })

  test('run() says nothing of what ends because the store is closed or has failed', async () => {
    const { background, warnings } = logged()
    for (const code of ['CLOSED', 'STORE_FAILED'] as const) {
      background.run('Something', () => Promise.reject(logError(code, 'x')))
    }
    await background.idle()
    assert.deepEqual(warnings, [])
  })
})
