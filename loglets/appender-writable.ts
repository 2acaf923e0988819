/** An appender as a stream of Node.js, for `pipeline` and its like. */
import { Writable } from 'node:stream'

/** What a stream needs of an appender. */
interface Sink {
  take(payloads: readonly unknown[]): Pending | undefined
  committed(): Promise<unknown>
}

/** Payloads that wait for room. */
interface Pending {
  accepted: () => void
  failed: (error: unknown) => void
}

type Callback = (error?: Error | null) => void

/**
 * Makes an object-mode stream whose chunks are payloads. `write` calls back when its chunk is
 * accepted, so the memory limit of the appender holds the stream back; `finish` comes when all is
 * durable. Ending the stream leaves the appender open.
 */
export function appenderWritable(sink: Sink): Writable {
  return new Writable({
    objectMode: true,
    write: (chunk: unknown, _encoding, callback) => take(sink, [chunk], callback),
    writev: (chunks, callback) =>
      take(
        sink,
        chunks.map(({ chunk }) => chunk as unknown),
        callback,
      ),
    final: (callback) => {
      sink.committed().then(() => callback(), callback)
    },
  })
}

function take(sink: Sink, payloads: readonly unknown[], callback: Callback): void {
  try {
    const pending = sink.take(payloads)
    if (pending === undefined) return callback()
    pending.accepted = callback
    pending.failed = (error) => callback(error as Error)
  } catch (error) {
    callback(error as Error)
  }
}
