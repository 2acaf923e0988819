/** One side of a comparison, from the outside: a process with one store open. */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { basename, dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { StoreSpec } from '../stores/store.ts'
import type { Answer, TaskArguments, TaskName, TaskResult } from './tasks.ts'

const WORKER = fileURLToPath(new URL('./worker.js', import.meta.url))

interface Asked {
  readonly resolve: (result: unknown) => void
  readonly reject: (error: Error) => void
}

function profiling(path: string | undefined): string[] {
  // In a profile, garbage is collected only when V8 wants to.
  if (path === undefined) return ['--expose-gc']
  return ['--cpu-prof', `--cpu-prof-dir=${dirname(path)}`, `--cpu-prof-name=${basename(path)}`]
}

export class Side {
  readonly name: string
  readonly #process: ChildProcess
  readonly #asked = new Map<number, Asked>()
  #nextId = 0

  /** If there is a path for it, the process leaves its CPU profile there when it ends. */
  constructor(name: string, spec: StoreSpec, profile?: string) {
    this.name = name
    this.#process = fork(WORKER, [JSON.stringify(spec)], {
      execArgv: ['--enable-source-maps', ...profiling(profile)],
      serialization: 'advanced',
    })
    this.#process.on('message', (answer: Answer) => this.#settle(answer))
    this.#process.once('exit', (code, signal) => this.#gone(signal ?? code))
  }

  /** Has the worker do something; resolves with what came of it. */
  ask<N extends TaskName>(
    task: N,
    ...[args]: TaskArguments<N> extends undefined ? [] : [TaskArguments<N>]
  ): Promise<TaskResult<N>> {
    const id = this.#nextId++
    return new Promise((resolve, reject) => {
      this.#asked.set(id, { resolve: resolve as (result: unknown) => void, reject })
      this.#process.send({ id, task, args }, (error) => {
        if (error !== null) reject(error)
      })
    })
  }

  #settle(answer: Answer): void {
    const asked = this.#asked.get(answer.id)
    this.#asked.delete(answer.id)
    if ('error' in answer) asked?.reject(new Error(`${this.name}: ${answer.error}`))
    else asked?.resolve(answer.result)
  }

  #gone(how: string | number | null): void {
    for (const { reject } of this.#asked.values()) {
      reject(new Error(`The process of ${this.name} is gone: ${String(how)}`))
    }
    this.#asked.clear()
  }

  /** Closes the store and ends the process. */
  async stop(): Promise<void> {
    if (this.#isGone()) return
    await this.ask('close')
    const gone = once(this.#process, 'exit')
    this.#process.disconnect()
    await gone
  }

  /** Ends the process as it stands, in the middle of whatever it does. */
  async kill(): Promise<void> {
    if (this.#isGone()) return
    const gone = once(this.#process, 'exit')
    this.#process.kill('SIGKILL')
    await gone
  }

  /** Ends the process without closing its store, but together with what it has started itself. */
  async abandon(): Promise<void> {
    if (this.#isGone()) return
    const gone = once(this.#process, 'exit')
    this.#process.disconnect()
    await gone
  }

  #isGone(): boolean {
    return this.#process.exitCode !== null || this.#process.signalCode !== null
  }
}
