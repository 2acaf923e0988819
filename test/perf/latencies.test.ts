/** Latencies that travel between processes. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Latencies, merged } from '../../perf/support/latencies.ts'

/** Three significant digits. */
function assertNear(actual: number, expected: number): void {
  assert(Math.abs(actual - expected) <= expected / 500, `${actual} is not near ${expected}`)
}

describe('Latencies', () => {
  it('percentiles() are exact to three digits from microseconds to seconds', () => {
    const latencies = new Latencies()
    for (let index = 1; index <= 1000; index++) latencies.record(index / 1000)
    latencies.record(5000)
    const { count, p50, p99, p999, max } = latencies.percentiles()
    assert.equal(count, 1001)
    assertNear(p50, 0.501)
    assertNear(p99, 0.991)
    assertNear(p999, 1)
    assertNear(max, 5000)
  })

  it('merged() is as if all had been recorded in one', () => {
    const [some, others, all] = [new Latencies(), new Latencies(), new Latencies()]
    for (let index = 1; index <= 500; index++) {
      const side = index % 3 === 0 ? some : others
      side.record(index)
      all.record(index)
    }
    const ofBoth = merged([some.encode(), others.encode()]).percentiles()
    assert.deepEqual(ofBoth, merged([all.encode()]).percentiles())
    assert.equal(ofBoth.count, 500)
  })

  it('record() takes what is out of range as the nearest that is in it', () => {
    const latencies = new Latencies()
    latencies.record(0)
    latencies.record(3_600_000)
    assert.equal(latencies.percentiles().count, 2)
    assertNear(latencies.percentiles().max, 60_000)
  })
})
