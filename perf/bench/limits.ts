/**
 * What the parts cost by themselves, without any store: the disk, the way to it through libuv, and a
 * checksum. One commit can't be faster than one of these writes, and one record not than its sum.
 */
import { closeSync, constants, openSync, rmSync, write, writeSync } from 'node:fs'
import { crc32 } from 'node:zlib'
import type { Arena } from '../measures/arena.ts'
import { count, duration } from '../support/figures.ts'
import { Latencies, type Percentiles } from '../support/latencies.ts'
import type { Benchmark } from './benchmark.ts'

const WRITE_BYTES = 4096
const PLACES = 64
const SUM_BYTES = 100
/** A checksum is too short to be timed alone. */
const SUMS = 1000
const HEADS = ['Part', 'count', 'p50', 'p99', 'p99.9']

export const LIMITS: Benchmark = {
  name: 'limits',
  about: 'what the disk, libuv and a checksum take by themselves',
  async run(arena) {
    const file = new ProbeFile(arena.freshDir('limits'))
    const ms = arena.roundMs
    const parts: readonly (readonly [string, Percentiles])[] = [
      ['4 KiB over existing bytes, synced, the thread blocked', blocked(file, ms)],
      ['the same by a callback', await repeat(ms, () => file.write())],
      ['to a thread of libuv and back, for nothing', await repeat(ms, () => file.writeNothing())],
      [`CRC-32 of ${SUM_BYTES} B, by zlib`, sums(ms)],
    ]
    file.remove()
    report(arena, parts)
  },
}

function report(arena: Arena, parts: readonly (readonly [string, Percentiles])[]): void {
  arena.report.keep(LIMITS.name, parts)
  const rows = parts.map(([name, { count: times, p50, p99, p999 }]) => [
    name,
    count(times),
    ...[p50, p99, p999].map(duration),
  ])
  arena.report.table(`${LIMITS.name}: ${LIMITS.about}`, HEADS, rows)
}

class ProbeFile {
  readonly #path: string
  readonly #file: number
  readonly #bytes = Buffer.alloc(WRITE_BYTES, 1)
  #writes = 0

  constructor(path: string) {
    this.#path = path
    this.#file = openSync(path, constants.O_CREAT | constants.O_WRONLY | constants.O_DSYNC)
    writeSync(this.#file, Buffer.alloc(WRITE_BYTES * PLACES), 0, undefined, 0)
  }

  #place(): number {
    return (++this.#writes % PLACES) * WRITE_BYTES
  }

  writeSync(): void {
    writeSync(this.#file, this.#bytes, 0, WRITE_BYTES, this.#place())
  }

  write(): Promise<void> {
    return this.#write(WRITE_BYTES)
  }

  writeNothing(): Promise<void> {
    return this.#write(0)
  }

  #write(length: number): Promise<void> {
    return new Promise((resolve, reject) => {
      write(this.#file, this.#bytes, 0, length, this.#place(), (error) => {
        if (error === null) resolve()
        else reject(error)
      })
    })
  }

  remove(): void {
    closeSync(this.#file)
    rmSync(this.#path)
  }
}

function blocked(file: ProbeFile, ms: number): Percentiles {
  return repeatSync(ms, 1, () => file.writeSync())
}

function sums(ms: number): Percentiles {
  const bytes = Buffer.alloc(SUM_BYTES, 1)
  return repeatSync(ms, SUMS, () => crc32(bytes))
}

/** Times it, so many at once, over and over. */
function repeatSync(ms: number, times: number, work: () => unknown): Percentiles {
  const latencies = new Latencies()
  const end = performance.now() + ms
  for (let now = performance.now(); now < end;) {
    for (let index = 0; index < times; index++) work()
    const then = performance.now()
    latencies.record((then - now) / times)
    now = then
  }
  return latencies.percentiles()
}

async function repeat(ms: number, work: () => Promise<void>): Promise<Percentiles> {
  const latencies = new Latencies()
  const end = performance.now() + ms
  for (let now = performance.now(); now < end; now = performance.now()) {
    await work()
    latencies.record(performance.now() - now)
  }
  return latencies.percentiles()
}
