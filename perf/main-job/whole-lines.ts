/** Lines from a process that may be killed at any moment. */
import type { Readable } from 'node:stream'

/** The lines that ended before the stream did: a last one that the kill has cut is not believed. */
export async function* wholeLines(stream: Readable): AsyncGenerator<string, void> {
  let rest = ''
  stream.setEncoding('utf8')
  for await (const chunk of stream as AsyncIterable<string>) {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() as string
    yield* lines
  }
}
