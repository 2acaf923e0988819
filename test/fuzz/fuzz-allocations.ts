/** Watches how large the arrays are that are made, whoever makes them. */

export interface AllocationWatch {
  /** Bytes of the largest array that was asked for by its length. */
  readonly largest: number
  stop(): void
}

/** From now on until `stop`. */
export function watchAllocations(): AllocationWatch {
  const original = globalThis.Uint8Array
  let largest = 0
  globalThis.Uint8Array = new Proxy(original, {
    construct: (target, args: unknown[]) => {
      const [length] = args
      if (typeof length === 'number') largest = Math.max(largest, length)
      return Reflect.construct(target, args) as Uint8Array
    },
  })
  return {
    get largest() {
      return largest
    },
    stop: () => {
      globalThis.Uint8Array = original
    },
  }
}
