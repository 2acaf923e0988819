/** Descriptors for reading segments: shared, few, and gone when nobody needs them. */
import assert from 'node:assert/strict'
import { beforeEach, describe, test, type TestContext } from 'node:test'
import { join } from 'node:path'
import { segmentFile } from '../../engine/file-names.ts'
import { SegmentFiles } from '../../engine/segment-files.ts'
import { FaultFileSystem } from '../support/fault-file-system.ts'
import { SimDisk } from '../support/sim-disk.ts'
import { turn } from '../support/test-store.ts'

const DIR = '/store'
const SEGMENTS = 200

let disk: SimDisk
let fileSystem: FaultFileSystem
let files: SegmentFiles

beforeEach(() => {
  disk = new SimDisk({ seed: 7 })
  for (let segment = 1; segment <= SEGMENTS; segment++) {
    disk.writeFile(join(DIR, segmentFile(segment)), Uint8Array.of(segment))
  }
  fileSystem = new FaultFileSystem(disk.fileSystem)
  files = new SegmentFiles(fileSystem, DIR)
})

/** Reads the one byte of a segment. */
async function byteOf(segment: number): Promise<number> {
  const target = new Uint8Array(1)
  await files.read(segment, target, 0, 1, 0)
  return target[0] as number
}

function openCount(): number {
  return disk.openFiles.length
}

describe('SegmentFiles', () => {
  test('read() reads through one descriptor, however many ask', async () => {
    const reads = Array.from({ length: 50 }, () => byteOf(3))
    const bytes = await disk.run(Promise.all(reads))
    assert.ok(bytes.every((byte) => byte === 3))
    await disk.run(byteOf(3))
    assert.equal(fileSystem.faults.count('open'), 1)
  })

  test('read() keeps few descriptors, however many segments are read at once', async () => {
    let most = 0
    const count = async (segment: number): Promise<void> => {
      await files.use(segment, async (file) => {
        await file.size()
        most = Math.max(most, openCount())
      })
    }
    const uses = Array.from({ length: SEGMENTS }, (_, i) => count(i + 1))
    await disk.run(Promise.all(uses))
    assert.ok(most <= 100, `${most} descriptors at once`)
    assert.ok(openCount() <= 64, `${openCount()} descriptors afterwards`)
  })

  test('read() closes what was used longest ago', async () => {
    for (let segment = 1; segment <= 64; segment++) await disk.run(byteOf(segment))
    await disk.run(byteOf(1))
    await disk.run(byteOf(65))
    assert.ok(disk.openFiles.includes(join(DIR, segmentFile(1))))
    assert.ok(!disk.openFiles.includes(join(DIR, segmentFile(2))))
  })

  test('read() tries again to open what could not be opened', async () => {
    fileSystem.faults.fail(({ kind }) => kind === 'open', { code: 'EMFILE' })
    await assert.rejects(disk.run(byteOf(1)), { code: 'EMFILE' })
    assert.equal(await disk.run(byteOf(1)), 1)
  })

  test('use() waits for the descriptor of a segment that others are opening', async () => {
    const hold = fileSystem.faults.hold(({ kind }) => kind === 'open')
    const reads = Promise.all([byteOf(1), byteOf(1)])
    await turn()
    hold.release()
    assert.deepEqual(await disk.run(reads), [1, 1])
    assert.equal(fileSystem.faults.count('open'), 1)
  })

  test('forget() lets a read under way finish, then closes', async () => {
    await disk.run(byteOf(1))
    const hold = fileSystem.faults.hold(({ kind }) => kind === 'read')
    const read = byteOf(1)
    await turn()
    await disk.run(files.forget(1))
    assert.equal(openCount(), 1)
    await disk.run(disk.fileSystem.unlink(join(DIR, segmentFile(1))))
    hold.release()
    assert.equal(await disk.run(read), 1)
    assert.equal(openCount(), 0)
  })

  test('forget() closes a descriptor that nobody uses', async () => {
    await disk.run(byteOf(1))
    await disk.run(files.forget(1))
    assert.equal(openCount(), 0)
  })

  test('close() waits for the reads under way, and leaves nothing open', async (t: TestContext) => {
    const hold = fileSystem.faults.hold(
      ({ kind, path }) => kind === 'read' && path.endsWith('2.segment'),
    )
    t.after(() => hold.release())
    const read = byteOf(2)
    await disk.run(byteOf(1))
    let isClosed = false
    const closing = files.close().then(() => {
      isClosed = true
    })
    for (let i = 0; i < 5; i++) await turn()
    assert.equal(isClosed, false)
    hold.release()
    assert.equal(await disk.run(read), 2)
    await disk.run(closing)
    assert.equal(openCount(), 0)
  })

  test('close() is not held up by a descriptor whose close fails', async () => {
    await disk.run(byteOf(1))
    fileSystem.faults.fail(({ kind }) => kind === 'close', { code: 'EIO' })
    await disk.run(files.close())
  })
})
