/**
 * The order of writes, syncs and acknowledgements on real files, as the kernel saw it: what a
 * killed process can't show. Each rule is also held against a trace that was doctored to break it.
 */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import {
  readTrace,
  tokenOf,
  traceChild,
  whyNoTrace,
  type SystemCall,
  type TraceOptions,
} from './trace.ts'
import {
  blockingLocks,
  earlyUnlinks,
  lateUncleanMark,
  metadataInPlace,
  missingRewrite,
  Trace,
  unnamedSegments,
  unsyncedAcks,
  unsyncedRenames,
} from './trace-rules.ts'

const APPENDS = 240
const excuse = whyNoTrace()
if (excuse !== undefined && process.env['BIFROST_LONG'] !== undefined) {
  throw new Error(`The trace of system calls is wanted: ${excuse}`)
}

const RULES = [unsyncedAcks, unnamedSegments, unsyncedRenames, blockingLocks, metadataInPlace]

function assertSound(trace: Trace): void {
  for (const rule of RULES) assert.deepEqual(rule(trace).slice(0, 5), [], rule.name)
}

describe('a trace of system calls', { skip: excuse ?? false }, () => {
  const scratch = mkdtempSync(join(realpathSync(tmpdir()), 'bifrost-trace-'))
  const dir = join(scratch, 'store')
  /** Of a new store, from its first open to its close. */
  let first: Trace

  function trace(options: Omit<TraceOptions, 'dir'>, store = dir): Trace {
    mkdirSync(store, { recursive: true })
    const existing = readdirSync(store)
    const calls = readTrace(traceChild(scratch, { dir: store, ...options }))
    return new Trace(calls, store, existing, options.end === 'die')
  }

  before(() => {
    first = trace({ firstToken: 1, end: 'close' })
  })
  after(() => {
    rmSync(scratch, { recursive: true, force: true })
  })

  it('shows every acknowledgement after the synced write that carries its record', () => {
    assert.equal(first.acks.length, APPENDS + 1)
    assert.ok(first.created().size > 3, 'the store has rolled')
    assert.ok(first.renames().length > 3, 'metadata was written')
    assert.ok(first.unlinksOfSegments().length > 0, 'space was given back')
    assertSound(first)
    assert.deepEqual(earlyUnlinks(first), [])
  })

  it('shows one write for each commit, which is its own sync', () => {
    const carriers = new Set(first.acks.flatMap(({ write }) => write?.call ?? []))
    const commits = new Set(first.commits().map(({ call }) => call))
    for (const call of carriers) assert.ok(commits.has(call), call.args)
    assert.ok(carriers.size < APPENDS, 'several records share a write')
    const files = new Set([...carriers].map(({ path }) => path))
    const syncs = first.calls.filter(({ name, path }) => name === 'fdatasync' && files.has(path))
    // The zeros of a segment are synced once, when it is made; its commits need no more.
    assert.ok(syncs.length <= files.size, `${syncs.length} syncs of ${files.size} segments`)
  })

  it('shows the same for commits that block the thread', () => {
    const options = { commitMode: 'inline', firstToken: 1, end: 'close' } as const
    const inline = trace(options, join(scratch, 'inline'))
    assert.equal(inline.acks.length, APPENDS + 1)
    assertSound(inline)
    assert.deepEqual(earlyUnlinks(inline), [])
  })

  it('shows that the clean mark is gone before a store is written to again', () => {
    const second = trace({ firstToken: 1001, end: 'die' })
    assert.equal(second.acks.length, APPENDS)
    assertSound(second)
    assert.deepEqual(lateUncleanMark(second), [])
    const unmarked = second.calls.filter(({ name }) => !name.startsWith('rename'))
    assert.equal(lateUncleanMark(new Trace(unmarked, dir)).length, 1)
  })

  it('shows that the tail is written again and synced after a kill', () => {
    const lastToken = tokenOf(1000 + APPENDS)
    const third = trace({ firstToken: 2001, end: 'close' })
    assertSound(third)
    assert.deepEqual(missingRewrite(third, lastToken), [])
    for (const [missing, problem] of [
      ['ftruncate', /was not cut/],
      ['fdatasync', /the tail was not synced/],
      ['fsync', /the directory was not synced/],
      ['pwrite64', /was not written again/],
    ] as const) {
      const others = third.calls.filter(({ name }) => name !== missing)
      const problems = missingRewrite(new Trace(others, dir), lastToken)
      assert.match(problems.join(), problem)
    }
  })

  describe('that was doctored', () => {
    const isDirectorySync = ({ name, path }: SystemCall): boolean =>
      name === 'fsync' && path === dir
    const isCarrier = ({ path, args }: SystemCall): boolean =>
      path.endsWith('.segment') && args.includes(tokenOf(7))
    const change = (
      isMeant: (call: SystemCall) => boolean,
      changes: (call: SystemCall) => Partial<SystemCall>,
    ): SystemCall[] =>
      first.calls.map((call) => (isMeant(call) ? { ...call, ...changes(call) } : call))
    const without = (isMeant: (call: SystemCall) => boolean): SystemCall[] =>
      first.calls.filter((call) => !isMeant(call))

    const cases: readonly [string, () => SystemCall[], RegExp][] = [
      [
        'has no O_DSYNC',
        () =>
          change(
            ({ name }) => name === 'openat',
            ({ args }) => ({ args: args.replace('|O_DSYNC', '') }),
          ),
        /token-\d+ is acknowledged, and what carries it was synced never/,
      ],
      [
        'has an acknowledgement before the write',
        () =>
          change(
            ({ args }) => args.includes(`ack ${tokenOf(100)}`),
            () => ({ start: 0, end: 0 }),
          ),
        /token-000100 is acknowledged, and what carries it was synced later/,
      ],
      [
        'has an acknowledgement and no write',
        () => without(isCarrier),
        /token-000007 is acknowledged, and was written nowhere/,
      ],
      [
        'has an acknowledgement after a short write',
        () => change(isCarrier, () => ({ result: 100 })),
        /token-000007 is acknowledged, and what carries it was synced never/,
      ],
      [
        'has no directory syncs',
        () => without(isDirectorySync),
        /the name of 0+1\.segment was not synced/,
      ],
      [
        'has unsynced metadata',
        () => without(({ name, path }) => name === 'fdatasync' && path.endsWith('metadata.new')),
        /metadata was renamed before it was synced/,
      ],
      [
        'has no metadata',
        () => without(({ name }) => name.startsWith('rename')),
        /no metadata vouched for 0+1\.segment/,
      ],
      [
        'has a lock that blocks',
        () =>
          change(
            ({ name }) => name === 'flock',
            ({ args }) => ({ args: args.replace('|LOCK_NB', '') }),
          ),
        /a lock that blocks/,
      ],
      ['has no lock', () => without(({ name }) => name === 'flock'), /nothing is locked/],
      [
        'has a lock that comes late',
        () =>
          change(
            ({ name }) => name === 'flock',
            () => ({ start: Infinity, end: Infinity }),
          ),
        /opened before it was locked/,
      ],
    ]
    for (const [what, doctor, expected] of cases) {
      it(`breaks a rule if it ${what}`, () => {
        const doctored = new Trace(doctor(), dir)
        const problems = RULES.flatMap((rule) => rule(doctored))
        assert.ok(
          problems.some((problem) => expected.test(problem)),
          problems.join('\n'),
        )
      })
    }

    it('breaks a rule if it unlinks what no group has said to be dead', () => {
      const early = change(
        ({ name }) => name.startsWith('unlink'),
        () => ({ start: 1, end: 1 }),
      )
      assert.match(earlyUnlinks(new Trace(early, dir)).join(), /before a group said/)
    })
  })
})
