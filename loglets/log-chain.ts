/**
 * One log as a chain of links. All arithmetic between LSNs and the loglets' offsets is here, in
 * the cursor and in the acks; LSNs run on from one link to the next.
 *
 *     LSN      1 … 9          10 … 19         20 …
 *     link     gone           base 10         base 20
 *     offset                  1 … 10          1 …
 */
import assert from 'node:assert/strict'
import { LogError, type LogId } from '../codec/errors.ts'
import { INVALID_POSITION, lsnOfOffset, offsetOfLsn } from '../codec/offset.ts'
import type { Lsn, Offset } from '../codec/offset.ts'
import { inLsns, unknownLog } from './errors.ts'
import type { Loglet } from './loglet.ts'
import type { ChainLink, ChainStore } from './loglet-provider.ts'
import { requireLogId } from './options.ts'
import { tailStateOf, type TailState } from './tail-state.ts'

/** The links of a log. Throws UNKNOWN_LOG, or INVALID_OPTION for what can't name a log. */
export function requireChain(chains: ChainStore, logId: LogId): readonly ChainLink[] {
  const links = chains.chain(logId)
  if (links === undefined) throw unknownLog(requireLogId(logId))
  return links
}

/** The link that takes appends. */
export function tailLink(links: readonly ChainLink[]): ChainLink {
  const link = links.at(-1)
  assert.ok(link !== undefined, 'a log has at least one link')
  return link
}

function firstLink(links: readonly ChainLink[]): ChainLink {
  const [link] = links
  assert.ok(link !== undefined, 'a log has at least one link')
  return link
}

/** The link in which `lsn` lies or will lie; the first one for what lies before them all. */
export function linkOf(links: readonly ChainLink[], lsn: Lsn): ChainLink {
  return links.findLast((link) => link.baseLsn <= lsn) ?? firstLink(links)
}

/** The link after that of `loglet`, undefined if there is none yet. Throws UNKNOWN_LOG. */
export function linkAfter(
  links: readonly ChainLink[],
  loglet: Loglet,
  logId: LogId,
): ChainLink | undefined {
  const index = links.findIndex((link) => link.loglet === loglet)
  // A log of the same name that was made since is another log.
  if (index === -1) throw unknownLog(logId)
  return links[index + 1]
}

/** The LSN as an offset of the link; for what lies before it 0, where no record or tail can be. */
export function offsetIn(link: ChainLink, lsn: Lsn): Offset {
  return Math.max(INVALID_POSITION, offsetOfLsn(link.baseLsn, lsn))
}

/** The last LSN that is gone by trimming, or that came before the first link; 0 for none. */
export function trimPointOf(links: readonly ChainLink[]): Lsn {
  const trimmed = links.findLast((link) => link.loglet.state.trimPoint > INVALID_POSITION)
  const link = trimmed ?? firstLink(links)
  return lsnOfOffset(link.baseLsn, link.loglet.state.trimPoint)
}

/** The durable tail. Throws if nothing can be asked of the log any more. */
export function findTail(links: readonly ChainLink[]): TailState {
  const { loglet, baseLsn } = tailLink(links)
  requireLive(loglet)
  return tailStateOf(loglet.state, baseLsn, trimPointOf(links))
}

/** The trim point. Throws if nothing can be asked of the log any more. */
export function getTrimPoint(links: readonly ChainLink[]): Lsn {
  requireLive(tailLink(links).loglet)
  return trimPointOf(links)
}

/** A store that has failed still tells what is durable; a deleted log and a closed store don't. */
function requireLive(loglet: Loglet): void {
  const { ended } = loglet.state
  if (ended !== undefined && !LogError.is(ended, 'STORE_FAILED')) throw ended
}

/** Trims link after link, oldest first; resolves with the trim point then in force. */
export async function trimChain(links: readonly ChainLink[], upTo: Lsn): Promise<Lsn> {
  let trimPoint = getTrimPoint(links)
  for (const link of links) {
    if (link.baseLsn > upTo) break
    const offset = await link.loglet.trim(offsetIn(link, upTo))
    trimPoint = Math.max(trimPoint, lsnOfOffset(link.baseLsn, offset))
  }
  return trimPoint
}

/** Seals the last link, and with it the log. */
export async function sealChain(
  links: readonly ChainLink[],
  reason: string | undefined,
): Promise<TailState> {
  const { loglet, baseLsn } = tailLink(links)
  const state = await loglet.seal(reason).catch((error: unknown) => {
    throw error instanceof LogError ? inLsns(error, baseLsn, undefined) : error
  })
  return tailStateOf(state, baseLsn, trimPointOf(links))
}
