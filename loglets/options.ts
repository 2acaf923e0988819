/** The options of `Bifrost.open`: defaults, ranges and units in one place, checked once. */
import type { LogId } from '../codec/errors.ts'
import { MAX_LOG_ID_BYTES } from '../codec/format.ts'
import {
  invalidOption,
  rejectUnknown,
  requireInRange,
  requireOneOf,
  resolveStoreOptions,
  STORE_OPTION_NAMES,
  type Logger,
  type ResolvedStoreOptions,
} from '../engine/options.ts'

/** Where loglets live: in segment files, or in this process only. */
export type ProviderKind = 'local' | 'memory'

/** How to open a store. Sizes are in bytes, times in milliseconds. */
export interface BifrostOptions {
  /** The store's directory, made if missing. Required for the provider 'local'. */
  readonly dir?: string | undefined
  /** 'local' keeps everything in `dir`; 'memory' forgets it with the process. Default 'local'. */
  readonly provider?: ProviderKind | undefined
  /** Logs that are made if they don't exist yet. Default none. */
  readonly logs?: readonly LogId[] | undefined
  /** Follow a store without taking its lock and without changing a byte. Default false. */
  readonly readOnly?: boolean | undefined
  /** How long to wait for another opener to let go of the store. Default 0. */
  readonly lockTimeoutMs?: number | undefined
  /** 'inline' blocks the thread for each sync, for the least latency. Default 'async'. */
  readonly commitMode?: 'async' | 'inline' | undefined
  /** A segment file is rolled at this size. Default 64 MiB, from 64 KiB to 1 GiB. */
  readonly segmentSizeBytes?: number | undefined
  /** The largest record, encoded. Default 16 MiB, at most 512 MiB. */
  readonly maxRecordBytes?: number | undefined
  /** The largest batch, encoded. Default 32 MiB, at most 512 MiB. */
  readonly maxBatchBytes?: number | undefined
  /** Most appends in one group commit. Default 5000. */
  readonly batchCommitCount?: number | undefined
  /** Most bytes in one group commit, its first append aside. Default 8 MiB. */
  readonly batchCommitBytes?: number | undefined
  /** How long a group commit waits for more appends. Default 0: no timer at all. */
  readonly batchCommitDelayMs?: number | undefined
  /** Appends beyond this many bytes in the queue wait, or are QUEUE_FULL. Default 64 MiB. */
  readonly queueBytes?: number | undefined
  /** Bytes kept for trims, seals and deletes on a full disk. Default 1 MiB. */
  readonly reserveBytes?: number | undefined
  /** What one reader reads ahead. Default 256 KiB, from 1 byte to 1 GiB. */
  readonly readAheadBytes?: number | undefined
  /** Segment indexes held in memory. Default 32 MiB. */
  readonly indexCacheBytes?: number | undefined
  /** Gets the few things worth a line. Any pino-like logger fits. Default: nothing is logged. */
  readonly logger?: Logger | undefined
}

export interface ResolvedBifrostOptions {
  readonly provider: ProviderKind
  readonly logs: readonly LogId[]
  readonly readAheadBytes: number
  readonly store: ResolvedStoreOptions
}

const PROVIDERS: readonly ProviderKind[] = ['local', 'memory']
const OWN_OPTION_NAMES: readonly string[] = ['provider', 'logs', 'readAheadBytes']
const OPTION_NAMES: readonly string[] = [...OWN_OPTION_NAMES, ...STORE_OPTION_NAMES]
const READ_AHEAD_BYTES = { default: 256 * 1024, min: 1, max: 1024 ** 3 }
/** What stands for the directory of a store that has none. */
const NO_DIR = '(memory)'

/** Checks every option and fills in the defaults. Throws INVALID_OPTION. */
export function resolveBifrostOptions(options: BifrostOptions): ResolvedBifrostOptions {
  rejectUnknown(options, OPTION_NAMES)
  const { provider: kind, logs, readAheadBytes, ...store } = options
  const provider = requireOneOf('provider', kind ?? 'local', PROVIDERS)
  const resolved = resolveStoreOptions({ ...store, dir: requireDir(store.dir, provider) })
  if (provider === 'memory' && resolved.readOnly) {
    throw invalidOption("readOnly needs the provider 'local': there is no other store to follow")
  }
  return Object.freeze({
    provider,
    logs: requireLogIds(logs ?? []),
    readAheadBytes: requireInRange('readAheadBytes', readAheadBytes, READ_AHEAD_BYTES),
    store: resolved,
  })
}

function requireDir(dir: string | undefined, provider: ProviderKind): string {
  if (dir !== undefined) return dir
  if (provider === 'memory') return NO_DIR
  throw invalidOption("dir is required for the provider 'local'")
}

function requireLogIds(logIds: unknown): readonly LogId[] {
  if (!Array.isArray(logIds)) throw invalidOption('logs must be an array of log ids')
  return Object.freeze([...new Set([...(logIds as unknown[])].map(requireLogId))])
}

/** The value if it can name a log; throws INVALID_OPTION if not. */
export function requireLogId(value: unknown): LogId {
  if (typeof value === 'string' && value.isWellFormed()) {
    // A character takes at most 3 bytes of UTF-8, so most ids need not be measured.
    const { length } = value
    if (length > 0 && length * 3 <= MAX_LOG_ID_BYTES) return value
    if (length > 0 && Buffer.byteLength(value) <= MAX_LOG_ID_BYTES) return value
  }
  throw invalidOption(`A log id must be a string of 1 to ${MAX_LOG_ID_BYTES} bytes of UTF-8`)
}
