/** The directory of a store, on a simulated disk that loses its power. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeDurableDirectory } from '../../engine/make-directory.ts'
import { SimDisk } from '../support/sim-disk.ts'

test('makeDurableDirectory() makes what no power loss takes away', async () => {
  for (let seed = 1; seed <= 100; seed++) {
    const disk = new SimDisk({ seed })
    await disk.run(makeDurableDirectory(disk.fileSystem, '/a/b/c'))
    disk.crash('power')
    assert.ok([...disk.directories()].includes('/a/b/c'), `seed ${seed}`)
  }
})

test('makeDurableDirectory() also syncs what another one made before it was killed', async () => {
  for (let seed = 1; seed <= 200; seed++) {
    const disk = new SimDisk({ seed })
    disk.crashAtOperation(1 + (seed % 7), 'kill')
    await disk.run(makeDurableDirectory(disk.fileSystem, '/a/b/c')).catch(() => undefined)
    await disk.run(makeDurableDirectory(disk.fileSystem, '/a/b/c'))
    disk.crash('power')
    assert.ok([...disk.directories()].includes('/a/b/c'), `seed ${seed}`)
  }
})

test('makeDurableDirectory() leaves what is there alone', async () => {
  const disk = new SimDisk({ seed: 1 })
  disk.makeDirectory('/a/b')
  disk.writeFile('/a/b/file', new Uint8Array(10))
  await disk.run(makeDurableDirectory(disk.fileSystem, '/a/b'))
  assert.equal(disk.readFile('/a/b/file').length, 10)
})
