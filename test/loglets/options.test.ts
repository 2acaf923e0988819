/** The options of a store and of its members: defaults, ranges, and what is refused. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { BifrostOptions } from '../../loglets/options.ts'
import { requireLogId, resolveBifrostOptions } from '../../loglets/options.ts'
import { resolveReaderOptions } from '../../loglets/reader-options.ts'
import { thrown } from '../support/expect-error.ts'

const STRANGE_IDS = ['../x', ':', '/', '..', '\n', ' ', '🦉', '__proto__', 'x'.repeat(255)]
const WRONG_IDS: unknown[] = [
  '',
  'x'.repeat(256),
  '🦉'.repeat(64),
  '\ud800',
  'a\udc00b',
  1,
  null,
  undefined,
  {},
  ['a'],
  Symbol('a'),
]

describe('resolveBifrostOptions()', () => {
  test('fills in the documented defaults', () => {
    const resolved = resolveBifrostOptions({ dir: 'data' })
    assert.equal(resolved.provider, 'local')
    assert.deepEqual(resolved.logs, [])
    assert.equal(resolved.readAheadBytes, 256 * 1024)
    assert.equal(resolved.store.dir, 'data')
    assert.equal(resolved.store.maxRecordBytes, 16 * 1024 * 1024)
    assert.ok(Object.isFrozen(resolved) && Object.isFrozen(resolved.logs))
  })

  test('requires a directory for the provider on disk only', () => {
    thrown(() => resolveBifrostOptions({}), 'INVALID_OPTION')
    thrown(() => resolveBifrostOptions({ dir: '' }), 'INVALID_OPTION')
    thrown(() => resolveBifrostOptions({ dir: undefined }), 'INVALID_OPTION')
    assert.equal(resolveBifrostOptions({ provider: 'memory' }).provider, 'memory')
  })

  test('takes options that are given as undefined for those that are not given', () => {
    const options = { dir: 'x', provider: undefined, logs: undefined, readAheadBytes: undefined }
    assert.deepEqual(resolveBifrostOptions(options), resolveBifrostOptions({ dir: 'x' }))
  })

  test('refuses unknown options, wrong types and values out of range', () => {
    const wrong: unknown[] = [
      undefined,
      null,
      'data',
      { dir: 'x', dirr: 'y' },
      { dir: 'x', provider: 'rocksdb' },
      { dir: 'x', logs: 'orders' },
      { dir: 'x', logs: ['a', ''] },
      { dir: 'x', logs: [, 'a'] },
      { dir: 'x', readAheadBytes: 0 },
      { dir: 'x', readAheadBytes: 1.5 },
      { dir: 'x', readAheadBytes: 2 ** 31 },
      { dir: 'x', queueBytes: '1' },
      { dir: 'x', readOnly: 1 },
      { dir: 'x', logger: {} },
      { provider: 'memory', readOnly: true },
    ]
    for (const options of wrong) {
      thrown(() => resolveBifrostOptions(options as BifrostOptions), 'INVALID_OPTION')
    }
  })

  test('captures the logs, each once', () => {
    const logs = ['b', 'a', 'b']
    const resolved = resolveBifrostOptions({ dir: 'x', logs })
    logs.push('c')
    assert.deepEqual(resolved.logs, ['b', 'a'])
  })
})

describe('requireLogId()', () => {
  test('takes any well-formed string of 1 to 255 bytes', () => {
    for (const id of STRANGE_IDS) assert.equal(requireLogId(id), id)
  })

  test('refuses everything else', () => {
    for (const id of WRONG_IDS) thrown(() => requireLogId(id), 'INVALID_OPTION')
  })
})

describe('resolveReaderOptions()', () => {
  test('starts at the oldest record and follows, unless told otherwise', () => {
    assert.deepEqual(resolveReaderOptions(), {
      start: { from: 1 },
      refusal: undefined,
      to: Infinity,
      follow: true,
      keys: undefined,
      throwsGaps: false,
      signal: undefined,
    })
    assert.deepEqual(resolveReaderOptions({ after: 0 }).start, { from: 1 })
    assert.deepEqual(resolveReaderOptions({ after: 7 }).start, { from: 8 })
    assert.deepEqual(resolveReaderOptions({ last: 3 }).start, { last: 3 })
  })

  test('refuses unknown options and wrong types', () => {
    const wrong: unknown[] = [
      null,
      1,
      { form: 1 },
      { from: 1.5 },
      { from: '1' },
      { from: NaN },
      { from: 1n },
      { after: 0.5 },
      { to: Infinity },
      { last: -1 },
      { last: 1.5 },
      { follow: 'yes' },
      { keys: 'a' },
      { keys: [1] },
      { gaps: 'skip' },
      { signal: {} },
      { from: 1, after: 0 },
      { from: 1, last: 1 },
      { after: 1, last: 1 },
    ]
    for (const options of wrong) {
      thrown(() => resolveReaderOptions(options as object), 'INVALID_OPTION')
    }
  })

  test('leaves what is a number but no LSN to the first read', () => {
    for (const options of [
      { from: 0 },
      { from: -1 },
      { after: -1 },
      { from: 2 ** 53 },
      { after: Number.MAX_SAFE_INTEGER },
      { to: -1 },
      { to: 2 ** 60 },
    ]) {
      assert.equal(resolveReaderOptions(options).refusal?.code, 'INVALID_LSN')
    }
    assert.equal(resolveReaderOptions({ from: Number.MAX_SAFE_INTEGER }).refusal, undefined)
  })
})
