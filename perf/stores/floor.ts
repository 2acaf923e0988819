/**
 * The floor: the least that a durable log of checked records can be in Node.js. Length and CRC
 * before each record, one write on an O_DSYNC descriptor for everybody who waits, and zeros for the
 * next MiB along with small commits, so that the next ones need no new blocks. There is no
 * encoding, no index, no recovery, no limit and no error handling in it.
 */
import { closeSync, constants, openSync, readSync, write } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { mkdirSync } from 'node:fs'
import type { Counters, Sink, Store, StoreSpec } from './store.ts'

const FRAME_BYTES = 8
const ZEROS = 1 << 20
const SMALL_COMMIT = 1 << 16
const BUFFER_BYTES = 1 << 26
const READ_BYTES = 1 << 20

interface Waiting {
  readonly payload: Uint8Array
  readonly resolve: (position: number) => void
}

export function openFloor({ dir }: StoreSpec): Floor {
  mkdirSync(dir, { recursive: true })
  return new Floor(join(dir, 'floor'))
}

class Floor implements Store {
  readonly #path: string
  readonly #file: number
  readonly #buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES)
  #waiting: Waiting[] = []
  #position = 0
  #zeroedTo = 0
  #isBusy = false
  #isScheduled = false
  #records = 0
  #syncs = 0

  constructor(path: string) {
    this.#path = path
    this.#file = openSync(path, constants.O_CREAT | constants.O_WRONLY | constants.O_DSYNC)
  }

  append(_log: number, payload: Uint8Array): Promise<number> {
    return new Promise((resolve) => {
      this.#waiting.push({ payload, resolve })
      if (!this.#isBusy) this.#schedule()
    })
  }

  /** After all microtasks that are due, so that everybody who was acknowledged is in the group. */
  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    queueMicrotask(() =>
      process.nextTick(() => {
        this.#isScheduled = false
        this.#commit()
      }),
    )
  }

  #commit(): void {
    const group = this.#waiting
    this.#waiting = []
    this.#isBusy = true
    const bytes = this.#encode(group)
    const length = bytes + this.#zerosAfter(bytes)
    write(this.#file, this.#buffer, 0, length, this.#position, (error) => {
      if (error !== null) throw error
      this.#position += bytes
      this.#records += group.length
      this.#syncs++
      this.#isBusy = false
      for (const { resolve } of group) resolve(this.#position)
      if (this.#waiting.length > 0) this.#schedule()
    })
  }

  #encode(group: readonly Waiting[]): number {
    let at = 0
    for (const { payload } of group) {
      this.#buffer.writeUInt32LE(payload.length, at)
      this.#buffer.writeUInt32LE(crc32(payload), at + 4)
      this.#buffer.set(payload, at + FRAME_BYTES)
      at += FRAME_BYTES + payload.length
    }
    return at
  }

  #zerosAfter(bytes: number): number {
    const end = this.#position + bytes
    if (bytes >= SMALL_COMMIT || end <= this.#zeroedTo) return 0
    this.#buffer.fill(0, bytes, bytes + ZEROS)
    this.#zeroedTo = end + ZEROS
    return ZEROS
  }

  /** Reads the bare file, checking nothing: no store can be read faster. */
  async scan(sink: Sink): Promise<void> {
    const file = openSync(this.#path, 'r')
    let position = 0
    while (position < this.#position) {
      const buffer = Buffer.allocUnsafeSlow(READ_BYTES)
      const length = readSync(file, buffer, 0, READ_BYTES, position)
      position += hand(buffer.subarray(0, Math.min(length, this.#position - position)), sink)
    }
    closeSync(file)
  }

  counters(): Counters {
    return { records: this.#records, syncs: this.#syncs }
  }

  async close(): Promise<void> {
    closeSync(this.#file)
  }
}

/** Hands out the whole records of a buffer; returns how many bytes they take. */
function hand(buffer: Buffer, sink: Sink): number {
  let at = 0
  while (at + FRAME_BYTES <= buffer.length) {
    const end = at + FRAME_BYTES + buffer.readUInt32LE(at)
    if (end > buffer.length) break
    sink(buffer.subarray(at + FRAME_BYTES, end))
    at = end
  }
  return at
}
