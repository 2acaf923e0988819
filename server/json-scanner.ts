/**
 * Checks JSON and cuts an array into its elements, byte for byte as they were sent. It builds no
 * values: a body of brackets would otherwise take thirty times its size in memory, numbers would be
 * rounded and the order of members lost. It is a parser of RFC 8259 with a limit on the depth.
 */

/** Arrays and objects may be nested this deep. */
export const MAX_JSON_DEPTH = 512

const TAB = 0x09
const LINE_FEED = 0x0a
const RETURN = 0x0d
const SPACE = 0x20
const QUOTE = 0x22
const PLUS = 0x2b
const COMMA = 0x2c
const MINUS = 0x2d
const DOT = 0x2e
const ZERO = 0x30
const NINE = 0x39
const COLON = 0x3a
const OPEN_ARRAY = 0x5b
const BACKSLASH = 0x5c
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const LOWER_U = 0x75

const LITERALS: ReadonlyMap<number, Uint8Array> = new Map(
  ['true', 'false', 'null'].map((word) => [word.charCodeAt(0), Buffer.from(word)]),
)
/** What may follow a backslash, `u` aside. */
const ESCAPES: ReadonlySet<number> = new Set(Buffer.from('"\\/bfnrt'))

/** The text is not JSON; `at` is the first byte that can't be. */
export class JsonSyntaxError extends Error {
  readonly at: number

  constructor(at: number, message: string) {
    super(message)
    this.name = 'JsonSyntaxError'
    this.at = at
  }
}

/**
 * The messages of a body: the elements of an array, or the one value that it is. Views of the body,
 * without the white space around them. Throws JsonSyntaxError, and RangeError over `maxMessages`.
 */
export function jsonMessages(body: Uint8Array, maxMessages: number): Uint8Array[] {
  return new JsonScanner(body).messages(maxMessages)
}

class JsonScanner {
  readonly #bytes: Uint8Array
  #at = 0
  /** For each open container, outermost first: whether it is an object. */
  readonly #open: boolean[] = []

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  messages(maxMessages: number): Uint8Array[] {
    this.#skipSpace()
    const messages = this.#peek() === OPEN_ARRAY ? this.#elements(maxMessages) : [this.#message()]
    this.#skipSpace()
    if (this.#at < this.#bytes.length) throw this.#unexpected()
    return messages
  }

  #elements(maxMessages: number): Uint8Array[] {
    const elements: Uint8Array[] = []
    this.#at++
    this.#skipSpace()
    if (this.#take(CLOSE_ARRAY)) return elements
    for (;;) {
      if (elements.length === maxMessages) {
        throw new RangeError(`An append has at most ${maxMessages} messages`)
      }
      elements.push(this.#message())
      this.#skipSpace()
      if (this.#take(CLOSE_ARRAY)) return elements
      this.#require(COMMA)
      this.#skipSpace()
    }
  }

  #message(): Uint8Array {
    const start = this.#at
    this.#value()
    return this.#bytes.subarray(start, this.#at)
  }

  /** One value with everything in it. Loops rather than calling itself, whatever the depth. */
  #value(): void {
    do {
      if (this.#enter()) continue
      this.#leave()
    } while (this.#open.length > 0)
  }

  /** Reads a scalar, or goes into a container that is not empty: then there is more to enter. */
  #enter(): boolean {
    const isObject = this.#peek() === OPEN_OBJECT
    if (!isObject && this.#peek() !== OPEN_ARRAY) {
      this.#scalar()
      return false
    }
    this.#at++
    this.#skipSpace()
    if (this.#take(isObject ? CLOSE_OBJECT : CLOSE_ARRAY)) return false
    if (this.#open.length === MAX_JSON_DEPTH) {
      throw new JsonSyntaxError(this.#at, `JSON is nested at most ${MAX_JSON_DEPTH} deep`)
    }
    this.#open.push(isObject)
    if (isObject) this.#name()
    return true
  }

  /** After a value: goes out of the containers that end here, or up to the next value. */
  #leave(): void {
    while (this.#open.length > 0) {
      const isObject = this.#open.at(-1) === true
      this.#skipSpace()
      if (!this.#take(isObject ? CLOSE_OBJECT : CLOSE_ARRAY)) {
        this.#require(COMMA)
        this.#skipSpace()
        if (isObject) this.#name()
        return
      }
      this.#open.pop()
    }
  }

  #name(): void {
    this.#require(QUOTE)
    this.#restOfString()
    this.#skipSpace()
    this.#require(COLON)
    this.#skipSpace()
  }

  #scalar(): void {
    const first = this.#peek()
    const literal = LITERALS.get(first)
    if (literal !== undefined) this.#literal(literal)
    else if (this.#take(QUOTE)) this.#restOfString()
    else this.#number()
  }

  #literal(word: Uint8Array): void {
    for (const byte of word) this.#require(byte)
  }

  #restOfString(): void {
    const bytes = this.#bytes
    let at = this.#at
    for (;;) {
      const byte = at < bytes.length ? (bytes[at] as number) : 0
      if (byte === QUOTE) break
      if (byte === BACKSLASH) at = this.#escape(at)
      else if (byte < SPACE) throw this.#unexpected(at)
      else at++
    }
    this.#at = at + 1
  }

  /** Where the string goes on behind an escape. */
  #escape(at: number): number {
    const escaped = this.#bytes[at + 1] ?? 0
    if (ESCAPES.has(escaped)) return at + 2
    if (escaped !== LOWER_U) throw this.#unexpected(at + 1)
    for (let i = at + 2; i < at + 6; i++) {
      if (!isHexDigit(this.#bytes[i] ?? 0)) throw this.#unexpected(i)
    }
    return at + 6
  }

  #number(): void {
    this.#take(MINUS)
    if (!this.#take(ZERO)) this.#digits()
    if (this.#take(DOT)) this.#digits()
    if ((this.#peek() | SPACE) === 0x65) {
      this.#at++
      if (!this.#take(PLUS)) this.#take(MINUS)
      this.#digits()
    }
  }

  /** One digit or more. */
  #digits(): void {
    if (!isDigit(this.#peek())) throw this.#unexpected()
    while (isDigit(this.#peek())) this.#at++
  }

  #skipSpace(): void {
    for (;;) {
      const byte = this.#peek()
      if (byte !== SPACE && byte !== LINE_FEED && byte !== RETURN && byte !== TAB) return
      this.#at++
    }
  }

  /** The next byte; 0, which nothing in JSON is, at the end. */
  #peek(): number {
    return this.#bytes[this.#at] ?? 0
  }

  #take(byte: number): boolean {
    if (this.#peek() !== byte) return false
    this.#at++
    return true
  }

  #require(byte: number): void {
    if (!this.#take(byte)) throw this.#unexpected()
  }

  #unexpected(at = this.#at): JsonSyntaxError {
    const what = at < this.#bytes.length ? 'an unexpected byte' : 'the end of the text'
    return new JsonSyntaxError(at, `The body is not JSON: ${what} at position ${at}`)
  }
}

function isDigit(byte: number): boolean {
  return byte >= ZERO && byte <= NINE
}

function isHexDigit(byte: number): boolean {
  const letter = byte | SPACE
  return isDigit(byte) || (letter >= 0x61 && letter <= 0x66)
}
