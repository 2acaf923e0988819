/**
 * The options of a store: defaults, ranges and units in one place. Resolved once, at open; frozen
 * from then on.
 */
import { logError, type LogErrorOf } from '../codec/errors.ts'

/** Receives the few things worth a line. Any pino-like logger fits. */
export interface Logger {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

const KIB = 1024
const MIB = 1024 * KIB
const GIB = 1024 * MIB

interface Limit {
  readonly default: number
  readonly min: number
  readonly max: number
}

type LimitName =
  | 'lockTimeoutMs'
  | 'segmentSizeBytes'
  | 'maxRecordBytes'
  | 'maxBatchBytes'
  | 'batchCommitCount'
  | 'batchCommitBytes'
  | 'batchCommitDelayMs'
  | 'queueBytes'
  | 'reserveBytes'
  | 'indexCacheBytes'

/** No buffer, read or write reaches 2 GiB: the sum of what one group may carry stays below it. */
const LIMITS: Readonly<Record<LimitName, Limit>> = {
  /** How long to wait for another opener to let go of the lock, in milliseconds. */
  lockTimeoutMs: { default: 0, min: 0, max: 2 ** 31 - 1 },
  /** A segment rolls once its groups have reached this many bytes. */
  segmentSizeBytes: { default: 64 * MIB, min: 64 * KIB, max: GIB },
  /** The body of one record. */
  maxRecordBytes: { default: 16 * MIB, min: 1, max: 512 * MIB },
  /** All frames of one batch. */
  maxBatchBytes: { default: 32 * MIB, min: 1, max: 512 * MIB },
  /** Commands in one group. */
  batchCommitCount: { default: 5000, min: 1, max: 100_000 },
  /** Bytes of frames in one group; the first command goes in whatever its size. */
  batchCommitBytes: { default: 8 * MIB, min: 1, max: 512 * MIB },
  /** How long a group waits for more commands, in milliseconds; 0 sets no timer. */
  batchCommitDelayMs: { default: 0, min: 0, max: 60_000 },
  /** Bytes admitted to the queue; an empty queue admits any legal command. */
  queueBytes: { default: 64 * MIB, min: 1, max: GIB },
  /** Synced zeros in the next segment's file, for trims, seals and deletes on a full disk. */
  reserveBytes: { default: MIB, min: 4 * KIB, max: 64 * MIB },
  /** Segment indexes held in memory. */
  indexCacheBytes: { default: 32 * MIB, min: 0, max: GIB },
}

/** How a group is committed: through the thread pool, or blocking this thread for one sync. */
export type CommitMode = 'async' | 'inline'

export type StoreOptions = Readonly<Partial<Record<LimitName, number | undefined>>> & {
  /** The store's directory; made if missing. */
  readonly dir: string
  /** Follow the store without a lock and without changing a byte. Default false. */
  readonly readOnly?: boolean | undefined
  /** Default 'async'. */
  readonly commitMode?: CommitMode | undefined
  /** Default: nothing is logged. */
  readonly logger?: Logger | undefined
}

export type ResolvedStoreOptions = Readonly<Record<LimitName, number>> & {
  readonly dir: string
  readonly readOnly: boolean
  readonly commitMode: CommitMode
  readonly logger: Logger
}

/** The names of all store options, for layers above that pass them on. */
export const STORE_OPTION_NAMES: readonly string[] = [
  ...Object.keys(LIMITS),
  'dir',
  'readOnly',
  'commitMode',
  'logger',
]

/** Checks every option and fills in the defaults. Throws INVALID_OPTION. */
export function resolveStoreOptions(options: StoreOptions): ResolvedStoreOptions {
  rejectUnknown(options, STORE_OPTION_NAMES)
  const limits = resolveLimits(options)
  requireRecordFitsBatch(options, limits)
  return Object.freeze({
    ...limits,
    dir: requireString('dir', options.dir),
    readOnly: requireBoolean('readOnly', orDefault(options.readOnly, false)),
    commitMode: requireOneOf('commitMode', orDefault(options.commitMode, 'async'), [
      'async',
      'inline',
    ]),
    logger: requireLogger(orDefault(options.logger, SILENT)),
  })
}

/** Only what is left out has a default: null is as wrong as any other value. */
function orDefault<T>(value: T | undefined, fallback: T): T {
  return value === undefined ? fallback : value
}

function resolveLimits(options: StoreOptions): Record<LimitName, number> {
  const names = Object.keys(LIMITS) as LimitName[]
  const limits = Object.fromEntries(
    names.map((name) => [name, requireInRange(name, options[name], LIMITS[name])]),
  ) as Record<LimitName, number>
  // A default gives way to a limit that the caller set; two limits that the caller set must agree.
  if (options.maxRecordBytes === undefined) {
    limits.maxRecordBytes = Math.min(limits.maxRecordBytes, limits.maxBatchBytes)
  } else if (options.maxBatchBytes === undefined) {
    limits.maxBatchBytes = Math.max(limits.maxBatchBytes, limits.maxRecordBytes)
  }
  return limits
}

function requireRecordFitsBatch(options: StoreOptions, limits: Record<LimitName, number>): void {
  if (limits.maxRecordBytes <= limits.maxBatchBytes) return
  throw invalidOption(
    `maxRecordBytes (${String(options.maxRecordBytes)}) must not be greater than ` +
      `maxBatchBytes (${String(options.maxBatchBytes)})`,
  )
}

/** The error for an option out of its range, of the wrong type, or unknown. */
export function invalidOption(message: string): LogErrorOf<'INVALID_OPTION'> {
  return logError('INVALID_OPTION', message)
}

/** Throws INVALID_OPTION naming the first key that no option has, or if there is no object. */
export function rejectUnknown(options: object, names: readonly string[]): void {
  if (typeof options !== 'object' || (options as object | null) === null) {
    throw invalidOption('The options must be an object')
  }
  const unknown = Object.keys(options).find((key) => !names.includes(key))
  if (unknown !== undefined) throw invalidOption(`There is no option ${JSON.stringify(unknown)}`)
}

/** The value if it is a whole number in the range, the default if it is undefined. */
export function requireInRange(name: string, value: unknown, limit: Limit): number {
  if (value === undefined) return limit.default
  if (Number.isSafeInteger(value)) {
    const number = value as number
    if (number >= limit.min && number <= limit.max) return number
  }
  throw invalidOption(`${name} must be a whole number from ${limit.min} to ${limit.max}`)
}

function requireString(name: string, value: unknown): string {
  if (typeof value === 'string' && value !== '' && !value.includes('\0')) return value
  throw invalidOption(`${name} must be a path`)
}

export function requireBoolean(name: string, value: unknown): boolean {
  if (typeof value === 'boolean') return value
  throw invalidOption(`${name} must be true or false`)
}

export function requireOneOf<T extends string>(
  name: string,
  value: unknown,
  allowed: readonly T[],
): T {
  const found = allowed.find((candidate) => candidate === value)
  if (found !== undefined) return found
  throw invalidOption(`${name} must be one of ${allowed.join(', ')}`)
}

function requireLogger(logger: unknown): Logger {
  const candidate = logger as Partial<Record<keyof Logger, unknown>> | null
  const methods = [candidate?.info, candidate?.warn, candidate?.error]
  if (methods.every((method) => typeof method === 'function')) return logger as Logger
  throw invalidOption('logger must have info, warn and error')
}

/** A logger that says nothing. */
export const SILENT: Logger = Object.freeze({
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
})
