/** The facts of the machine that a measurement is worth nothing without. */
import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync, readFileSync, rmSync, statSync, writeSync } from 'node:fs'
import { cpus, loadavg, release, totalmem } from 'node:os'
import { join } from 'node:path'
import { fileSystemOf } from '../main-job/figures.ts'
import { duration, mebibytes, rounded } from './figures.ts'
import { quantile } from './statistics.ts'

export interface Machine {
  readonly cpu: string
  readonly cores: number
  readonly memoryBytes: number
  readonly kernel: string
  readonly node: string
  readonly fileSystem: string | undefined
  /** One write of 4 KiB over bytes that exist, synced, in ms: what a commit costs at the least. */
  readonly syncMs: { readonly p50: number; readonly p99: number }
  /** Over the last minute, before anything was measured. */
  readonly load: number
  readonly commit: string | undefined
  readonly at: string
}

export function machineFacts(dir: string): Machine {
  const processors = cpus()
  return {
    cpu: processors[0]?.model.trim() ?? 'unknown',
    cores: processors.length,
    memoryBytes: totalmem(),
    kernel: release(),
    node: process.versions.node,
    fileSystem: fileSystemOf(dir),
    syncMs: measureSync(dir),
    load: loadavg()[0] ?? 0,
    commit: currentCommit(),
    at: new Date().toISOString(),
  }
}

export function machineLines(machine: Machine): string[] {
  const { cpu, cores, memoryBytes, kernel, node, fileSystem, syncMs, load, commit } = machine
  return [
    `${cores} × ${cpu}, ${mebibytes(memoryBytes)}; Linux ${kernel}, Node.js ${node}`,
    `${fileSystem ?? 'unknown file system'}; 4 KiB written and synced in ` +
      `${duration(syncMs.p50)} (p99 ${duration(syncMs.p99)})`,
    `load ${rounded(load)} before; commit ${commit ?? 'unknown'}`,
  ]
}

const PROBE_BYTES = 4096
const PROBE_PLACES = 64
const PROBE_WRITES = 200

/** Blocks the thread for as long as the writes take, which is what makes it exact. */
function measureSync(dir: string): Machine['syncMs'] {
  const path = join(dir, 'sync-probe')
  const flags = constants.O_CREAT | constants.O_WRONLY | constants.O_DSYNC
  const file = openSync(path, flags)
  try {
    writeSync(file, Buffer.alloc(PROBE_BYTES * PROBE_PLACES, 1), 0, undefined, 0)
    const bytes = Buffer.alloc(PROBE_BYTES, 2)
    const times = Array.from({ length: PROBE_WRITES }, (_, index) => {
      const startedAt = performance.now()
      writeSync(file, bytes, 0, PROBE_BYTES, (index % PROBE_PLACES) * PROBE_BYTES)
      return performance.now() - startedAt
    })
    return { p50: quantile(times, 0.5), p99: quantile(times, 0.99) }
  } finally {
    closeSync(file)
    rmSync(path)
  }
}

function currentCommit(): string | undefined {
  try {
    return git('rev-parse', '--short', 'HEAD') + (git('status', '--porcelain') === '' ? '' : '+')
  } catch {
    return undefined
  }
}

function git(...args: string[]): string {
  return execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
}

const SECTOR_BYTES = 512
/** The fields of /proc/diskstats: major, minor, name, then counters; sectors written is the 7th. */
const SECTORS_WRITTEN = 9

/**
 * Bytes written to the device under a directory so far, by everybody: its journal is in it, and so
 * is whatever else the machine writes. NaN where there is no such device.
 */
export function deviceBytesWritten(dir: string): number {
  const { dev } = statSync(dir)
  // As glibc's major() and minor() take a device number apart, below 2^32.
  const [major, minor] = [(dev >>> 8) & 0xfff, (dev & 0xff) | ((dev >>> 12) & 0xfff00)]
  const fields = readText('/proc/diskstats')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .find(([first, second]) => Number(first) === major && Number(second) === minor)
  return Number(fields?.[SECTORS_WRITTEN]) * SECTOR_BYTES
}

/** Bytes that had to be read from the device for this process; 0 where that is not known. */
export function bytesReadFromDevice(): number {
  return Number(/^read_bytes: (\d+)$/m.exec(readText('/proc/self/io'))?.[1] ?? 0)
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
