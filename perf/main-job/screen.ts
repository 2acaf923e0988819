/** Plain text for a terminal: numbered steps, one line that moves while something runs, ticks. */
import type { WriteStream } from 'node:tty'

const INDENT = '             '
const TITLE_WIDTH = 10
/** Where the output is no terminal, a moving line would be noise: one in this many is kept. */
const PLAIN_PROGRESS_EVERY_MS = 2000

export class Screen {
  readonly #out: WriteStream
  readonly #isLive: boolean
  readonly #hasColor: boolean
  #steps = 0
  #hasProgress = false
  #lastProgress = 0

  constructor(out: WriteStream) {
    this.#out = out
    this.#isLive = out.isTTY
    this.#hasColor = out.isTTY && out.hasColors() && process.env['NO_COLOR'] === undefined
  }

  title(text: string): void {
    this.#line(`\n${this.#bold(text)}\n`)
  }

  /** A paragraph, as it stands. */
  text(text = ''): void {
    this.#line(text)
  }

  quiet(text: string): void {
    this.#line(this.#paint('2', text))
  }

  step(title: string, text: string): void {
    this.#steps++
    const name = this.#bold(title.padEnd(TITLE_WIDTH))
    this.#line(`\n${String(this.#steps)}  ${name}${text}`)
  }

  /** Says how far the step is; the next call writes over it. */
  progress(text: string): void {
    if (this.#isLive) {
      const line = `${INDENT}${text}`.slice(0, this.#out.columns - 1)
      this.#out.write(`\r\u001b[2K${this.#paint('2', line)}`)
      this.#hasProgress = true
      return
    }
    if (performance.now() - this.#lastProgress < PLAIN_PROGRESS_EVERY_MS) return
    this.#lastProgress = performance.now()
    this.#line(`${INDENT}${text}`)
  }

  /** Something that came out of the step. */
  note(text: string): void {
    this.#line(`${INDENT}${text}`)
  }

  /** Something that holds. */
  holds(text: string): void {
    this.#line(`${INDENT}${this.#paint('32', '✓')} ${text}`)
  }

  fails(text: string): void {
    this.#line(`\n${this.#paint('31', '✗')} ${text}`)
  }

  #line(text: string): void {
    if (this.#hasProgress) this.#out.write('\r\u001b[2K')
    this.#hasProgress = false
    this.#out.write(`${text}\n`)
  }

  #bold(text: string): string {
    return this.#paint('1', text)
  }

  #paint(style: string, text: string): string {
    return this.#hasColor ? `\u001b[${style}m${text}\u001b[0m` : text
  }
}
