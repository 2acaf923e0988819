/** The limits of those who append batch after batch, and what they need of their store. */
import { FRAME_HEADER_BYTES } from '../codec/format.ts'
import type { EncodedRecord } from '../codec/record.ts'
import { requireInRange, type ResolvedStoreOptions } from '../engine/options.ts'
import type { AppendIntake } from './append-intake.ts'
import type { LogDirectory } from './log-directory.ts'
import { requireOptions } from './member-options.ts'

/** The limits of an appender. Sizes are in bytes, encoded. */
export interface AppenderOptions {
  /** Most records in a batch. Default 1000, at most 100,000. */
  readonly maxBatchCount?: number | undefined
  /** Most bytes in a batch, its first record aside. Default 1 MiB or the store's, if less. */
  readonly maxBatchBytes?: number | undefined
  /** `enqueue` waits while this much is not yet durable. Default 8 MiB, at most 1 GiB. */
  readonly memoryLimitBytes?: number | undefined
}

export interface ResolvedAppenderOptions {
  readonly maxBatchCount: number
  readonly maxBatchBytes: number
  readonly memoryLimitBytes: number
}

const MIB = 1024 * 1024
const APPENDER_OPTIONS = new Set(['maxBatchCount', 'maxBatchBytes', 'memoryLimitBytes'])
const MAX_BATCH_COUNT = { default: 1000, min: 1, max: 100_000 }
const MEMORY_LIMIT_BYTES = { default: 8 * MIB, min: 1, max: 1024 * MIB }

/** Checks every option and fills in the defaults. Throws INVALID_OPTION. */
export function resolveAppenderOptions(
  options: AppenderOptions | undefined,
  store: ResolvedStoreOptions,
): ResolvedAppenderOptions {
  requireOptions(options, APPENDER_OPTIONS)
  const { maxBatchCount, maxBatchBytes, memoryLimitBytes } = options ?? {}
  return {
    maxBatchCount: requireInRange('maxBatchCount', maxBatchCount, MAX_BATCH_COUNT),
    maxBatchBytes: requireBatchBytes(maxBatchBytes, store),
    memoryLimitBytes: requireInRange('memoryLimitBytes', memoryLimitBytes, MEMORY_LIMIT_BYTES),
  }
}

/** A batch has to be one that the store takes. */
export function requireBatchBytes(value: unknown, { maxBatchBytes }: ResolvedStoreOptions): number {
  const limit = { default: Math.min(MIB, maxBatchBytes), min: 1, max: maxBatchBytes }
  return requireInRange('maxBatchBytes', value, limit)
}

/** What a record takes of a batch, as the store counts it. */
export function frameBytes({ body }: EncodedRecord): number {
  return FRAME_HEADER_BYTES + body.length
}

/** Something that may have to finish before the store can be closed. */
export interface OpenWriter {
  /** Takes nothing more; resolves when nothing of it is under way any more. Never rejects. */
  finish(): Promise<void>
}

/** What appenders and streams need of their store. */
export interface WriterContext {
  readonly logs: LogDirectory
  readonly intake: AppendIntake
  readonly store: ResolvedStoreOptions
  /** Those that have something under way. */
  readonly writers: Set<OpenWriter>
}
