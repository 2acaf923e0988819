/**
 * Which stream a URL path names. A path is a name, never a file's; it is brought into one form, so
 * that no two spellings name two streams, and whatever could be taken for something else on the way
 * (dot segments, encoded slashes, control characters) is refused.
 */
import { HttpError } from './http-error.ts'

/** A path is at most this many bytes of UTF-8. */
export const MAX_PATH_BYTES = 1024

/** Nearly every path is made of these only, and is its own form. */
const PLAIN = /^(?:\/[A-Za-z0-9_~!$&'()*+,;=:@-][A-Za-z0-9._~!$&'()*+,;=:@-]*)+$/
const UNSAFE = /[\u0000-\u001f\u007f]/

/** The name of the stream at a path, as it stands in the request. Throws 400 and 414. */
export function streamPath(path: string): string {
  if (path.length > MAX_PATH_BYTES) {
    throw new HttpError(414, 'PATH_TOO_LONG', `A path is at most ${MAX_PATH_BYTES} bytes`)
  }
  return PLAIN.test(path) ? path : decodedPath(path)
}

function decodedPath(path: string): string {
  if (!path.startsWith('/')) throw badPath('starts with a slash')
  const segments = path.slice(1).split('/').map(decodeSegment)
  if (segments.some((segment) => segment === '' || segment === '.' || segment === '..')) {
    throw badPath('has no empty segments and no dot segments')
  }
  return `/${segments.join('/')}`
}

function decodeSegment(segment: string): string {
  const decoded = decode(segment)
  if (decoded.includes('/') || decoded.includes('\\')) throw badPath('has no encoded slashes')
  if (UNSAFE.test(decoded)) throw badPath('has no control characters')
  return decoded
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch (cause) {
    throw badPath('is percent-encoded UTF-8', cause)
  }
}

function badPath(rule: string, cause?: unknown): HttpError {
  return new HttpError(400, 'INVALID_PATH', `The path of a stream ${rule}`, { cause })
}
