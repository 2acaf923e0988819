/** The simulated disk keeps the contract of a file system, in whatever order it does things. */
import { SimDisk } from '../support/sim-disk.ts'
import { runFileSystemContract } from './file-system-contract.ts'

for (const seed of [1, 2, 3, 4, 5]) {
  runFileSystemContract(`SimFileSystem with seed ${seed}:`, () => {
    const disk = new SimDisk({ seed })
    disk.makeDirectory('/store')
    return Promise.resolve({
      fileSystem: disk.fileSystem,
      directory: '/store',
      run: (promise) => disk.run(promise),
    })
  })
}
