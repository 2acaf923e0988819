/**
 * What the registry keeps of a stream, and its form as a record of the registry's log:
 *
 *     { put: entry }   the stream is as `entry` says; the last one counts
 *     { drop: n }      incarnation n is gone
 *     { next: n }      incarnations below n are taken
 */
import type { StreamOffset } from './offset.ts'

/** Where a fork came from, and where its own log goes on. */
export interface ForkEntry {
  /** The incarnation that it inherits from. */
  readonly source: number
  readonly sourcePath: string
  /** What was asked for, to know the same request again. */
  readonly requestedOffset: string | undefined
  readonly requestedSubOffset: number
  /** Everything up to here is the source's. */
  readonly base: StreamOffset
}

export interface StreamEntry {
  /** Counts the streams of a store, so that a path that is used again is another stream. */
  readonly incarnation: number
  readonly path: string
  /** As it was given at the creation. */
  readonly contentType: string
  readonly ttlSeconds: number | undefined
  /** Milliseconds since the epoch. */
  readonly expiresAtMs: number | undefined
  readonly isClosed: boolean
  /** Deleted, and kept only for its forks. */
  readonly isGone: boolean
  readonly fork: ForkEntry | undefined
}

export type RegistryRecord =
  { readonly put: StreamEntry } | { readonly drop: number } | { readonly next: number }

/** All logs whose names start so are the server's. */
export const LOG_PREFIX = 'http'
/** The log that the registry is kept in. */
export const REGISTRY_LOG = 'http:registry'
const MAX_PATH_IN_NAME_BYTES = 200

/** The log of a stream. Only the number matters; the path is for those who look at a store. */
export function streamLogId({ incarnation, path }: StreamEntry): string {
  return `${LOG_PREFIX}:${shortened(path)}#${incarnation}`
}

/** Whether a log is one of a stream's. */
export function isStreamLog(logId: string): boolean {
  return logId.startsWith(`${LOG_PREFIX}:/`)
}

function shortened(path: string): string {
  const bytes = Buffer.from(path)
  if (bytes.length <= MAX_PATH_IN_NAME_BYTES) return path
  const start = bytes.subarray(0, MAX_PATH_IN_NAME_BYTES).toString()
  // The cut may have gone through a character.
  return `${start.replace(/\ufffd$/u, '')}…`
}
