/** Loads a server with autocannon, and times every answer more finely than its own report does. */
import autocannon, { type Options, type Result } from 'autocannon'
import { Latencies } from '../support/latencies.ts'

/** How often autocannon looks whether it is time to stop; it takes no other moment for it. */
const LOOK_EVERY_MS = 50

export interface LoadOptions {
  readonly url: string
  readonly connections: number
  readonly seconds: number
  readonly body: string
}

export interface Loaded {
  /** Requests that were answered with success. */
  readonly answered: number
  readonly seconds: number
  /** HDR histogram, from the request to the answer's end. */
  readonly latencies: string
}

/** Resolves when the load is over. Throws an Error if anything else than success was answered. */
export async function loadOver(options: LoadOptions): Promise<Loaded> {
  const { url, connections, seconds: duration, body } = options
  const latencies = new Latencies()
  const headers = { 'content-type': 'application/octet-stream' }
  const startedAt = performance.now()
  const { result, instance } = startLoad({
    url,
    method: 'POST',
    connections,
    duration,
    body,
    headers,
  })
  instance.on('response', (_client, _status, _bytes, ms) => latencies.record(ms))
  const { non2xx, errors, '2xx': answered } = await result
  const seconds = (performance.now() - startedAt) / 1000
  if (non2xx > 0 || errors > 0) throw new Error(`${url}: ${non2xx} refusals and ${errors} errors`)
  await whenIdle(url, body)
  return { answered, seconds, latencies: latencies.encode() }
}

/** Starts autocannon; `result` resolves when it is over, by its duration or by `stop()`. */
export function startLoad(options: Options): {
  readonly result: Promise<Result>
  readonly instance: ReturnType<typeof startInstance>
} {
  const { promise: result, resolve, reject } = withResolvers<Result>()
  const instance = startInstance(options, (error, made) => {
    if (error === null || error === undefined) resolve(made)
    else reject(error as Error)
  })
  return { result, instance }
}

function startInstance(
  options: Options,
  done: (error: unknown, result: Result) => void,
): autocannon.Instance {
  return autocannon({ ...options, sampleInt: LOOK_EVERY_MS }, done)
}

/** A server may still have to do what nobody waits for any more; the next one must not pay for it. */
async function whenIdle(url: string, body: string): Promise<void> {
  const headers = { 'content-type': 'application/octet-stream' }
  await (await fetch(url, { method: 'POST', body, headers })).arrayBuffer()
}

function withResolvers<T>(): {
  readonly promise: Promise<T>
  readonly resolve: (value: T) => void
  readonly reject: (error: Error) => void
} {
  let settle: Pick<ReturnType<typeof withResolvers<T>>, 'resolve' | 'reject'> | undefined
  const promise = new Promise<T>((resolve, reject) => {
    settle = { resolve, reject }
  })
  return { promise, ...(settle as NonNullable<typeof settle>) }
}
