/** Another process that holds a store, from its parent's side. */
import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'

const CHILD = fileURLToPath(new URL('./holder-child.js', import.meta.url))
const FS_EXT_MODE = new URL('./fs-ext-mode.js', import.meta.url).href

export class Holder {
  readonly #process: ChildProcessByStdio<Writable, Readable, null>
  readonly #lines: AsyncIterator<string>

  private constructor(child: ChildProcessByStdio<Writable, Readable, null>) {
    this.#process = child
    this.#lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  }

  /**
   * Starts it; it is killed when the test ends. FS_EXT_MODE in `variables` is that of
   * fs-ext-mode.ts; with HOLDER_SPAWNS it starts a process that outlives it, and says its id.
   */
  static start(t: TestContext, dir: string, variables: NodeJS.ProcessEnv = {}): Holder {
    const args = variables['FS_EXT_MODE'] === undefined ? [] : ['--import', FS_EXT_MODE]
    const child = spawn(process.execPath, [...args, CHILD, dir], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, ...variables },
    })
    t.after(() => child.kill('SIGKILL'))
    return new Holder(child)
  }

  /** The next thing that it says. */
  async says(): Promise<string> {
    const line = await this.#lines.next()
    return line.done === true ? 'nothing more' : line.value
  }

  /** Lets it close the store and end. */
  async end(): Promise<void> {
    this.#process.stdin.end()
    await once(this.#process, 'exit')
  }

  /** Ends it without a chance to let go of anything; resolves when it is gone. */
  async kill(): Promise<void> {
    const gone = once(this.#process, 'exit')
    this.#process.kill('SIGKILL')
    await gone
  }

  /** Stops it where it is: it holds what it has, and does nothing more. */
  stop(): void {
    this.#process.kill('SIGSTOP')
  }
}
