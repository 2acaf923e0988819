/** Who may do what is the application's to say: one hook that sees every request first. */
import { HttpError } from './http-error.ts'

/** What a decision can be made on. */
export interface AuthorizeRequest {
  readonly method: string
  /**
   * The stream or page, below the place where the handler is mounted. However a request spells a
   * path, with escapes or without, this is the one name of what it is for.
   */
  readonly path: string
  /** A header's value, by its name in lower case. */
  readonly header: (name: string) => string | undefined
}

/** 'unauthorized' asks for credentials (401); 'forbidden' says that no others would help (403). */
export type Authorization = 'allowed' | 'unauthorized' | 'forbidden'

/**
 * Called before anything else is done with a request, other than a CORS preflight. A request for a
 * fork reads its source, so there it is called once more, as for a GET of that. What it throws is
 * 500, and the request is not granted.
 *
 * @example
 * ```ts
 * const authorize: Authorize = ({ method, header }) =>
 *   method === 'GET' || header('authorization') === `Bearer ${process.env.TOKEN}`
 *     ? 'allowed'
 *     : 'unauthorized'
 * ```
 */
export type Authorize = (request: AuthorizeRequest) => Authorization | Promise<Authorization>

/** Throws 401 or 403 unless the request is allowed. */
export async function requireAllowed(
  authorize: Authorize,
  request: AuthorizeRequest,
): Promise<void> {
  const verdict = await authorize(request)
  if (verdict === 'allowed') return
  if (verdict === 'forbidden') throw new HttpError(403, 'FORBIDDEN', 'This is not allowed')
  throw new HttpError(401, 'UNAUTHORIZED', 'This needs other credentials', {
    headers: { 'www-authenticate': 'Bearer' },
  })
}
