/**
 * What every FileSystem does, whatever is behind it. The simulated disk and real files pass the
 * same cases, so that the one can't drift from the other.
 */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { FileSystem, OpenMode, StoreFile } from '../../engine/file-system.ts'
import { readFully } from '../../engine/io.ts'

export interface ContractSubject {
  readonly fileSystem: FileSystem
  /** An empty directory, by its real path. */
  readonly directory: string
  /** Settles as the promise does; a simulated disk goes on only in here. */
  run<T>(promise: Promise<T>): Promise<T>
}

/** Runs all cases, each on a file system of its own. */
export function runFileSystemContract(
  name: string,
  makeSubject: (t: TestContext) => Promise<ContractSubject>,
): void {
  for (const [title, body] of Object.entries(CASES)) {
    test(`${name} ${title}`, async (t) => {
      const subject = await makeSubject(t)
      await subject.run(body(subject.fileSystem, subject.directory))
    })
  }
}

type Case = (fileSystem: FileSystem, directory: string) => Promise<void>

const OPENING: Record<string, Case> = {
  async 'open() rejects with ENOENT if the file has to exist and does not'(fileSystem, directory) {
    for (const mode of ['read', 'write', 'commit'] as const) {
      await assert.rejects(fileSystem.open(`${directory}/none`, mode), { code: 'ENOENT' })
    }
  },

  async 'open() rejects with ENOENT if the directory does not exist'(fileSystem, directory) {
    for (const mode of ['read', 'create', 'open-or-create'] as const) {
      await assert.rejects(fileSystem.open(`${directory}/none/file`, mode), { code: 'ENOENT' })
    }
  },

  async 'open() makes an empty file with create, once'(fileSystem, directory) {
    const file = await fileSystem.open(`${directory}/file`, 'create')
    assert.equal(await file.size(), 0)
    await file.close()
    await assert.rejects(fileSystem.open(`${directory}/file`, 'create'), { code: 'EEXIST' })
  },

  async 'open() keeps what is there with open-or-create'(fileSystem, directory) {
    const path = `${directory}/file`
    await put(fileSystem, path, bytes(10))
    const file = await fileSystem.open(path, 'open-or-create')
    assert.deepEqual(await contentOf(file), bytes(10))
    await file.close()
    const made = await fileSystem.open(`${directory}/new`, 'open-or-create')
    assert.equal(await made.size(), 0)
    await made.close()
  },

  async 'open() gives a file that can be read in every mode'(fileSystem, directory) {
    const path = `${directory}/file`
    await put(fileSystem, path, bytes(700))
    for (const mode of ['read', 'write', 'commit', 'open-or-create'] as const) {
      const file = await fileSystem.open(path, mode)
      assert.deepEqual(await contentOf(file), bytes(700), mode)
      await file.close()
    }
  },

  async 'open() with read gives a file that refuses to be changed'(fileSystem, directory) {
    const path = `${directory}/file`
    await put(fileSystem, path, bytes(10))
    const file = await fileSystem.open(path, 'read')
    await assert.rejects(file.write(bytes(5), 0), { code: 'EBADF' })
    await assert.rejects(commit(file, [bytes(5)], 0), { code: 'EBADF' })
    await assert.rejects(file.truncate(0), hasCode('EBADF', 'EINVAL'))
    assert.deepEqual(await contentOf(file), bytes(10))
    await file.close()
  },

  async 'open() rejects with EISDIR for writing to a directory'(fileSystem, directory) {
    await assert.rejects(fileSystem.open(directory, 'write'), { code: 'EISDIR' })
  },
}

const BYTES: Record<string, Case> = {
  async 'read() fills only the part of the target that it was given'(fileSystem, directory) {
    const file = await made(fileSystem, `${directory}/file`, bytes(100))
    const target = new Uint8Array(20).fill(255)
    assert.equal(await readFully(file, target, 5, 10, 50), 10)
    assert.deepEqual(target.subarray(5, 15), bytes(100).subarray(50, 60))
    assert.deepEqual(target.subarray(0, 5), new Uint8Array(5).fill(255))
    assert.deepEqual(target.subarray(15), new Uint8Array(5).fill(255))
    await file.close()
  },

  async 'read() stops at the end of the file'(fileSystem, directory) {
    const file = await made(fileSystem, `${directory}/file`, bytes(100))
    const target = new Uint8Array(50)
    assert.equal(await readFully(file, target, 0, 50, 90), 10)
    assert.equal(await file.read(target, 0, 50, 100), 0)
    assert.equal(await file.read(target, 0, 50, 5000), 0)
    await file.close()
  },

  async 'write() past the end leaves a hole that reads as zeros'(fileSystem, directory) {
    const file = await made(fileSystem, `${directory}/file`, bytes(10))
    assert.equal(await file.write(bytes(5), 9000), 5)
    const content = await contentOf(file)
    assert.equal(content.length, 9005)
    assert.deepEqual(content.subarray(0, 10), bytes(10))
    assert.ok(content.subarray(10, 9000).every((byte) => byte === 0))
    assert.deepEqual(content.subarray(9000), bytes(5))
    await file.close()
  },

  async 'write() inside the file changes these bytes only'(fileSystem, directory) {
    const file = await made(fileSystem, `${directory}/file`, bytes(2000))
    assert.equal(await file.write(new Uint8Array(100).fill(7), 500), 100)
    const expected = bytes(2000).fill(7, 500, 600)
    assert.deepEqual(await contentOf(file), expected)
    await file.close()
  },

  async 'write() is seen at once through another handle'(fileSystem, directory) {
    const file = await made(fileSystem, `${directory}/file`, bytes(10))
    const reader = await fileSystem.open(`${directory}/file`, 'read')
    await file.write(bytes(1000), 0)
    assert.deepEqual(await contentOf(reader), bytes(1000))
    await reader.close()
    await file.close()
  },

  async 'truncate() cuts, and what is cut does not come back'(fileSystem, directory) {
    const file = await made(fileSystem, `${directory}/file`, bytes(9000))
    await file.truncate(700)
    assert.deepEqual(await contentOf(file), bytes(9000).subarray(0, 700))
    await file.truncate(9000)
    const content = await contentOf(file)
    assert.deepEqual(content.subarray(0, 700), bytes(9000).subarray(0, 700))
    assert.equal(content.length, 9000)
    assert.ok(content.subarray(700).every((byte) => byte === 0))
    await file.close()
  },

  async 'truncate() of a cut file lets a write past its end show zeros'(fileSystem, directory) {
    const file = await made(fileSystem, `${directory}/file`, bytes(3000))
    await file.truncate(100)
    await file.write(bytes(1), 2000)
    const content = await contentOf(file)
    assert.ok(content.subarray(100, 2000).every((byte) => byte === 0))
    await file.close()
  },

  async 'size() and fileSize() follow writes and cuts'(fileSystem, directory) {
    const path = `${directory}/file`
    const file = await made(fileSystem, path, bytes(1234))
    assert.equal(await file.size(), 1234)
    assert.equal(await fileSystem.fileSize(path), 1234)
    await file.truncate(5)
    assert.equal(await file.size(), 5)
    assert.equal(await fileSystem.fileSize(path), 5)
    await file.close()
    await assert.rejects(fileSystem.fileSize(`${directory}/none`), { code: 'ENOENT' })
  },

  async 'sync() keeps what readers see'(fileSystem, directory) {
    const file = await made(fileSystem, `${directory}/file`, bytes(5000))
    await file.sync()
    assert.deepEqual(await contentOf(file), bytes(5000))
    await file.close()
  },

  async 'read() and write() may overlap'(fileSystem, directory) {
    const file = await made(fileSystem, `${directory}/file`, bytes(8192))
    const target = new Uint8Array(8192)
    const parts = [0, 1, 2, 3].map((part) =>
      readFully(file, target, part * 2048, 2048, part * 2048),
    )
    const [written] = await Promise.all([file.write(bytes(100), 8192), ...parts])
    assert.equal(written, 100)
    assert.deepEqual(target, bytes(8192))
    await file.close()
  },
}

const COMMITS: Record<string, Case> = {
  async 'commit() writes its buffers one after the other and grows the file'(
    fileSystem,
    directory,
  ) {
    for (const mode of ['write', 'commit', 'open-or-create'] as const) {
      const path = `${directory}/${mode}`
      await put(fileSystem, path, bytes(10))
      const file = await fileSystem.open(path, mode)
      const buffers = [bytes(100), bytes(1), bytes(5000)]
      assert.equal(await commit(file, buffers, 10), 5101, mode)
      assert.deepEqual(await contentOf(file), joined([bytes(10), ...buffers]), mode)
      await file.close()
    }
  },

  async 'commit() overwrites in place, and past the end leaves zeros'(fileSystem, directory) {
    const file = await forCommits(fileSystem, `${directory}/file`, bytes(1000))
    assert.equal(await commit(file, [new Uint8Array(10).fill(9)], 500), 10)
    assert.deepEqual(await contentOf(file), bytes(1000).fill(9, 500, 510))
    assert.equal(await commit(file, [bytes(10)], 6000), 10)
    const content = await contentOf(file)
    assert.equal(content.length, 6010)
    assert.ok(content.subarray(1000, 6000).every((byte) => byte === 0))
    await file.close()
  },

  async 'commit() takes more buffers than one system call does'(fileSystem, directory) {
    const file = await forCommits(fileSystem, `${directory}/file`, bytes(0))
    const buffers = Array.from({ length: 1500 }, (_, index) => bytes(index % 7))
    const whole = joined(buffers)
    assert.equal(await commit(file, buffers, 0), whole.length)
    assert.deepEqual(await contentOf(file), whole)
    await file.close()
  },

  async 'commit() calls back later, not during the call'(fileSystem, directory) {
    const file = await forCommits(fileSystem, `${directory}/file`, bytes(0))
    let hasReturned = false
    await new Promise<void>((resolve, reject) => {
      file.commit([bytes(10)], 0, () => {
        if (hasReturned) resolve()
        else reject(new Error('It was called during the call'))
      })
      hasReturned = true
    })
    await file.close()
  },

  async 'commitSync() does what commit() does'(fileSystem, directory) {
    const file = await forCommits(fileSystem, `${directory}/file`, bytes(10))
    const buffers = [bytes(300), bytes(300)]
    assert.equal(file.commitSync(buffers, 10), 600)
    assert.equal(file.commitSync([bytes(5)], 0), 5)
    assert.deepEqual(await contentOf(file), joined([bytes(10), ...buffers]))
    await file.close()
  },

  async 'truncate() and sync() work on a file that is opened for commits'(fileSystem, directory) {
    const file = await forCommits(fileSystem, `${directory}/file`, bytes(600))
    await file.truncate(100)
    await file.sync()
    assert.equal(await commit(file, [bytes(50)], 100), 50)
    assert.deepEqual(await contentOf(file), joined([bytes(600).subarray(0, 100), bytes(50)]))
    await file.close()
  },
}

const NAMES: Record<string, Case> = {
  async 'rename() puts a file under its new name, with its bytes'(fileSystem, directory) {
    await put(fileSystem, `${directory}/a`, bytes(10))
    await fileSystem.rename(`${directory}/a`, `${directory}/b`)
    assert.deepEqual(await fileSystem.list(directory), ['b'])
    assert.deepEqual(await contentAt(fileSystem, `${directory}/b`), bytes(10))
  },

  async 'rename() replaces a file, which stays readable where it is open'(fileSystem, directory) {
    await put(fileSystem, `${directory}/old`, bytes(600))
    await put(fileSystem, `${directory}/new`, bytes(10))
    const old = await fileSystem.open(`${directory}/old`, 'read')
    await fileSystem.rename(`${directory}/new`, `${directory}/old`)
    assert.deepEqual(await contentAt(fileSystem, `${directory}/old`), bytes(10))
    assert.deepEqual(await contentOf(old), bytes(600))
    assert.deepEqual(await fileSystem.list(directory), ['old'])
    await old.close()
  },

  async 'rename() follows a file that is open'(fileSystem, directory) {
    const file = await made(fileSystem, `${directory}/a`, bytes(10))
    await fileSystem.rename(`${directory}/a`, `${directory}/b`)
    await file.write(bytes(700), 0)
    assert.deepEqual(await contentAt(fileSystem, `${directory}/b`), bytes(700))
    await file.close()
  },

  async 'rename() of a file to its own name changes nothing'(fileSystem, directory) {
    await put(fileSystem, `${directory}/a`, bytes(10))
    await fileSystem.rename(`${directory}/a`, `${directory}/a`)
    assert.deepEqual(await contentAt(fileSystem, `${directory}/a`), bytes(10))
  },

  async 'rename() and unlink() reject with ENOENT if there is no file'(fileSystem, directory) {
    const none = `${directory}/none`
    await assert.rejects(fileSystem.rename(none, `${directory}/b`), { code: 'ENOENT' })
    await assert.rejects(fileSystem.unlink(none), { code: 'ENOENT' })
    await put(fileSystem, `${directory}/a`, bytes(10))
    await assert.rejects(fileSystem.rename(`${directory}/a`, `${none}/a`), { code: 'ENOENT' })
  },

  async 'unlink() leaves an open file usable'(fileSystem, directory) {
    const path = `${directory}/file`
    const file = await made(fileSystem, path, bytes(600))
    await fileSystem.unlink(path)
    await assert.rejects(fileSystem.open(path, 'read'), { code: 'ENOENT' })
    await file.write(bytes(20), 600)
    assert.deepEqual(await contentOf(file), joined([bytes(600), bytes(20)]))
    await file.close()
  },

  async 'unlink() makes room for a new file of the same name'(fileSystem, directory) {
    const path = `${directory}/file`
    const old = await made(fileSystem, path, bytes(600))
    await fileSystem.unlink(path)
    await put(fileSystem, path, bytes(5))
    assert.deepEqual(await contentAt(fileSystem, path), bytes(5))
    assert.deepEqual(await contentOf(old), bytes(600))
    await old.close()
  },

  async 'unlink() refuses a directory'(fileSystem, directory) {
    await fileSystem.makeDirectory(`${directory}/sub`)
    await assert.rejects(fileSystem.unlink(`${directory}/sub`), hasCode('EISDIR', 'EPERM'))
  },
}

const DIRECTORIES: Record<string, Case> = {
  async 'list() gives the names of files and directories'(fileSystem, directory) {
    assert.deepEqual(await fileSystem.list(directory), [])
    await put(fileSystem, `${directory}/a`, bytes(1))
    await put(fileSystem, `${directory}/b`, bytes(1))
    await fileSystem.makeDirectory(`${directory}/sub`)
    await put(fileSystem, `${directory}/sub/c`, bytes(1))
    const names = await fileSystem.list(directory)
    assert.deepEqual(names.sort(), ['a', 'b', 'sub'])
  },

  async 'list() rejects if there is no such directory'(fileSystem, directory) {
    await assert.rejects(fileSystem.list(`${directory}/none`), { code: 'ENOENT' })
    await put(fileSystem, `${directory}/file`, bytes(1))
    await assert.rejects(fileSystem.list(`${directory}/file`), { code: 'ENOTDIR' })
  },

  async 'makeDirectory() makes one directory, and leaves one that is there alone'(
    fileSystem,
    directory,
  ) {
    assert.equal(await fileSystem.makeDirectory(`${directory}/a`), true)
    assert.equal(await fileSystem.makeDirectory(`${directory}/a/b`), true)
    await put(fileSystem, `${directory}/a/b/file`, bytes(10))
    assert.equal(await fileSystem.makeDirectory(`${directory}/a/b`), false)
    assert.equal(await fileSystem.makeDirectory(`${directory}/a`), false)
    assert.deepEqual(await contentAt(fileSystem, `${directory}/a/b/file`), bytes(10))
  },

  async 'makeDirectory() rejects if its parent is not there'(fileSystem, directory) {
    await assert.rejects(fileSystem.makeDirectory(`${directory}/a/b`), { code: 'ENOENT' })
  },

  async 'makeDirectory() rejects where a file is in its way'(fileSystem, directory) {
    await put(fileSystem, `${directory}/file`, bytes(10))
    await assert.rejects(fileSystem.makeDirectory(`${directory}/file`), { code: 'EEXIST' })
    await assert.rejects(fileSystem.makeDirectory(`${directory}/file/sub`), { code: 'ENOTDIR' })
  },

  async 'syncDirectory() resolves, and rejects if there is no such directory'(
    fileSystem,
    directory,
  ) {
    await put(fileSystem, `${directory}/file`, bytes(1))
    await fileSystem.syncDirectory(directory)
    await assert.rejects(fileSystem.syncDirectory(`${directory}/none`), { code: 'ENOENT' })
    await assert.rejects(fileSystem.syncDirectory(`${directory}/file`), { code: 'ENOTDIR' })
  },

  async 'realPath() gives one name for one directory'(fileSystem, directory) {
    assert.equal(await fileSystem.realPath(`${directory}/./`), directory)
    await assert.rejects(fileSystem.realPath(`${directory}/none`), { code: 'ENOENT' })
  },
}

const LOCKS: Record<string, Case> = {
  async 'tryLock() lets one handle have the lock, until it is closed'(fileSystem, directory) {
    const open = (): Promise<StoreFile> => fileSystem.open(`${directory}/lock`, 'open-or-create')
    const first = await open()
    const second = await open()
    assert.equal(await fileSystem.tryLock(first), true)
    assert.equal(await fileSystem.tryLock(second), false)
    assert.equal(await fileSystem.tryLock(first), true)
    await first.close()
    assert.equal(await fileSystem.tryLock(second), true)
    await second.close()
  },

  async 'tryLock() keeps the lock when another handle of the file is closed'(
    fileSystem,
    directory,
  ) {
    const open = (): Promise<StoreFile> => fileSystem.open(`${directory}/lock`, 'open-or-create')
    const [first, second, third] = [await open(), await open(), await open()]
    assert.equal(await fileSystem.tryLock(first), true)
    await second.close()
    assert.equal(await fileSystem.tryLock(third), false)
    await first.close()
    await third.close()
  },

  async 'tryLock() locks files one by one'(fileSystem, directory) {
    const a = await fileSystem.open(`${directory}/a`, 'create')
    const b = await fileSystem.open(`${directory}/b`, 'create')
    assert.equal(await fileSystem.tryLock(a), true)
    assert.equal(await fileSystem.tryLock(b), true)
    await a.close()
    await b.close()
  },
}

const CASES: Record<string, Case> = {
  ...OPENING,
  ...BYTES,
  ...COMMITS,
  ...NAMES,
  ...DIRECTORIES,
  ...LOCKS,
}

/** Bytes that differ from their neighbours and from zeros. */
function bytes(length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, index) => 1 + (index % 251))
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts))
}

async function made(fileSystem: FileSystem, path: string, content: Uint8Array): Promise<StoreFile> {
  const file = await fileSystem.open(path, 'create')
  if (content.length > 0) assert.equal(await file.write(content, 0), content.length)
  return file
}

async function put(fileSystem: FileSystem, path: string, content: Uint8Array): Promise<void> {
  const file = await made(fileSystem, path, content)
  await file.close()
}

async function forCommits(
  fileSystem: FileSystem,
  path: string,
  content: Uint8Array,
  mode: OpenMode = 'commit',
): Promise<StoreFile> {
  await put(fileSystem, path, content)
  return fileSystem.open(path, mode)
}

async function contentOf(file: StoreFile): Promise<Uint8Array> {
  const content = new Uint8Array(await file.size())
  assert.equal(await readFully(file, content, 0, content.length, 0), content.length)
  return content
}

async function contentAt(fileSystem: FileSystem, path: string): Promise<Uint8Array> {
  const file = await fileSystem.open(path, 'read')
  const content = await contentOf(file)
  await file.close()
  return content
}

/** A commit as a promise of how many bytes it wrote. */
export function commit(
  file: StoreFile,
  buffers: readonly Uint8Array[],
  position: number,
): Promise<number> {
  return new Promise((resolve, reject) => {
    file.commit(buffers, position, (error, written) => {
      if (error === null) resolve(written)
      else reject(error)
    })
  })
}

function hasCode(...codes: readonly string[]): (error: unknown) => boolean {
  return (error) => codes.includes((error as { code: string }).code)
}
