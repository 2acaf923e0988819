/** The options of a store: each default, each range, each type, and what must agree. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  resolveStoreOptions,
  SILENT,
  STORE_OPTION_NAMES,
  type ResolvedStoreOptions,
  type StoreOptions,
} from '../../engine/options.ts'
import { thrown } from '../support/expect-error.ts'

const KIB = 1024
const MIB = 1024 * KIB
const GIB = 1024 * MIB

/** Name, default, least and greatest of every limit. */
const LIMITS: [keyof ResolvedStoreOptions, number, number, number][] = [
  ['lockTimeoutMs', 0, 0, 2 ** 31 - 1],
  ['segmentSizeBytes', 64 * MIB, 64 * KIB, GIB],
  ['maxRecordBytes', 16 * MIB, 1, 512 * MIB],
  ['maxBatchBytes', 32 * MIB, 1, 512 * MIB],
  ['batchCommitCount', 5000, 1, 100_000],
  ['batchCommitBytes', 8 * MIB, 1, 512 * MIB],
  ['batchCommitDelayMs', 0, 0, 60_000],
  ['queueBytes', 64 * MIB, 1, GIB],
  ['reserveBytes', MIB, 4 * KIB, 64 * MIB],
  ['indexCacheBytes', 32 * MIB, 0, GIB],
]

function resolve(options: Record<string, unknown>): ResolvedStoreOptions {
  return resolveStoreOptions({ dir: 'store', ...options })
}

function refuse(options: unknown, message: RegExp): void {
  const error = thrown(() => resolveStoreOptions(options as StoreOptions), 'INVALID_OPTION')
  assert.match(error.message, message)
}

describe('resolveStoreOptions()', () => {
  test('fills in every default, and freezes', () => {
    const options = resolve({})
    const limits = Object.fromEntries(LIMITS.map(([name, value]) => [name, value]))
    const rest = { dir: 'store', readOnly: false, commitMode: 'async', logger: SILENT }
    assert.deepEqual({ ...options }, { ...limits, ...rest })
    assert.ok(Object.isFrozen(options))
    assert.deepEqual([...STORE_OPTION_NAMES].sort(), Object.keys(options).sort())
  })

  test('takes undefined for a default', () => {
    const undefinedOnes = Object.fromEntries(STORE_OPTION_NAMES.map((name) => [name, undefined]))
    assert.deepEqual(resolve({ ...undefinedOnes, dir: 'store' }), resolve({}))
  })

  for (const [name, , min, max] of LIMITS) {
    test(`takes ${name} from ${min} to ${max}, whole numbers only`, () => {
      const others = { maxBatchBytes: 512 * MIB, [name]: min }
      assert.equal(resolve(name === 'maxBatchBytes' ? { [name]: min } : others)[name], min)
      assert.equal(resolve({ maxBatchBytes: 512 * MIB, [name]: max })[name], max)
      const message = new RegExp(`${name} must be a whole number from ${min} to ${max}`)
      const wrong = [min - 1, max + 1, min + 0.5, NaN, Infinity, -Infinity, '1000', null, true, {}]
      for (const value of wrong) refuse({ dir: 'store', [name]: value }, message)
    })
  }

  test('takes 64 KiB segments with all other defaults', () => {
    assert.equal(resolve({ segmentSizeBytes: 64 * KIB }).segmentSizeBytes, 64 * KIB)
  })

  test('refuses a record that does not fit a batch when both were asked for', () => {
    refuse(
      { dir: 'store', maxRecordBytes: 2 * MIB, maxBatchBytes: MIB },
      /maxRecordBytes \(2097152\) must not be greater than maxBatchBytes \(1048576\)/,
    )
    assert.equal(resolve({ maxRecordBytes: MIB, maxBatchBytes: MIB }).maxRecordBytes, MIB)
  })

  test('lets a default give way to a limit that was asked for', () => {
    assert.equal(resolve({ maxBatchBytes: MIB }).maxRecordBytes, MIB)
    assert.equal(resolve({ maxRecordBytes: 100 * MIB }).maxBatchBytes, 100 * MIB)
    assert.equal(resolve({ maxRecordBytes: MIB }).maxBatchBytes, 32 * MIB)
  })

  test('refuses an option that there is not, by name', () => {
    refuse({ dir: 'store', segmentSize: 1 }, /no option "segmentSize"/)
    refuse({ dir: 'store', toString: 1 }, /no option "toString"/)
  })

  test('refuses what is no object', () => {
    for (const options of [undefined, null, 'store', 7, () => undefined]) {
      refuse(options, /must be an object|must be a path/)
    }
  })

  test('refuses a dir that is no path', () => {
    for (const dir of [undefined, null, '', 7, 'a\0b', {}]) refuse({ dir }, /dir must be a path/)
  })

  test('refuses flags, modes and loggers of the wrong kind', () => {
    for (const readOnly of [null, 0, 'false']) {
      refuse({ dir: 'store', readOnly }, /readOnly must be true or false/)
    }
    for (const commitMode of [null, 'sync', 'ASYNC', 1]) {
      refuse({ dir: 'store', commitMode }, /commitMode must be one of async, inline/)
    }
    const info = (): void => undefined
    const bad = [null, {}, { info, warn: info }, { info, warn: info, error: 'no' }, info]
    for (const logger of bad) {
      refuse({ dir: 'store', logger }, /logger must have info, warn and error/)
    }
    assert.equal(resolve({ logger: console }).logger, console)
  })
})
