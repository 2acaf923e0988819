/** The types of streams: which are equal, which are JSON, which can go into an event as text. */
import { badRequest } from './http-error.ts'

export const DEFAULT_CONTENT_TYPE = 'application/octet-stream'
export const JSON_TYPE = 'application/json'

const MAX_LENGTH = 256
const MEDIA_TYPE =
  /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(?:\s*;\s*[\w!#$&^.+-]+=(?:[\w!#$&^.+-]+|"[^"\\]*"))*\s*;?$/

/** A type as it was given, if it is one. Throws 400. */
export function requireContentType(value: string): string {
  const type = value.trim()
  if (type.length <= MAX_LENGTH && MEDIA_TYPE.test(type)) return type
  throw badRequest(`Content-Type must be a media type of at most ${MAX_LENGTH} characters`)
}

/** The type without its parameters, which don't make a stream another one. */
export function essenceOf(contentType: string): string {
  const end = contentType.indexOf(';')
  const essence = end === -1 ? contentType : contentType.slice(0, end)
  return essence.trim().toLowerCase()
}

export function isJson(contentType: string): boolean {
  return essenceOf(contentType) === JSON_TYPE
}

/** Whether data goes into events as it is; if not, as base64. */
export function isText(contentType: string): boolean {
  const essence = essenceOf(contentType)
  return essence.startsWith('text/') || essence === JSON_TYPE
}
