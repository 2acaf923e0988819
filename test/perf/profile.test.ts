/** What is read from a CPU profile. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { mostSpent, type Profile } from '../../perf/support/profile.ts'

function node(id: number, functionName: string, url = ''): Profile['nodes'][number] {
  return { id, callFrame: { functionName, url, lineNumber: id } }
}

const PROFILE: Profile = {
  nodes: [
    node(1, '(idle)'),
    node(2, 'append', 'file:///engine/log-store.js'),
    node(3, '(garbage collector)'),
    node(4, '', 'file:///engine/reserve.js'),
  ],
  samples: [1, 2, 1, 3, 2, 4],
  timeDeltas: [1000, 40, 1000, 20, 20, 20],
}

describe('mostSpent()', () => {
  it('adds up each function, leaves out idle time, and sorts', () => {
    assert.deepEqual(mostSpent(PROFILE, 10), [
      { where: 'append log-store.js:3', share: 0.6 },
      { where: '(garbage collector)', share: 0.2 },
      { where: '(anonymous) reserve.js:5', share: 0.2 },
    ])
  })

  it('gives no more than was asked for', () => {
    assert.equal(mostSpent(PROFILE, 1).length, 1)
  })
})
