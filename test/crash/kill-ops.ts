/**
 * What the killed child does to its store, as plain data that goes through the ledger. Records
 * carry the number of their operation, and bytes that follow from it, so that the parent knows what
 * must be stored without hearing it from the child.
 */
import { Random } from '../support/random.ts'

/** What the child does with the store; see kill-child.ts. */
export type KillMode = 'load' | 'close' | 'open'

export type KillOp =
  | { readonly kind: 'append'; readonly n: number; readonly log: string; readonly count: number }
  /** One record for each of these logs; a log may be named twice. */
  | { readonly kind: 'many'; readonly n: number; readonly logs: readonly string[] }
  | { readonly kind: 'trim'; readonly n: number; readonly log: string; readonly upTo: number }
  | { readonly kind: 'seal'; readonly n: number; readonly log: string; readonly reason: string }
  | { readonly kind: 'create'; readonly n: number; readonly log: string }
  | { readonly kind: 'delete'; readonly n: number; readonly log: string }

/** What an operation resolves with, or the code of its error. */
export type KillResult = number | readonly number[] | null | { readonly code: string }

/** The payload of an operation's record `i`. */
export interface KillPayload {
  readonly n: number
  readonly i: number
  readonly bytes: Uint8Array
}

/** Mostly small, sometimes some pages, rarely larger than a whole segment's threshold. */
function sizeOf(random: Random): number {
  if (random.chance(0.003)) return random.between(60_000, 100_000)
  return random.chance(0.03) ? random.between(4000, 20_000) : random.below(300)
}

export function payloadOf(n: number, i: number): KillPayload {
  const random = new Random(n * 97 + i)
  return { n, i, bytes: random.bytes(sizeOf(random)) }
}
