/** Groups of what is ready: never waiting to fill, never losing what was taken. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { afterReady, ReadyChunks, type ChunkLimits } from '../../loglets/ready-chunks.ts'

const LIMITS: ChunkLimits<number> = { maxCount: 10, maxSize: Infinity, sizeOf: () => 1 }

function chunksOf(
  source: AsyncIterable<number> | Iterable<number>,
  limits: Partial<ChunkLimits<number>> = {},
): ReadyChunks<number, number> {
  return new ReadyChunks(source, (item) => item, { ...LIMITS, ...limits })
}

async function all(chunks: ReadyChunks<number, number>): Promise<number[][]> {
  const seen: number[][] = []
  for (;;) {
    const chunk = await chunks.next()
    if (chunk.length === 0) return seen
    seen.push(chunk)
  }
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, i) => from + i)
}

async function* ready(count: number): AsyncGenerator<number> {
  for (let n = 1; n <= count; n++) yield n
}

/** A source that gives what it is fed. */
class Feed implements AsyncIterableIterator<number> {
  readonly #items: number[] = []
  #wake: (() => void) | undefined
  #isOver = false
  error: Error | undefined
  isReturned = false

  push(...items: number[]): void {
    this.#items.push(...items)
    this.#wake?.()
  }

  end(error?: Error): void {
    this.#isOver = true
    this.error = error
    this.#wake?.()
  }

  async next(): Promise<IteratorResult<number>> {
    while (this.#items.length === 0 && !this.#isOver) {
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
    const value = this.#items.shift()
    if (value !== undefined) return { value, done: false }
    if (this.error !== undefined) throw this.error
    return { value: undefined, done: true }
  }

  async return(): Promise<IteratorResult<number>> {
    this.isReturned = true
    return { value: undefined, done: true }
  }

  [Symbol.asyncIterator](): this {
    return this
  }
}

describe('ReadyChunks', () => {
  test('gives full groups while items are ready, and the rest', async () => {
    const expected = [range(1, 10), range(11, 20), range(21, 25)]
    assert.deepEqual(await all(chunksOf(ready(25))), expected)
    assert.deepEqual(await all(chunksOf(range(1, 25))), expected)
    assert.deepEqual(await all(chunksOf(new Set(range(1, 25)))), expected)
    assert.deepEqual(await all(chunksOf([])), [])
    assert.deepEqual(await all(chunksOf(ready(0))), [])
  })

  test('never waits to fill a group', async () => {
    const feed = new Feed()
    const chunks = chunksOf(feed)
    feed.push(1, 2, 3)
    assert.deepEqual(await chunks.next(), [1, 2, 3])
    const next = chunks.next()
    feed.push(4)
    assert.deepEqual(await next, [4])
    feed.end()
    assert.deepEqual(await chunks.next(), [])
    assert.deepEqual(await chunks.next(), [])
  })

  test('gives what arrived while the consumer was busy as one group', async () => {
    const feed = new Feed()
    const chunks = chunksOf(feed)
    feed.push(1)
    assert.deepEqual(await chunks.next(), [1])
    for (const n of range(2, 8)) {
      feed.push(n)
      await new Promise(setImmediate)
    }
    assert.deepEqual(await chunks.next(), range(2, 8))
    feed.end()
  })

  test('takes at most one group ahead', async () => {
    let taken = 0
    function* source(): Generator<number> {
      for (;;) yield ++taken
    }
    const chunks = chunksOf(source())
    assert.deepEqual(await chunks.next(), range(1, 10))
    await new Promise(setImmediate)
    assert.ok(taken <= 20, `${taken} were taken`)
    chunks.stop(new Error('enough'))
  })

  test('keeps groups within the size, but always gives one item', async () => {
    const limits = { maxSize: 10, sizeOf: (n: number) => n }
    const chunks = chunksOf([3, 3, 3, 3, 99, 1, 10, 5, 5], limits)
    assert.deepEqual(await all(chunks), [[3, 3, 3], [3], [99], [1], [10], [5, 5]])
  })

  test('throws what the source throws, after all that came before it', async () => {
    const failure = new Error('source')
    async function* source(): AsyncGenerator<number> {
      yield* range(1, 12)
      throw failure
    }
    const chunks = chunksOf(source())
    assert.deepEqual(await chunks.next(), range(1, 10))
    assert.deepEqual(await chunks.next(), [11, 12])
    await assert.rejects(chunks.next(), (error) => error === failure)
    await assert.rejects(chunks.next(), (error) => error === failure)
  })

  test('throws undefined if the source does', async () => {
    async function* source(): AsyncGenerator<number> {
      const nothing: unknown = undefined
      throw nothing
    }
    const outcome = await chunksOf(source())
      .next()
      .then(
        () => 'resolved',
        (error: unknown) => [error],
      )
    assert.deepEqual(outcome, [undefined])
  })

  test('stop() gives out what was taken, tells the source, and throws the reason', async () => {
    const feed = new Feed()
    const chunks = chunksOf(feed)
    feed.push(1, 2)
    await new Promise(setImmediate)
    const reason = new Error('stopped')
    const first = chunks.next()
    await new Promise(setImmediate)
    assert.deepEqual(await first, [1, 2])
    feed.push(3)
    await new Promise(setImmediate)
    chunks.stop(reason)
    feed.push(4)
    assert.equal(feed.isReturned, true)
    assert.deepEqual(await chunks.next(), [3])
    await assert.rejects(chunks.next(), (error) => error === reason)
  })

  test('stop() wakes a consumer that waits for a source that never answers', async () => {
    const chunks = chunksOf({
      [Symbol.asyncIterator]: () => ({
        next: () => new Promise<never>(() => undefined),
        return: () => Promise.reject(new Error('from return')),
      }),
    })
    const waiting = chunks.next()
    await new Promise(setImmediate)
    chunks.stop('reason')
    await assert.rejects(waiting, (error) => error === 'reason')
  })

  test('stop() is not held up by a source that throws when it is told', async () => {
    const chunks = chunksOf({
      [Symbol.iterator]: () => ({
        next: () => ({ value: 1, done: false }),
        return: () => {
          throw new Error('from return')
        },
      }),
    })
    await chunks.next()
    chunks.stop('reason')
    while ((await chunks.next().catch(() => [])).length > 0);
    await assert.rejects(chunks.next(), (error) => error === 'reason')
  })

  test('stops the source when an item is not accepted, after those before it', async () => {
    const feed = new Feed()
    const failure = new Error('not this one')
    const accept = (item: number): number => {
      if (item === 3) throw failure
      return item
    }
    const chunks = new ReadyChunks(feed, accept, LIMITS)
    feed.push(1, 2, 3, 4)
    assert.deepEqual(await chunks.next(), [1, 2])
    await assert.rejects(chunks.next(), (error) => error === failure)
    assert.equal(feed.isReturned, true)
  })
})

describe('afterReady()', () => {
  test('comes after all microtasks, from wherever it is called, and before any timer', async () => {
    const order: string[] = []
    const chain = async (): Promise<void> => {
      for (let i = 0; i < 20; i++) await Promise.resolve()
      order.push('microtasks')
    }
    await new Promise<void>((resolve) => {
      setImmediate(() => {
        setTimeout(() => {
          order.push('timer')
          resolve()
        }, 0)
        afterReady(() => order.push('after'))
        void chain()
      })
    })
    assert.deepEqual(order, ['microtasks', 'after', 'timer'])
  })
})
