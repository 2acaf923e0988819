/**
 * The headers that every reply carries, and those of a CORS preflight. They are the same whoever
 * asks, so that a reply in a shared cache is good for every page.
 */
import type { ReplyHeaders } from './http-error.ts'

const ALLOWED = [
  'Accept',
  'Authorization',
  'Content-Type',
  'If-None-Match',
  'Stream-Seq',
  'Stream-TTL',
  'Stream-Expires-At',
  'Stream-Closed',
  'Stream-Expected-Offset',
  'Stream-Trim-Before',
  'Stream-Forked-From',
  'Stream-Fork-Offset',
  'Stream-Fork-Sub-Offset',
  'Producer-Id',
  'Producer-Epoch',
  'Producer-Seq',
]

export const METHODS = 'GET, HEAD, POST, PUT, DELETE, OPTIONS'

/** Browsers guess no types, and let pages of any origin read what they may. */
export const COMMON_HEADERS: ReplyHeaders = Object.freeze({
  'access-control-allow-origin': '*',
  // Every header: nothing here is for requests with credentials, which `*` would not cover.
  'access-control-expose-headers': '*',
  'cross-origin-resource-policy': 'cross-origin',
  'x-content-type-options': 'nosniff',
})

export const PREFLIGHT_HEADERS: ReplyHeaders = Object.freeze({
  'access-control-allow-methods': METHODS,
  'access-control-allow-headers': ALLOWED.join(', '),
  'access-control-max-age': '86400',
})
