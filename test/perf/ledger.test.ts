/** The ledger of the soak test must see every kind of loss. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { bodyOf, Ledger, Loss, type Found } from '../../perf/http/ledger.ts'

const single = (id: number): string => bodyOf('single', id)
const batch = (id: number): string[] => bodyOf('batch', id).match(/.{25}/g) ?? []

async function* there(...bodies: readonly string[]): AsyncGenerator<Found> {
  for (const [index, body] of bodies.entries()) yield { number: index + 1, body }
}

function ledger(): Ledger {
  const made = new Ledger()
  made.acknowledged('single', 1, 1)
  made.acknowledged('batch', 2, 2)
  made.acknowledged('single', 3, 6)
  return made
}

const ALL = [single(1), ...batch(2), single(3)]

describe('bodyOf()', () => {
  it('is 100 bytes, and no two are alike', () => {
    for (const kind of ['single', 'batch'] as const) {
      assert.equal(Buffer.byteLength(bodyOf(kind, 42)), 100)
      assert.notEqual(bodyOf(kind, 42), bodyOf(kind, 43))
    }
  })
})

describe('Ledger.check()', () => {
  it('is content when everything is there, and more that was not heard of', async () => {
    assert.equal(await ledger().check(there(...ALL)), 6)
    assert.equal(await ledger().check(there(...ALL, single(4), ...batch(5))), 11)
  })

  const losses: readonly (readonly [string, readonly string[], RegExp])[] = [
    ['the last record', ALL.slice(0, -1), /Only 5 records are there of 6/],
    ['everything', [], /Only 0 records/],
    [
      'a record whose place another one has',
      [single(9), ...ALL.slice(1)],
      /Record 1 is of request 9/,
    ],
    ['half of a batch at the end', [...ALL, ...batch(4).slice(0, 2)], /part 2 of batch 4/],
    ['the beginning of a batch', [...ALL, ...batch(4).slice(1)], /whose batch doesn't begin/],
    ['a part in the middle of a batch', [...ALL, ...batch(4).toSpliced(1, 1)], /part 1 of batch 4/],
    ['a record that is there twice', [...ALL, single(3)], /twice: request 3/],
    ['an altered record', [...ALL.slice(0, 5), single(3).replace('s', 't')], /Record 6 is altered/],
    ['a shortened record', [...ALL.slice(0, 5), single(3).slice(0, 50)], /Record 6 is altered/],
  ]
  for (const [what, bodies, message] of losses) {
    it(`sees ${what}`, async () => {
      await assert.rejects(ledger().check(there(...bodies)), (error) => {
        assert(error instanceof Loss)
        assert.match(error.message, message)
        return true
      })
    })
  }

  it('sees a gap in the numbers', async () => {
    const found = async function* (): AsyncGenerator<Found> {
      yield { number: 1, body: single(1) }
      yield { number: 3, body: single(2) }
    }
    await assert.rejects(new Ledger().check(found()), /Record 2 is missing; 3 comes next/)
  })

  it('sees one place that was acknowledged to two requests', () => {
    assert.throws(() => ledger().acknowledged('single', 9, 4), /Record 4 was given to 2 and 9/)
  })
})
