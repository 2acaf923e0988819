/** Talks to a server byte by byte, as no well-behaved client would. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** A connection, and what came on it so far. */
export class RawConnection {
  readonly socket: Socket
  #received = ''
  #isClosed = false

  private constructor(socket: Socket) {
    this.socket = socket
    socket.setEncoding('latin1').on('data', (text: string) => (this.#received += text))
    socket.on('error', () => undefined)
    socket.on('close', () => (this.#isClosed = true))
  }

  static async open(url: string): Promise<RawConnection> {
    const { hostname, port } = new URL(url)
    const socket = connect({ host: hostname, port: Number(port) })
    await once(socket, 'connect')
    return new RawConnection(socket)
  }

  get received(): string {
    return this.#received
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  send(bytes: string | Uint8Array): void {
    if (typeof bytes === 'string') this.socket.write(bytes, 'latin1')
    else this.socket.write(bytes)
  }

  /** Resolves once this was received; rejects if the connection ends before. */
  async until(wanted: string | RegExp): Promise<void> {
    while (!this.#has(wanted)) {
      if (this.#isClosed) throw new Error(`closed after ${JSON.stringify(this.#received)}`)
      await Promise.race([once(this.socket, 'data'), once(this.socket, 'close')])
    }
  }

  #has(wanted: string | RegExp): boolean {
    return typeof wanted === 'string'
      ? this.#received.includes(wanted)
      : wanted.test(this.#received)
  }

  async closed(): Promise<void> {
    if (!this.#isClosed) await once(this.socket, 'close')
  }
}

/** Sends a request and resolves with the status of the reply; 0 for none. */
export async function rawStatus(url: string, request: string): Promise<number> {
  const connection = await RawConnection.open(url)
  connection.send(request)
  await connection.until(/^HTTP\/1\.1 \d+ .*\r\n/).catch(() => undefined)
  connection.socket.destroy()
  return Number(/^HTTP\/1\.1 (\d+)/.exec(connection.received)?.[1] ?? 0)
}
