/**
 * The queue before the writer: commands in call order, gathered into groups in waiting, bounded in
 * bytes. First come, first served: while anybody waits for room, everybody who comes later waits
 * behind them.
 *
 *     call ──▶ waiting (each in bytes of its own) ──▶ groups in waiting ──▶ take() ──▶ writer
 */
import { aborted } from '../codec/errors.ts'
import { queueFull } from './errors.ts'
import { GROUP_HEADER_BYTES } from '../codec/format.ts'
import type { Command } from './commands.ts'
import { FrameBuffer } from './frame-buffer.ts'
import { onAbort } from './on-abort.ts'

/** Commands whose frames lie in one buffer, in order, ready to be judged and written. */
export interface CommandGroup {
  readonly buffer: FrameBuffer
  readonly commands: Command[]
}

export interface QueueLimits {
  readonly queueBytes: number
  readonly batchCommitCount: number
  readonly batchCommitBytes: number
}

/** What a waiting command holds until there is room. */
interface Waiting {
  readonly command: Command
  readonly frames: Uint8Array
}

/** Spare buffers kept for reuse: one being written, one being filled. */
const MAX_SPARE_BUFFERS = 2

export class CommandQueue {
  readonly #limits: QueueLimits
  readonly #groups: CommandGroup[] = []
  readonly #waiting: Waiting[] = []
  readonly #spare: Uint8Array[] = []
  #queuedBytes = 0
  #waitingBytes = 0

  constructor(limits: QueueLimits) {
    this.#limits = limits
  }

  /** Bytes of frames that are admitted and not yet taken. */
  get queuedBytes(): number {
    return this.#queuedBytes
  }

  /** Bytes of frames that wait for room. */
  get waitingBytes(): number {
    return this.#waitingBytes
  }

  get isEmpty(): boolean {
    return this.#groups.every((group) => group.commands.length === 0)
  }

  /** Commands in the first group in waiting. */
  get firstGroupCommands(): number {
    return this.#groups[0]?.commands.length ?? 0
  }

  /** Whether the first group in waiting has reached a limit, so that more could not join it. */
  get isFirstGroupFull(): boolean {
    if (this.#groups.length > 1) return true
    return this.firstGroupCommands >= this.#limits.batchCommitCount
  }

  /** Where the next command's frames are to be laid down, at its `end`. */
  buffer(): FrameBuffer {
    return this.#lastGroup().buffer
  }

  #lastGroup(): CommandGroup {
    return this.#groups.at(-1) ?? this.#openGroup()
  }

  #openGroup(): CommandGroup {
    const group = { buffer: new FrameBuffer(this.#spare.pop()), commands: [] }
    this.#groups.push(group)
    return group
  }

  /**
   * Queues a command whose frames were just laid down in `buffer()` from `start` on. Without room
   * it waits, or fails with QUEUE_FULL if `whenFull` says so. An abort of `signal` withdraws it
   * while it is not yet taken.
   */
  push(
    command: Command,
    start: number,
    whenFull: 'wait' | 'reject' | undefined,
    signal: AbortSignal | undefined,
  ): void {
    const group = this.#lastGroup()
    const size = group.buffer.end - start
    if (!this.#hasRoom(size) && whenFull === 'reject') {
      group.buffer.end = start
      command.fail(queueFull(this.#limits.queueBytes))
      return
    }
    if (signal !== undefined) this.#watchAbort(command, signal)
    if (this.#hasRoom(size)) this.#admit(group, command, start)
    else this.#wait(group.buffer, command, start)
  }

  #hasRoom(size: number): boolean {
    if (this.#waiting.length > 0) return false
    return this.#queuedBytes === 0 || this.#queuedBytes + size <= this.#limits.queueBytes
  }

  #wait(buffer: FrameBuffer, command: Command, start: number): void {
    const frames = buffer.bytes.slice(start, buffer.end)
    buffer.end = start
    this.#waiting.push({ command, frames })
    this.#waitingBytes += frames.length
  }

  /** The frames stay where they are, unless their group is full: then they begin the next one. */
  #admit(group: CommandGroup, command: Command, start: number): void {
    if (this.#isFull(group, group.buffer.end - GROUP_HEADER_BYTES)) {
      const frames = group.buffer.bytes.slice(start, group.buffer.end)
      group.buffer.end = start
      this.#place(this.#openGroup(), command, frames)
      return
    }
    this.#join(group, command, start)
  }

  #isFull(group: CommandGroup, bytes: number): boolean {
    const { batchCommitCount, batchCommitBytes } = this.#limits
    const commands = group.commands.length
    return commands > 0 && (commands >= batchCommitCount || bytes > batchCommitBytes)
  }

  #place(group: CommandGroup, command: Command, frames: Uint8Array): void {
    this.#join(group, command, group.buffer.putFrames(frames))
  }

  #join(group: CommandGroup, command: Command, start: number): void {
    command.start = start
    command.end = group.buffer.end
    group.commands.push(command)
    this.#queuedBytes += command.end - start
  }

  #watchAbort(command: Command, signal: AbortSignal): void {
    command.onSettled = onAbort(signal, () => {
      if (command.isTaken) return
      command.fail(aborted(signal))
      this.#admitWaiting()
    })
  }

  /** The next group for the writer, without the commands that were withdrawn meanwhile. */
  take(): CommandGroup | undefined {
    if (this.isEmpty) return undefined
    const group = this.#groups.shift() as CommandGroup
    for (const command of group.commands) {
      command.isTaken = true
      this.#queuedBytes -= command.end - command.start
    }
    this.#admitWaiting()
    return { buffer: group.buffer, commands: group.commands.filter((c) => !c.isSettled) }
  }

  #admitWaiting(): void {
    let admitted = 0
    for (const { command, frames } of this.#waiting) {
      const isFirst = this.#queuedBytes === 0
      if (!command.isSettled) {
        if (!isFirst && this.#queuedBytes + frames.length > this.#limits.queueBytes) break
        const group = this.#lastGroup()
        const bytes = group.buffer.end - GROUP_HEADER_BYTES + frames.length
        this.#place(this.#isFull(group, bytes) ? this.#openGroup() : group, command, frames)
      }
      this.#waitingBytes -= frames.length
      admitted++
    }
    this.#waiting.splice(0, admitted)
  }

  /** Gives a taken group's buffer back for reuse. */
  recycle(group: CommandGroup): void {
    const { bytes } = group.buffer
    if (this.#spare.length >= MAX_SPARE_BUFFERS) return
    if (bytes.length <= 2 * this.#limits.batchCommitBytes) this.#spare.push(bytes)
  }

  /** Empties the queue; returns what was in it, in order. */
  drain(): Command[] {
    const queued = this.#groups.flatMap((group) => group.commands)
    const all = [...queued, ...this.#waiting.map(({ command }) => command)]
    this.#groups.length = 0
    this.#waiting.length = 0
    this.#queuedBytes = 0
    this.#waitingBytes = 0
    return all.filter((command) => !command.isSettled)
  }
}
