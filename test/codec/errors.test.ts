/** The error that users meet: codes, fields, names and causes. */
import assert from 'node:assert/strict'
import { inspect } from 'node:util'
import { describe, test } from 'node:test'
import { aborted, LogError, logError, sealed, tailMismatch } from '../../codec/errors.ts'

describe('logError()', () => {
  test('makes an Error with a code, a message and a stack', () => {
    const error = logError('UNKNOWN_LOG', 'There is no log "orders"')
    assert.ok(error instanceof Error && error instanceof LogError)
    assert.equal(error.code, 'UNKNOWN_LOG')
    assert.equal(error.message, 'There is no log "orders"')
    assert.match(error.stack ?? '', /errors\.test/)
    assert.ok(!Object.hasOwn(error, 'cause'))
  })

  test('passes the cause on, also one that is undefined', () => {
    const cause = new Error('EIO')
    assert.equal(logError('READ_FAILED', 'x', { cause }).cause, cause)
    assert.ok(Object.hasOwn(logError('READ_FAILED', 'x', { cause: undefined }), 'cause'))
  })

  test('carries the fields of its code, and no others', () => {
    const fields = {
      file: '0000000001.segment',
      position: 96,
      label: 'R4',
      logs: [{ logId: 'orders', from: 50, to: 50 }],
    }
    const error = logError('CORRUPT', 'x', { fields })
    assert.deepEqual(Object.assign({}, error), { code: 'CORRUPT', retryable: false, ...fields })
  })

  test('says that the very same call may succeed later only where that is so', () => {
    const retryable = ['QUEUE_FULL', 'LOCKED', 'OPEN_FAILED', 'READ_FAILED', 'WRITE_FAILED']
    const others = ['CORRUPT', 'STORE_FAILED', 'CLOSED', 'ABORTED', 'SEALED', 'TRIMMED']
    for (const code of [...retryable, ...others]) {
      const error = logError(code as 'CLOSED', 'x')
      assert.equal(error.retryable, retryable.includes(code), code)
    }
  })

  test('is called LogError, and AbortError when it is an abort', () => {
    assert.equal(logError('CLOSED', 'x').name, 'LogError')
    assert.equal(logError('ABORTED', 'x').name, 'AbortError')
    assert.ok(!Object.keys(logError('ABORTED', 'x')).includes('name'))
    assert.match(inspect(logError('CLOSED', 'The store is closed')), /The store is closed/)
  })
})

describe('LogError.is()', () => {
  test('matches the code, and narrows to its fields', () => {
    const error: unknown = tailMismatch(7, 9)
    assert.ok(LogError.is(error, 'TAIL_MISMATCH'))
    assert.equal(error.tail, 9)
    assert.ok(!LogError.is(error, 'SEALED'))
  })

  test('is false of what only looks like one', () => {
    const fake = Object.assign(new Error('x'), { code: 'CLOSED' })
    for (const value of [fake, { code: 'CLOSED' }, null, undefined, 'CLOSED']) {
      assert.equal(LogError.is(value, 'CLOSED'), false)
    }
  })
})

describe('aborted()', () => {
  test("has the signal's reason as its cause", () => {
    const reason = new Error('the user went away')
    const error = aborted(AbortSignal.abort(reason))
    assert.equal(error.code, 'ABORTED')
    assert.equal(error.name, 'AbortError')
    assert.equal(error.cause, reason)
  })
})

describe('sealed() and tailMismatch()', () => {
  test('say where the tail is, and why', () => {
    const moved = sealed(42, 'moved')
    assert.deepEqual([moved.code, moved.tail, moved.reason], ['SEALED', 42, 'moved'])
    assert.match(moved.message, /42.*moved/)
    assert.equal(sealed(42, undefined).reason, undefined)
    assert.match(tailMismatch(7, 9).message, /7.*9/)
  })
})
