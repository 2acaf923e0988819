/** The metadata file: replaced as a whole or not at all, and read for what it is. */
import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { FORMAT_VERSION, METADATA_MAGIC, PREFIX_BYTES } from '../../codec/format.ts'
import type { Metadata } from '../../codec/metadata.ts'
import { writePrefix } from '../../codec/prefix.ts'
import { MetadataFile, readMetadata, type MetadataFound } from '../../engine/metadata-file.ts'
import { ORIGIN } from '../../engine/recovery.ts'
import { SimDisk } from '../support/sim-disk.ts'
import { SimCrash } from '../support/sim-scheduler.ts'

const DIR = '/store'
const PATH = `${DIR}/metadata`

function metadata(generation: number): Metadata {
  return {
    storeId: new Uint8Array(16).fill(7),
    generation,
    place: ORIGIN,
    newestSegment: 1,
    clean: false,
    nextLogletId: 1,
    loglets: [],
  }
}

let disk: SimDisk

beforeEach(() => {
  disk = new SimDisk({ seed: 1 })
  disk.makeDirectory(DIR)
})

function write(on: SimDisk, generation: number): Promise<void> {
  return on.run(new MetadataFile(on.fileSystem, DIR).write(metadata(generation)))
}

function read(on: SimDisk): Promise<MetadataFound> {
  return on.run(readMetadata(on.fileSystem, DIR))
}

describe('MetadataFile', () => {
  test('write() replaces what was there, durably', async () => {
    await write(disk, 1)
    await write(disk, 2)
    disk.crash('power')
    assert.equal((await read(disk)).metadata?.generation, 2)
    assert.deepEqual([...disk.contents().keys()], [PATH])
  })

  test('write() leaves the old one or the new one, wherever it is crashed', async () => {
    await write(disk, 1)
    for (let k = 1; k <= 12; k++) {
      for (const kind of ['power', 'kill'] as const) {
        const crashed = disk.fork(k)
        crashed.crashAtOperation(k, kind)
        await write(crashed, 2).catch((error: unknown) => assert.ok(error instanceof SimCrash))
        crashed.crash(kind)
        const { metadata: found } = await read(crashed)
        assert.ok(found?.generation === 1 || found?.generation === 2, `${kind} at ${k}`)
      }
    }
  })

  for (const kind of ['open', 'write', 'sync'] as const) {
    test(`write() leaves the old one when ${kind} fails, and succeeds the next time`, async () => {
      await write(disk, 1)
      disk.faults.fail((operation) => operation.kind === kind, { code: 'EIO' })
      await assert.rejects(write(disk, 2), { code: 'EIO' })
      assert.equal((await read(disk)).metadata?.generation, 1)
      await write(disk, 3)
      disk.crash('power')
      assert.equal((await read(disk)).metadata?.generation, 3)
      assert.deepEqual(disk.openFiles, [])
    })
  }

  test('write() succeeds the next time when a rename failed, whatever that did', async () => {
    for (let seed = 1; seed <= 10; seed++) {
      const forked = disk.fork(seed)
      await write(forked, 1)
      forked.faults.fail(({ kind }) => kind === 'rename', { code: 'EIO' })
      await assert.rejects(write(forked, 2), { code: 'EIO' })
      assert.ok([1, 2].includes((await read(forked)).metadata?.generation ?? 0))
      await write(forked, 3)
      forked.crash('power')
      assert.equal((await read(forked)).metadata?.generation, 3)
    }
  })

  test('write() never writes again to a temporary file whose sync failed', async () => {
    await write(disk, 1)
    disk.faults.fail(({ kind }) => kind === 'sync', { code: 'EIO' })
    await assert.rejects(write(disk, 2))
    const before = disk.faults.trace.length
    await write(disk, 3)
    const kinds = disk.faults.trace.slice(before).map(({ kind }) => kind)
    assert.deepEqual(kinds.slice(0, 2), ['unlink', 'open'])
  })

  test('remove() removes it durably, and may find nothing', async () => {
    await write(disk, 1)
    const file = new MetadataFile(disk.fileSystem, DIR)
    await disk.run(file.remove())
    disk.crash('power')
    assert.equal((await read(disk)).isThere, false)
    await disk.run(new MetadataFile(disk.fileSystem, DIR).remove())
  })
})

describe('readMetadata()', () => {
  test('tells what is missing from what is damaged, and both from a newer version', async () => {
    const missing = { isThere: false, version: undefined, metadata: undefined }
    assert.deepEqual(await read(disk), missing)
    for (const bytes of [new Uint8Array(0), new Uint8Array(1000).fill(7)]) {
      disk.writeFile(PATH, bytes)
      assert.deepEqual(await read(disk), { ...missing, isThere: true })
    }
    const newer = new Uint8Array(PREFIX_BYTES + 5)
    writePrefix(newer, METADATA_MAGIC, FORMAT_VERSION + 1)
    disk.writeFile(PATH, newer)
    assert.deepEqual(await read(disk), { ...missing, isThere: true, version: FORMAT_VERSION + 1 })
  })

  test('passes on what the disk threw, but for a file that is not there', async () => {
    await write(disk, 1)
    disk.faults.fail(({ kind }) => kind === 'read', { code: 'EIO' })
    await assert.rejects(read(disk), { code: 'EIO' })
  })
})
