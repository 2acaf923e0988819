/** The command line of the benchmarks. */
import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { describe, it } from 'node:test'
import { readArguments, selected } from '../../perf/support/arguments.ts'

describe('readArguments()', () => {
  it('has defaults, which a command may change', () => {
    const options = readArguments([])
    assert.deepEqual(options, {
      names: [],
      seconds: 4,
      rounds: 8,
      shrink: 1,
      dir: tmpdir(),
      profile: false,
      server: '',
    })
    assert.equal(readArguments([], { seconds: 30 })?.seconds, 30)
    assert.equal(readArguments([], { seconds: 30 })?.rounds, 8)
  })

  it('takes names, seconds and rounds', () => {
    const options = readArguments(['burst', '--seconds', '2.5', 'reopen', '--rounds=3'])
    assert.deepEqual(options?.names, ['burst', 'reopen'])
    assert.equal(options.seconds, 2.5)
    assert.equal(options.rounds, 3)
  })

  it('--quick makes everything short, unless it is told otherwise', () => {
    const quick = readArguments(['--quick', '--rounds', '5'])
    assert.equal(quick?.seconds, 0.4)
    assert.equal(quick.rounds, 5)
    assert.equal(quick.shrink, 100)
  })

  it('--help gives nothing to run', () => {
    assert.equal(readArguments(['--help']), undefined)
  })

  it('--server is for commands that have one', () => {
    assert.equal(readArguments(['--server', 'other'], { server: 'plain' })?.server, 'other')
    assert.equal(readArguments([], { server: 'plain' })?.server, 'plain')
    assert.throws(() => readArguments(['--server', 'other']), /HTTP only/)
  })

  it('refuses what makes no sense, and says what it takes', () => {
    assert.throws(() => readArguments(['--seconds', 'long']), /--seconds takes a number from/)
    assert.throws(() => readArguments(['--seconds', '']), /--seconds takes a number from/)
    assert.throws(() => readArguments(['--seconds', '0']), /--seconds takes a number from/)
    assert.throws(() => readArguments(['--rounds', '1.5']), /--rounds takes a whole number/)
    assert.throws(() => readArguments(['--dir', '/no/such/folder']), /--dir takes a directory/)
    assert.throws(() => readArguments(['--fast']), /--fast/)
  })
})

describe('selected()', () => {
  const all = [{ name: 'append-1' }, { name: 'append-16' }, { name: 'read-back' }]

  it('is everything when nothing is named', () => {
    assert.deepEqual(selected(all, []), all)
  })

  it('goes by parts of names, but by whole names first', () => {
    assert.deepEqual(selected(all, ['append']), all.slice(0, 2))
    assert.deepEqual(selected(all, ['append-1']), all.slice(0, 1))
    assert.deepEqual(selected(all, ['16', 'read']), all.slice(1))
    assert.deepEqual(selected(all, ['read', 'append-1']), [all[0], all[2]])
  })

  it('tells what there is when nothing is found', () => {
    assert.throws(() => selected(all, ['read', 'write']), /Nothing is called write[^]*read-back/)
  })
})
