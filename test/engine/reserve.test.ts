/** The next segment's file: made ahead, named, grown, rolled to, and what happens on the way. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { describe, test } from 'node:test'
import { NodeFileSystem } from '../../engine/node-file-system.ts'
import { rejection } from '../support/expect-error.ts'
import { FaultFileSystem } from '../support/fault-file-system.ts'
import type { Operation, TraceEntry } from '../support/faults.ts'
import { fillDisk, isGrowth } from '../support/full-disk.ts'
import { numbered, TestStore, turn } from '../support/test-store.ts'

const SMALL = { segmentSizeBytes: 64 * 1024, reserveBytes: 4096 }
/** More than a segment takes, so that the next group rolls. */
const FILLING = new Uint8Array(66 * 1024)

const isOf = (file: string, kind: Operation['kind']) => (operation: Operation) =>
  operation.kind === kind && operation.path.endsWith(file)

/** A commit at the end of a segment; a put-back starts at the start of a page. */
const isAppendTo = (file: string) => (operation: Operation) =>
  isOf(file, 'commit')(operation) && (operation.position ?? 0) % 4096 !== 0

/** The operations on a file, or the directory, in the order in which they ended. */
function stepsOn(trace: readonly TraceEntry[], ...files: readonly string[]): string[] {
  return trace
    .filter(({ path }) => files.some((file) => path.endsWith(file)))
    .map(({ kind, path }) => `${kind} ${path.slice(path.lastIndexOf('/') + 1)}`)
}

describe('Reserve', () => {
  test('prepare() has the file synced and its name durable before the metadata names it', async (t) => {
    const store = await TestStore.open(t)
    const before = store.faults.trace.length
    await store.store.createLogs(['log'])
    await store.whenQuiet()
    const dirName = store.dir.slice(store.dir.lastIndexOf('/') + 1)
    const second = '0000000002.segment'
    const steps = stepsOn(store.faults.trace.slice(before), second, 'metadata.new', dirName)
    const from = steps.indexOf(`open ${second}`)
    const ofReserve = steps.slice(from).filter((step) => !step.startsWith('size'))
    const names = ofReserve.slice(0, ofReserve.lastIndexOf('rename metadata.new'))
    const at = (step: string): number => names.indexOf(step)
    assert.ok(at(`write ${second}`) < at(`sync ${second}`), names.join(', '))
    const synced = names.indexOf(`syncDirectory ${dirName}`, at(`sync ${second}`))
    assert.ok(synced > at(`sync ${second}`), names.join(', '))
    assert.ok(names.lastIndexOf('open metadata.new') > synced, names.join(', '))
  })

  test('prepare() fills the file with zeros for a snapshot and reserveBytes', async (t) => {
    const store = await TestStore.open(t, { logs: ['log'], reserveBytes: 64 * 1024 })
    await store.whenQuiet()
    const bytes = fs.readFileSync(store.segmentPath(2))
    assert.ok(bytes.length > 64 * 1024)
    assert.ok(bytes.every((byte) => byte === 0))
  })

  test('prepare() is not called before anything was written', async (t) => {
    const store = await TestStore.open(t)
    await store.whenQuiet()
    assert.ok(!fs.existsSync(store.segmentPath(1)))
  })

  test('growSoon() gives a roll the grown file when the state grew while it was being named', async (t) => {
    const store = await TestStore.open(t, { logs: ['log'], ...SMALL })
    await store.whenQuiet()
    await store.append('log', FILLING)
    const hold = store.hold(isOf('metadata.new', 'rename'))
    await store.append('log', 'the first of segment 2')
    await hold.reached
    const logs = numbered(1500).map((name) => `a log with a long name, ${name}`)
    await store.store.createLogs(logs)
    const rolled = store.append('log', 'the first of segment 3')
    await turn()
    hold.release()
    assert.equal(await rolled, 3)
    await store.whenQuiet()
    assert.ok(fs.statSync(store.segmentPath(4)).size > logs.length * 48)
    assert.deepEqual(await store.payloads('log', 2), [
      'the first of segment 2',
      'the first of segment 3',
    ])
  })

  test('growSoon() adds zeros behind those that are there, and syncs them', async (t) => {
    const store = await TestStore.open(t, { logs: ['log'], ...SMALL })
    await store.whenQuiet()
    const { size } = fs.statSync(store.segmentPath(2))
    const before = store.faults.trace.length
    await store.store.createLogs(numbered(300).map((name) => `a log with a long name, ${name}`))
    await store.whenQuiet()
    const steps = store.faults.trace.slice(before).filter(isOf('0000000002.segment', 'write'))
    assert.equal(steps[0]?.position, size, 'the zeros that were synced are not written again')
    assert.ok(fs.statSync(store.segmentPath(2)).size > size)
    const synced = store.faults.trace.slice(before).some(isOf('0000000002.segment', 'sync'))
    assert.ok(synced)
  })

  test('prepare() prepares the segment after it when it was rolled to while it was being named', async (t) => {
    const store = await TestStore.open(t, { logs: ['log'], ...SMALL })
    await store.append('log', 'a record')
    await store.whenQuiet()
    await store.append('log', FILLING)
    await store.append('log', 'the first of segment 2')
    await store.whenQuiet()
    await store.append('log', FILLING)
    await store.append('log', 'the first of segment 3')
    const hold = store.hold(isOf('metadata.new', 'rename'))
    // The current segment takes nothing more, so that the trim goes to the reserve unnamed.
    const full = store.faults.fail(isAppendTo('0000000003.segment'), { code: 'ENOSPC' }, Infinity)
    await hold.reached
    const append = store.append('log', 'no room')
    const trim = store.trim('log', 1)
    await rejection(append, 'WRITE_FAILED')
    assert.equal(await trim, 1)
    full.remove()
    hold.release()
    await store.whenQuiet()
    await store.append('log', FILLING)
    assert.equal(await store.append('log', 'the first of segment 5'), 7)
    assert.equal(store.store.failure, undefined)
  })

  test('prepare() rejects only the group that needs it when the file cannot be opened', async (t) => {
    const store = await TestStore.open(t, { logs: ['log'], ...SMALL })
    await store.whenQuiet()
    store.faults.fail(isOf('0000000003.segment', 'open'), { code: 'EMFILE' }, 2)
    await store.append('log', FILLING)
    await store.append('log', FILLING)
    await store.whenQuiet()
    const error = await rejection(store.append('log', 'needs segment 3'), 'WRITE_FAILED')
    assert.equal((error.cause as NodeJS.ErrnoException).code, 'EMFILE')
    assert.equal(await store.append('log', 'and gets it'), 3)
    assert.deepEqual(await store.payloads('log', 3), ['and gets it'])
  })

  test('prepareSoon() waits a second after a failure', async (t) => {
    const store = await TestStore.open(t)
    const opens = store.faults.fail(
      isOf('0000000002.segment', 'open'),
      { code: 'EMFILE' },
      Infinity,
    )
    await store.store.createLogs(['log'])
    await store.whenQuiet()
    await store.append('log', 1)
    await store.whenQuiet()
    assert.equal(opens.hits, 1)
    store.clock.tick(1000)
    await store.append('log', 2)
    await store.whenQuiet()
    assert.equal(opens.hits, 2)
  })

  test('prepare() writes all zeros again when their sync failed', async (t) => {
    const store = await TestStore.open(t)
    store.faults.fail(isOf('0000000002.segment', 'sync'), { code: 'EIO' })
    await store.store.createLogs(['log'])
    await store.whenQuiet()
    const before = store.faults.trace.length
    store.clock.tick(1000)
    await store.append('log', 1)
    await store.whenQuiet()
    const steps = store.faults.trace.slice(before)
    assert.equal(steps.find(isOf('0000000002.segment', 'write'))?.position, 0)
    assert.ok(steps.some(isOf('0000000002.segment', 'sync')))
  })

  test('growSoon() writes all zeros again when the sync of those it added failed', async (t) => {
    const store = await TestStore.open(t, { logs: ['log'], ...SMALL })
    await store.whenQuiet()
    store.faults.fail(isOf('0000000002.segment', 'sync'), { code: 'EIO' })
    await store.store.createLogs(numbered(300).map((name) => `a log with a long name, ${name}`))
    await store.whenQuiet()
    const before = store.faults.trace.length
    store.clock.tick(1000)
    await store.append('log', 1)
    await store.whenQuiet()
    const steps = store.faults.trace.slice(before)
    assert.equal(steps.find(isOf('0000000002.segment', 'write'))?.position, 0)
  })

  test('growSoon() keeps the file that there is when there is no room for more', async (t) => {
    const store = await TestStore.open(t, { logs: ['log'], ...SMALL })
    await store.append('log', 'a record')
    await store.whenQuiet()
    const full = fillDisk(store)
    await store.store.createLogs(numbered(40).map((name) => `${name} ${'x'.repeat(200)}`))
    await store.whenQuiet()
    assert.ok(full.hits > 0, 'it was tried to make it larger')
    // Nothing fits into the current segment any more: only the reserve is left.
    await rejection(store.append('log', FILLING), 'WRITE_FAILED')
    store.faults.fail(isAppendTo('0000000001.segment'), { code: 'ENOSPC' }, Infinity)
    assert.equal(await store.trim('log', 1), 1)
    assert.equal(store.store.failure, undefined)
  })

  test('prepare() takes the zeros that a full disk has, when there is no room for more', async (t) => {
    const first = await TestStore.open(t, { logs: ['log'], ...SMALL })
    await first.append('log', 'a record')
    const dir = await first.killed(t)
    const files = new FaultFileSystem(new NodeFileSystem())
    const full = files.faults.fail(isGrowth, { code: 'ENOSPC' }, Infinity)
    const again = await TestStore.open(t, { ...SMALL, dir, files, reserveBytes: 1 << 20 })
    await again.whenQuiet()
    assert.ok(full.hits > 0)
    files.faults.fail(isAppendTo('0000000001.segment'), { code: 'ENOSPC' }, Infinity)
    assert.equal(await again.trim('log', 1), 1)
  })

  test('growSoon() makes it larger once there is room', async (t) => {
    const store = await TestStore.open(t, { logs: ['log'], ...SMALL })
    await store.whenQuiet()
    const { size } = fs.statSync(store.segmentPath(2))
    const full = fillDisk(store)
    await store.store.createLogs(numbered(40).map((name) => `${name} ${'x'.repeat(200)}`))
    await store.whenQuiet()
    assert.equal(fs.statSync(store.segmentPath(2)).size, size)
    full.remove()
    store.clock.tick(1000)
    await store.append('log', 1)
    await store.whenQuiet()
    assert.ok(fs.statSync(store.segmentPath(2)).size > size)
  })

  test('prepare() trusts the zeros of a file that a clean close left', async (t) => {
    const first = await TestStore.open(t, { logs: ['log'] })
    await first.whenQuiet()
    await first.close()
    const again = await TestStore.open(t, { dir: first.dir })
    await again.append('log', 1)
    await again.whenQuiet()
    assert.ok(!again.faults.trace.some(isOf('0000000002.segment', 'write')))
  })
})
