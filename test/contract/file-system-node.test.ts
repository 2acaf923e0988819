/** Real files keep the contract of a file system, and so do real files behind a fault plan. */
import assert from 'node:assert/strict'
import { stat } from 'node:fs/promises'
import { test } from 'node:test'
import { NodeFileSystem } from '../../engine/node-file-system.ts'
import { FaultFileSystem } from '../support/fault-file-system.ts'
import { temporaryDirectory } from '../support/temp-dir.ts'
import { runFileSystemContract } from './file-system-contract.ts'

runFileSystemContract('NodeFileSystem:', async (t) => ({
  fileSystem: new NodeFileSystem(),
  directory: await temporaryDirectory(t),
  run: (promise) => promise,
}))

runFileSystemContract('FaultFileSystem without faults:', async (t) => ({
  fileSystem: new FaultFileSystem(new NodeFileSystem()),
  directory: await temporaryDirectory(t),
  run: (promise) => promise,
}))

test('NodeFileSystem: files are for their owner only', async (t) => {
  const fileSystem = new NodeFileSystem()
  const directory = await temporaryDirectory(t)
  await fileSystem.makeDirectory(`${directory}/a`)
  await fileSystem.makeDirectory(`${directory}/a/b`)
  const file = await fileSystem.open(`${directory}/a/b/file`, 'create')
  await file.close()
  assert.equal((await stat(`${directory}/a`)).mode & 0o777, 0o700)
  assert.equal((await stat(`${directory}/a/b`)).mode & 0o777, 0o700)
  assert.equal((await stat(`${directory}/a/b/file`)).mode & 0o777, 0o600)
})
