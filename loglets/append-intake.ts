/**
 * Where appends come in: straight on to a provider that is ready, else encoded at once and held, in
 * call order and bounded in bytes, until the provider has started.
 */
import { aborted, type LogError } from '../codec/errors.ts'
import { RecordEncoder } from '../codec/record.ts'
import { onAbort } from '../engine/on-abort.ts'
import type { ResolvedStoreOptions } from '../engine/options.ts'
import type { AppendRequest } from './append-requests.ts'
import { queueFull } from './errors.ts'
import type { LogletProvider } from './loglet-provider.ts'
import type { ManagedProvider, ProviderTask } from './watchdog.ts'

export class AppendIntake {
  readonly #provider: ManagedProvider
  readonly #encoder: RecordEncoder
  readonly #queueBytes: number
  #heldBytes = 0

  constructor(provider: ManagedProvider, options: ResolvedStoreOptions) {
    this.#provider = provider
    this.#encoder = new RecordEncoder(options.maxRecordBytes)
    this.#queueBytes = options.queueBytes
  }

  /** Encoded bytes of appends that wait for the provider. */
  get heldBytes(): number {
    return this.#heldBytes
  }

  /** What it throws is the append's error: call it where that becomes a rejection. */
  submit(request: AppendRequest): void {
    const provider = this.#provider.ready
    if (provider === undefined) this.#hold(request)
    else request.submit(provider)
  }

  #hold(request: AppendRequest): void {
    const { whenFull, signal } = request.terms ?? {}
    if (signal?.aborted === true) throw aborted(signal)
    const bytes = request.capture(this.#encoder)
    if (whenFull === 'reject' && this.#heldBytes > 0) this.#requireRoom(bytes)
    this.#heldBytes += bytes
    const held = new HeldAppend(request, () => (this.#heldBytes -= bytes))
    if (signal !== undefined) {
      held.stopWaiting = onAbort(signal, () => {
        this.#provider.withdraw(held)
        held.fail(aborted(signal))
      })
    }
    this.#provider.use(held)
  }

  #requireRoom(bytes: number): void {
    if (this.#heldBytes + bytes <= this.#queueBytes) return
    throw queueFull(this.#queueBytes)
  }
}

/** An append that waits for its provider. */
class HeldAppend implements ProviderTask {
  readonly #request: AppendRequest
  readonly #onDone: () => void
  stopWaiting: (() => void) | undefined

  constructor(request: AppendRequest, onDone: () => void) {
    this.#request = request
    this.#onDone = onDone
  }

  run(provider: LogletProvider): void {
    this.#done()
    try {
      this.#request.submit(provider)
    } catch (error) {
      this.#request.reject(error)
    }
  }

  fail(error: LogError): void {
    this.#done()
    this.#request.reject(error)
  }

  #done(): void {
    this.stopWaiting?.()
    this.#onDone()
  }
}
