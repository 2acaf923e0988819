/** Tables and figures as they are printed. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  byteSize,
  count,
  duration,
  plural,
  quartiles,
  ratio,
  rounded,
} from '../../perf/support/figures.ts'
import { table } from '../../perf/support/table.ts'

describe('table', () => {
  it('aligns the first column to the left and the others to the right', () => {
    const rows = [
      ['a long name', '1'],
      ['b', '1,000,000'],
    ]
    assert.equal(
      table(['Case', 'records/s'], rows),
      [
        '| Case        | records/s |',
        '| ----------- | --------: |',
        '| a long name |         1 |',
        '| b           | 1,000,000 |',
      ].join('\n'),
    )
  })

  it('fills up rows that have too few cells', () => {
    assert.equal(
      table(['A', 'B'], [['x']])
        .split('\n')
        .at(-1),
      '| x   |     |',
    )
  })
})

describe('figures', () => {
  it('duration() takes the unit that is easiest to read', () => {
    assert.equal(duration(0.0842), '84.2 µs')
    assert.equal(duration(1.5), '1.5 ms')
    assert.equal(duration(123.4), '123 ms')
    assert.equal(duration(3100), '3.1 s')
    assert.equal(duration(-0.02), '-20 µs')
  })

  it('rounded() keeps three digits below a hundred and commas above', () => {
    assert.equal(rounded(0), '0')
    assert.equal(rounded(0.84219), '0.842')
    assert.equal(rounded(12.345), '12.3')
    assert.equal(rounded(1204.4), '1,204')
  })

  it('count(), byteSize(), plural(), ratio() and quartiles() say what they mean', () => {
    assert.equal(count(1_234_567.8), '1,234,568')
    assert.equal(byteSize(100), '100 B')
    assert.equal(byteSize(16_384), '16 KiB')
    assert.equal(plural(1, 'kill'), '1 kill')
    assert.equal(plural(2048, 'caller'), '2,048 callers')
    assert.equal(ratio(0.9), '0.90')
    assert.equal(quartiles({ median: 1, low: 0.876, high: 1.5 }, ratio), '0.88–1.50')
  })
})
