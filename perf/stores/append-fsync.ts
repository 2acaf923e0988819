/** What is written by hand most often: each append writes to the file's end, then syncs the file. */
import { closeSync, fdatasync, mkdirSync, openSync, write } from 'node:fs'
import { join } from 'node:path'
import type { Counters, Store, StoreSpec } from './store.ts'

const LENGTH_BYTES = 4

export function openAppendFsync({ dir }: StoreSpec): Store {
  mkdirSync(dir, { recursive: true })
  return new AppendFsync(openSync(join(dir, 'log'), 'a'))
}

class AppendFsync implements Store {
  readonly #file: number
  #records = 0

  constructor(file: number) {
    this.#file = file
  }

  append(_log: number, payload: Uint8Array): Promise<void> {
    const frame = Buffer.allocUnsafe(LENGTH_BYTES + payload.length)
    frame.writeUInt32LE(payload.length, 0)
    frame.set(payload, LENGTH_BYTES)
    return new Promise((resolve, reject) => {
      write(this.#file, frame, 0, frame.length, null, (error) => {
        if (error !== null) reject(error)
        else this.#sync(resolve, reject)
      })
    })
  }

  #sync(resolve: () => void, reject: (error: unknown) => void): void {
    fdatasync(this.#file, (error) => {
      if (error !== null) {
        reject(error)
        return
      }
      this.#records++
      resolve()
    })
  }

  scan(): Promise<never> {
    return Promise.reject(new Error('A bare file is scanned by the floor'))
  }

  counters(): Counters {
    return { records: this.#records, syncs: this.#records }
  }

  async close(): Promise<void> {
    closeSync(this.#file)
  }
}
