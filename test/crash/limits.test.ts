/** Nothing that goes to the kernel in one call reaches 2 GiB or 1,024 buffers, whatever the options. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FileSystem, OpenMode, StoreFile } from '../../engine/file-system.ts'
import { NodeFileSystem } from '../../engine/node-file-system.ts'
import { resolveStoreOptions, type StoreOptions } from '../../engine/options.ts'
import { FaultFileSystem } from '../support/fault-file-system.ts'
import { temporaryDirectory } from '../support/temp-dir.ts'
import { EngineStore } from './engine-store.ts'

const MIB = 1024 * 1024
const GIB = 1024 * MIB
const MAX_BUFFERS = 1024

/** Notes how many buffers and bytes one commit is given. */
class MeasuringFileSystem extends NodeFileSystem {
  buffers = 0
  bytes = 0

  override async open(path: string, mode: OpenMode): Promise<StoreFile> {
    const file = await super.open(path, mode)
    const commit = file.commit.bind(file)
    file.commit = (buffers, position, done) => {
      this.buffers = Math.max(this.buffers, buffers.length)
      const bytes = buffers.reduce((sum, buffer) => sum + buffer.length, 0)
      this.bytes = Math.max(this.bytes, bytes)
      commit(buffers, position, done)
    }
    return file
  }
}

function open(options: StoreOptions, fileSystem: FileSystem): Promise<EngineStore> {
  return EngineStore.open(options, undefined, new FaultFileSystem(fileSystem))
}

/** The greatest value that an option takes, as a refusal of Infinity names it. */
function greatest(name: keyof StoreOptions): number {
  try {
    resolveStoreOptions({ dir: 'store', [name]: Number.MAX_SAFE_INTEGER })
  } catch (error) {
    const limit = Number(/ to (\d+)$/.exec((error as Error).message)?.[1])
    resolveStoreOptions({ dir: 'store', maxBatchBytes: GIB / 2, [name]: limit })
    return limit
  }
  throw new Error(`${name} has no limit`)
}

test('resolveStoreOptions() keeps every segment below 2 GiB', () => {
  // A segment is rolled at its threshold, so it ends one group later at most.
  const group = Math.max(greatest('batchCommitBytes'), greatest('maxBatchBytes'))
  assert.ok(greatest('segmentSizeBytes') + group + greatest('reserveBytes') < 2 * GIB)
})

test('resolveStoreOptions() keeps every buffer below 2 GiB', () => {
  const group = greatest('batchCommitBytes') + greatest('maxBatchBytes')
  assert.ok(group + greatest('reserveBytes') < 2 * GIB)
  assert.ok(greatest('maxRecordBytes') < 2 * GIB)
})

test('SegmentWriter.commit() stays below 1,024 buffers with the greatest reserve', async (t) => {
  const measured = new MeasuringFileSystem()
  const reserveBytes = greatest('reserveBytes')
  const store = await open({ dir: await temporaryDirectory(t), reserveBytes }, measured)
  t.after(() => store.close())
  const isNext = ({ path }: { path: string }): boolean => path.endsWith('0000000002.segment')
  store.fileSystem.faults.fail(isNext, { code: 'EIO' }, Infinity)
  await store.store.createLogs(['log'])
  // As no next segment can be made, zeros for the reserve are kept behind the tail.
  await store.append('log', new Uint8Array(MIB))
  assert.ok(measured.bytes > reserveBytes, `${measured.bytes} bytes, the zeros among them`)
  assert.ok(measured.buffers < MAX_BUFFERS / 2, `${measured.buffers} buffers`)
})

test('SegmentWriter.commit() gives one buffer for thousands of appends', async (t) => {
  const measured = new MeasuringFileSystem()
  const store = await open({ dir: await temporaryDirectory(t) }, measured)
  t.after(() => store.close())
  await store.store.createLogs(['log'])
  await store.whenQuiet()
  measured.buffers = 0
  await Promise.all(Array.from({ length: 4000 }, (_, i) => store.append('log', i)))
  assert.ok(measured.buffers <= 2, `${measured.buffers} buffers: the group, and zeros behind it`)
  assert.equal(await store.count('log'), 4000)
})

test('SegmentWriter.commit() writes a group that is too large for one call in parts', async (t) => {
  if (process.env['BIFROST_LONG'] === undefined) {
    t.skip('It takes a gigabyte of memory: set BIFROST_LONG=1')
    return
  }
  const dir = await temporaryDirectory(t)
  const size = 300 * MIB
  const limits = { maxRecordBytes: GIB / 2, maxBatchBytes: GIB / 2 }
  const store = await open({ dir, ...limits }, new NodeFileSystem())
  await store.store.createLogs(['log'])
  await store.whenQuiet()
  const before = store.fileSystem.faults.trace.length
  await store.append('log', new Uint8Array(size).fill(7))
  const commits = store.fileSystem.faults.trace
    .slice(before)
    .filter(({ kind }) => kind === 'commit')
  assert.ok(commits.length > 1, 'in parts')
  assert.ok(commits.every(({ length = 0 }) => length <= 256 * MIB))
  await store.close()

  const again = await open({ dir, ...limits }, new NodeFileSystem())
  t.after(() => again.close())
  assert.equal(await again.count('log'), 1)
})
