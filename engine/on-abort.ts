/**
 * Many listeners on one AbortSignal, through a single event listener of ours, so that a thousand
 * readers or appends can share a signal without a MaxListenersExceededWarning. Nothing stays on
 * the signal once the last of them is gone.
 */

class SharedListener {
  readonly #signal: AbortSignal
  readonly #entries = new Set<() => void>()

  constructor(signal: AbortSignal) {
    this.#signal = signal
    signal.addEventListener('abort', this.#abort)
  }

  readonly #abort = (): void => {
    const entries = [...this.#entries]
    this.#entries.clear()
    this.#leave()
    for (const entry of entries) entry()
  }

  add(listener: () => void): () => void {
    // A wrapper, so that adding one function twice makes two entries.
    const entry = (): void => {
      listener()
    }
    this.#entries.add(entry)
    return () => {
      if (this.#entries.delete(entry) && this.#entries.size === 0) this.#leave()
    }
  }

  #leave(): void {
    this.#signal.removeEventListener('abort', this.#abort)
    shared.delete(this.#signal)
  }
}

const shared = new WeakMap<AbortSignal, SharedListener>()

/** Calls `listener` once if `signal` aborts. Returns how to stop waiting for that. */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  let listeners = shared.get(signal)
  if (listeners === undefined) {
    listeners = new SharedListener(signal)
    shared.set(signal, listeners)
  }
  return listeners.add(listener)
}
