/** The options of a handler: defaults, ranges and units in one place. */
import type { Registry } from 'prom-client'
import type { Logger } from '../index.ts'
import type { Authorize } from './authorize.ts'

/** What a handler lets clients do at most. Every queue and buffer of the server has its limit here. */
export interface HandlerLimits {
  /** The body of one request; more is 413. Default 8 MiB. */
  readonly maxBodyBytes: number
  /** All bodies that are being received or written; more is 503. Default 128 MiB. */
  readonly maxBufferedBytes: number
  /** Messages in one JSON array, and in one answer. Default 10,000. */
  readonly maxMessages: number
  /** An answer stops once it has this much data, at the end of a message. Default 1 MiB. */
  readonly maxReadBytes: number
  /** Streams there may be; more is 507. Default 10,000. */
  readonly maxStreams: number
  /** Idempotent producers of one stream; more is 429. Default 1000. */
  readonly maxProducers: number
  /** Clients that wait for data, by long-poll or events; more is 503. Default 10,000. */
  readonly maxLiveReaders: number
  /** How long a long-poll waits. Default 30,000 ms. */
  readonly longPollMs: number
  /** After this time an event stream is ended, and its client comes back. Default 60,000 ms. */
  readonly eventStreamMs: number
  /** How often a quiet event stream is written to, so that nobody takes it for dead. Default 15,000 ms. */
  readonly heartbeatMs: number
  /** A client that takes nothing of what waits for it for this long is cut off. Default 30,000 ms. */
  readonly stallMs: number
}

export type HandlerOptions = {
  readonly [Name in keyof HandlerLimits]?: number | undefined
} & {
  /** Decides on every request. Default: everything is allowed. */
  readonly authorize?: Authorize | undefined
  /** Gets the few things worth a line. Any pino-like logger fits. Default: nothing is logged. */
  readonly logger?: Logger | undefined
  /**
   * Where the metrics of the requests go, and what `/metrics` shows. Default: a registry of the
   * handler's own, with the metrics of the store in it.
   */
  readonly registry?: Registry | undefined
  /** Whether to answer at `/`, `/healthz` and `/metrics` too. Default true. */
  readonly pages?: boolean | undefined
}

const KIB = 1024
const MIB = 1024 * KIB
const MAX_MS = 2 ** 31 - 1

interface Limit {
  readonly default: number
  readonly min: number
  readonly max: number
}

const LIMITS: Readonly<Record<keyof HandlerLimits, Limit>> = {
  maxBodyBytes: { default: 8 * MIB, min: 1, max: 512 * MIB },
  maxBufferedBytes: { default: 128 * MIB, min: 64 * KIB, max: 8 * 1024 * MIB },
  maxMessages: { default: 10_000, min: 1, max: 100_000 },
  maxReadBytes: { default: MIB, min: 1, max: 64 * MIB },
  maxStreams: { default: 10_000, min: 1, max: 1_000_000 },
  maxProducers: { default: 1000, min: 1, max: 100_000 },
  maxLiveReaders: { default: 10_000, min: 0, max: 1_000_000 },
  longPollMs: { default: 30_000, min: 1, max: MAX_MS },
  eventStreamMs: { default: 60_000, min: 1, max: MAX_MS },
  heartbeatMs: { default: 15_000, min: 1, max: MAX_MS },
  stallMs: { default: 30_000, min: 1, max: MAX_MS },
}

/** The names of all limits, for those who take them from elsewhere. */
export const LIMIT_NAMES: readonly (keyof HandlerLimits)[] = Object.keys(
  LIMITS,
) as (keyof HandlerLimits)[]

const OTHER_NAMES: readonly string[] = ['authorize', 'logger', 'registry', 'pages']

/** Checks the limits and fills in the defaults. Throws RangeError and TypeError. */
export function resolveLimits(options: HandlerOptions): HandlerLimits {
  const names: readonly string[] = [...LIMIT_NAMES, ...OTHER_NAMES]
  const unknown = Object.keys(options).find((name) => !names.includes(name))
  if (unknown !== undefined) throw new TypeError(`There is no option ${JSON.stringify(unknown)}`)
  const limits = LIMIT_NAMES.map((name) => [name, inRange(name, options[name])] as const)
  return Object.freeze(Object.fromEntries(limits) as Record<keyof HandlerLimits, number>)
}

function inRange(name: keyof HandlerLimits, value: number | undefined): number {
  const { default: fallback, min, max } = LIMITS[name]
  if (value === undefined) return fallback
  if (Number.isSafeInteger(value) && value >= min && value <= max) return value
  throw new RangeError(`${name} must be a whole number from ${min} to ${max}`)
}

/** A logger that says nothing. */
export const SILENT: Logger = Object.freeze({
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
})
