/** The queue before the writer: order, limits, waiting, withdrawal, and what is counted. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { LogError } from '../../codec/errors.ts'
import { FRAME_KIND, GROUP_HEADER_BYTES } from '../../codec/format.ts'
import { Command } from '../../engine/commands.ts'
import { CommandQueue, type CommandGroup, type QueueLimits } from '../../engine/command-queue.ts'

const FRAME_BYTES = 24
const WIDE: QueueLimits = { queueBytes: 1 << 20, batchCommitCount: 1000, batchCommitBytes: 1 << 20 }

/** A command with one frame whose body is its own number, over and over. */
class Numbered extends Command {
  readonly frames = 1
  readonly number: number
  readonly size: number
  error: LogError | undefined
  hasSucceeded = false

  constructor(number: number, size: number) {
    super()
    this.number = number
    this.size = size
  }

  judge(): void {
    this.isKept = true
  }

  seal(): void {
    // Nothing here is written.
  }

  protected succeed(): void {
    this.hasSucceeded = true
  }

  protected reject(error: LogError): void {
    this.error = error
  }
}

/** Pushes a command whose frame takes `size` bytes. */
function push(
  queue: CommandQueue,
  number: number,
  size: number,
  whenFull: 'wait' | 'reject' = 'wait',
  signal?: AbortSignal,
): Numbered {
  const command = new Numbered(number, size)
  const buffer = queue.buffer()
  const start = buffer.end
  buffer.putFrame(FRAME_KIND.data, number, new Uint8Array(size - FRAME_BYTES).fill(number))
  queue.push(command, start, whenFull, signal)
  return command
}

/** The numbers of a group's commands; checks that each one's frame is where it says. */
function numbersIn(group: CommandGroup | undefined): number[] {
  if (group === undefined) return []
  const { bytes } = group.buffer
  return group.commands.map((command) => {
    assert.ok(command instanceof Numbered)
    const { number, size, start, end } = command
    assert.equal(end - start, size)
    const body = bytes.subarray(start + FRAME_BYTES, end)
    assert.ok(
      body.every((byte) => byte === (number & 0xff)),
      `the frame of ${number}`,
    )
    return number
  })
}

function takeAll(queue: CommandQueue): number[][] {
  const groups: number[][] = []
  for (;;) {
    const group = queue.take()
    if (group === undefined) return groups
    groups.push(numbersIn(group))
    queue.recycle(group)
  }
}

describe('CommandQueue', () => {
  test('take() gives everything that is queued, in call order', () => {
    const queue = new CommandQueue(WIDE)
    for (let i = 1; i <= 5; i++) push(queue, i, 100)
    assert.equal(queue.queuedBytes, 500)
    assert.deepEqual(takeAll(queue), [[1, 2, 3, 4, 5]])
    assert.equal(queue.queuedBytes, 0)
    assert.ok(queue.isEmpty)
    assert.equal(queue.take(), undefined)
  })

  test('take() gives no more commands than batchCommitCount', () => {
    const queue = new CommandQueue({ ...WIDE, batchCommitCount: 2 })
    for (let i = 1; i <= 5; i++) push(queue, i, 100)
    assert.ok(queue.isFirstGroupFull)
    assert.deepEqual(takeAll(queue), [[1, 2], [3, 4], [5]])
  })

  test('take() gives no more bytes than batchCommitBytes, but the first command whatever its size', () => {
    const queue = new CommandQueue({ ...WIDE, batchCommitBytes: 300 })
    for (const [i, size] of [1000, 100, 200, 24, 500].entries()) push(queue, i + 1, size)
    assert.deepEqual(takeAll(queue), [[1], [2, 3], [4], [5]])
  })

  test('push() makes what finds no room wait, and lets it in first come, first served', () => {
    const queue = new CommandQueue({ ...WIDE, queueBytes: 250 })
    for (let i = 1; i <= 4; i++) push(queue, i, 100)
    push(queue, 5, 24)
    assert.deepEqual([queue.queuedBytes, queue.waitingBytes], [200, 224], '5 waits behind 3')
    assert.deepEqual(numbersIn(queue.take()), [1, 2])
    assert.deepEqual([queue.queuedBytes, queue.waitingBytes], [224, 0])
    assert.deepEqual(takeAll(queue), [[3, 4, 5]])
  })

  test('push() lets any command into an empty queue', () => {
    const queue = new CommandQueue({ ...WIDE, queueBytes: 1 })
    push(queue, 1, 1000)
    push(queue, 2, 2000)
    assert.deepEqual([queue.queuedBytes, queue.waitingBytes], [1000, 2000])
    assert.deepEqual(takeAll(queue), [[1], [2]])
  })

  test('push() is QUEUE_FULL where that is asked for, and leaves no trace', () => {
    const queue = new CommandQueue({ ...WIDE, queueBytes: 150 })
    push(queue, 1, 100)
    const refused = push(queue, 2, 100, 'reject')
    assert.equal(refused.error?.code, 'QUEUE_FULL')
    assert.equal(refused.error.retryable, true)
    push(queue, 3, 40)
    assert.deepEqual(takeAll(queue), [[1, 3]])
  })

  test('push() is QUEUE_FULL while others wait, even where there is room', () => {
    const queue = new CommandQueue({ ...WIDE, queueBytes: 150 })
    push(queue, 1, 100)
    push(queue, 2, 100)
    assert.equal(push(queue, 3, 24, 'reject').error?.code, 'QUEUE_FULL')
    assert.deepEqual(takeAll(queue), [[1], [2]])
  })

  test('an abort withdraws what is queued, and nothing of it is in the group', () => {
    const queue = new CommandQueue(WIDE)
    const controller = new AbortController()
    push(queue, 1, 100)
    const withdrawn = push(queue, 2, 100, 'wait', controller.signal)
    push(queue, 3, 100)
    controller.abort(new Error('gone'))
    assert.equal(withdrawn.error?.code, 'ABORTED')
    assert.deepEqual(takeAll(queue), [[1, 3]])
    assert.equal(queue.queuedBytes, 0)
  })

  test('an abort withdraws what waits, and lets those behind it in', () => {
    const queue = new CommandQueue({ ...WIDE, queueBytes: 150 })
    const controller = new AbortController()
    push(queue, 1, 100)
    const withdrawn = push(queue, 2, 100, 'wait', controller.signal)
    push(queue, 3, 40)
    controller.abort()
    assert.equal(withdrawn.error?.code, 'ABORTED')
    assert.deepEqual([queue.queuedBytes, queue.waitingBytes], [140, 0])
    assert.deepEqual(takeAll(queue), [[1, 3]])
  })

  test('an abort changes nothing once the command is in a group', () => {
    const queue = new CommandQueue(WIDE)
    const controller = new AbortController()
    const command = push(queue, 1, 100, 'wait', controller.signal)
    queue.take()
    controller.abort()
    assert.equal(command.error, undefined)
    command.settle()
    assert.ok(command.hasSucceeded)
  })

  test('a settled command is off its signal', () => {
    const queue = new CommandQueue(WIDE)
    const controller = new AbortController()
    const command = push(queue, 1, 100, 'wait', controller.signal)
    queue.take()
    command.settle()
    controller.abort()
    assert.equal(command.error, undefined)
  })

  test('a queue of nothing but withdrawn commands gives an empty group', () => {
    const queue = new CommandQueue(WIDE)
    const controller = new AbortController()
    push(queue, 1, 100, 'wait', controller.signal)
    controller.abort()
    assert.deepEqual(numbersIn(queue.take()), [])
    assert.ok(queue.isEmpty)
  })

  test('drain() gives all that was not taken, in order, those that wait too', () => {
    const queue = new CommandQueue({ ...WIDE, queueBytes: 250, batchCommitCount: 1 })
    const controller = new AbortController()
    for (let i = 1; i <= 2; i++) push(queue, i, 100)
    push(queue, 3, 100, 'wait', controller.signal)
    push(queue, 4, 100)
    controller.abort()
    const drained = queue
      .drain()
      .map((command) => (command instanceof Numbered ? command.number : 0))
    assert.deepEqual(drained, [1, 2, 4])
    assert.deepEqual([queue.queuedBytes, queue.waitingBytes, queue.isEmpty], [0, 0, true])
    push(queue, 5, 100)
    assert.deepEqual(takeAll(queue), [[5]])
  })

  test('recycle() reuses a buffer, and no frame of it shows up again', () => {
    const queue = new CommandQueue(WIDE)
    push(queue, 1, 1000)
    const first = queue.take()
    assert.ok(first)
    queue.recycle(first)
    push(queue, 2, 100)
    const second = queue.take()
    assert.equal(second?.buffer.bytes, first.buffer.bytes)
    assert.deepEqual(numbersIn(second), [2])
    assert.equal(second.buffer.end, GROUP_HEADER_BYTES + 100)
  })

  test('keeps order, bytes and limits for any calls', () => {
    const call = fc.oneof(
      {
        weight: 5,
        arbitrary: fc.record({ push: fc.integer({ min: 25, max: 400 }), reject: fc.boolean() }),
      },
      { weight: 1, arbitrary: fc.record({ abort: fc.nat(30) }) },
      { weight: 2, arbitrary: fc.constant('take' as const) },
    )
    const limits = fc.record({
      queueBytes: fc.integer({ min: 1, max: 1500 }),
      batchCommitCount: fc.integer({ min: 1, max: 5 }),
      batchCommitBytes: fc.integer({ min: 1, max: 1000 }),
    })
    fc.assert(
      fc.property(limits, fc.array(call, { maxLength: 60 }), (limit, calls) => {
        const queue = new CommandQueue(limit)
        const pushed: { readonly command: Numbered; readonly controller: AbortController }[] = []
        const taken: number[] = []
        const take = (): boolean => {
          const group = queue.take()
          if (group === undefined) return false
          const { commands } = group
          const bytes = commands.reduce((sum, { start, end }) => sum + end - start, 0)
          assert.ok(commands.length <= limit.batchCommitCount)
          assert.ok(commands.length <= 1 || bytes <= limit.batchCommitBytes)
          taken.push(...numbersIn(group))
          queue.recycle(group)
          return true
        }
        for (const what of calls) {
          if (what === 'take') take()
          else if ('abort' in what) pushed[what.abort]?.controller.abort()
          else {
            const controller = new AbortController()
            const whenFull = what.reject ? 'reject' : 'wait'
            const command = push(queue, pushed.length, what.push, whenFull, controller.signal)
            pushed.push({ command, controller })
          }
          assert.ok(queue.queuedBytes >= 0 && queue.waitingBytes >= 0)
          assert.ok(queue.queuedBytes <= Math.max(limit.queueBytes, 400))
        }
        while (take());
        assert.deepEqual([queue.queuedBytes, queue.waitingBytes], [0, 0])
        const expected = pushed.filter(({ command }) => command.error === undefined)
        assert.deepEqual(
          taken,
          expected.map(({ command }) => command.number),
        )
      }),
      { numRuns: 500 },
    )
  })
})
