/** What a payload byte costs in bytes written to the device, and in bytes kept on the disk. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { deviceBytesWritten } from '../support/machine.ts'
import type { Arena } from './arena.ts'

const SIZE = 100
const CALLERS = 256
const RECORDS = 1_000_000
const BLOCK_BYTES = 512

export interface ByteCosts {
  readonly payloadBytes: number
  /** Sent to the device by the process: what it wrote, in whole pages (/proc/self/io). */
  readonly processWritten: number
  /** Written to the device by everybody, its journal included (/proc/diskstats). */
  readonly deviceWritten: number | undefined
  /** Blocks of all files, after a clean close. */
  readonly allocated: number
  /** Bytes of all files up to the last one that is not zero: without room for what comes next. */
  readonly kept: number
}

export async function byteCosts(arena: Arena): Promise<ByteCosts> {
  const dir = arena.freshDir('bytes')
  const side = await arena.enter('bytes', { kind: 'bifrost' }, dir)
  const records = arena.records(RECORDS)
  const before = { process: await side.ask('usage'), device: deviceBytesWritten(dir) }
  await side.ask('fill', { records, size: SIZE, callers: CALLERS })
  const after = { process: await side.ask('usage'), device: deviceBytesWritten(dir) }
  await side.stop()
  const costs = {
    payloadBytes: records * SIZE,
    processWritten: after.process.written - before.process.written,
    deviceWritten: difference(after.device, before.device),
    ...diskBytes(dir),
  }
  await arena.clear()
  return costs
}

function difference(after: number | undefined, before: number | undefined): number | undefined {
  return after === undefined || before === undefined ? undefined : after - before
}

function diskBytes(dir: string): { readonly allocated: number; readonly kept: number } {
  const paths = readdirSync(dir).map((name) => join(dir, name))
  return {
    allocated: sum(paths.map((path) => statSync(path).blocks * BLOCK_BYTES)),
    kept: sum(paths.map((path) => lengthWithoutZeros(readFileSync(path)))),
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

function lengthWithoutZeros(bytes: Buffer): number {
  let end = bytes.length
  while (end > 0 && bytes[end - 1] === 0) end--
  return end
}
