/** Positions of records: what is one, and how those in loglets and logs belong together. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import {
  isRecordPosition,
  lsnOfOffset,
  MAX_POSITION,
  offsetOfLsn,
  OLDEST_POSITION,
} from '../../codec/offset.ts'
import { position } from '../support/codec-arbitraries.ts'

describe('isRecordPosition()', () => {
  test('is true from the oldest to the last whose tail is a safe integer', () => {
    assert.deepEqual([1, 2, MAX_POSITION].filter(isRecordPosition), [1, 2, MAX_POSITION])
    assert.equal(MAX_POSITION, 2 ** 53 - 2)
  })

  test('is false of everything else', () => {
    for (const value of [0, -1, 1.5, NaN, Infinity, MAX_POSITION + 1, '1', 1n, null, undefined]) {
      assert.equal(isRecordPosition(value), false, String(value))
    }
  })
})

describe('lsnOfOffset() and offsetOfLsn()', () => {
  test('are equal to each other while the base is the oldest LSN', () => {
    assert.equal(lsnOfOffset(OLDEST_POSITION, 7), 7)
    assert.equal(offsetOfLsn(OLDEST_POSITION, 7), 7)
  })

  test('count from the base, whose offset is 1', () => {
    assert.equal(lsnOfOffset(101, 1), 101)
    assert.equal(lsnOfOffset(101, 10), 110)
    assert.equal(offsetOfLsn(101, 101), 1)
  })

  test('undo each other', () => {
    fc.assert(
      fc.property(position, position, (base, offset) => {
        fc.pre(base + offset - 1 <= MAX_POSITION)
        assert.equal(offsetOfLsn(base, lsnOfOffset(base, offset)), offset)
      }),
    )
  })
})
