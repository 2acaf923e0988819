/** What a read asks for, in the query of its URL. Parameters that nobody knows are ignored. */
import { badRequest } from './http-error.ts'
import { parseOffset, type StreamOffset } from './offset.ts'

export interface ReadQuery {
  /** A place, the beginning, or the end as it is now. */
  readonly offset: StreamOffset | 'start' | 'now'
  readonly live: 'long-poll' | 'sse' | undefined
  readonly cursor: string | undefined
}

const NOTHING: ReadQuery = Object.freeze({ offset: 'start', live: undefined, cursor: undefined })

/** Throws 400. */
export function readQuery(query: string): ReadQuery {
  if (query === '') return NOTHING
  const parameters = new URLSearchParams(query)
  const live = readLive(parameters.get('live'))
  const [token, ...others] = parameters.getAll('offset')
  if (others.length > 0) throw badRequest('There is one offset')
  if (token === undefined && live !== undefined) throw badRequest('A live read has an offset')
  return {
    offset: token === undefined ? 'start' : readOffset(token),
    live,
    cursor: parameters.get('cursor') ?? undefined,
  }
}

function readLive(value: string | null): ReadQuery['live'] {
  if (value === null) return undefined
  if (value === 'sse' || value === 'long-poll') return value
  throw badRequest('live is sse or long-poll')
}

function readOffset(token: string): ReadQuery['offset'] {
  if (token === '-1') return 'start'
  if (token === 'now') return 'now'
  const offset = parseOffset(token)
  if (offset === undefined) throw badRequest('The offset is none that this server gave')
  return offset
}
