/** Callers, each of whom calls again as soon as the last call was answered. */

/** How many calls are made between two looks at the clock; a look costs 40 ns. */
const LOOK_EVERY = 16

export interface LoadResult {
  readonly calls: number
  readonly seconds: number
}

/** A caller's next call; resolves when it was answered. */
export type Call = () => Promise<unknown>

/**
 * Runs the callers until `ms` are over and every call was answered. The clock is looked at by the
 * callers, because a timer would never fire beside a store that answers without giving up the thread.
 */
export async function load(call: Call, callers: number, ms: number): Promise<LoadResult> {
  const startedAt = performance.now()
  const end = startedAt + ms
  let calls = 0
  let isOver = false
  const caller = async (): Promise<void> => {
    while (!isOver) {
      await call()
      if (++calls % LOOK_EVERY === 0 && performance.now() >= end) isOver = true
    }
  }
  await Promise.all(Array.from({ length: callers }, caller))
  return { calls, seconds: (performance.now() - startedAt) / 1000 }
}

/** Runs the callers until so many calls were answered. */
export async function loadCount(call: Call, callers: number, calls: number): Promise<LoadResult> {
  const startedAt = performance.now()
  let made = 0
  const caller = async (): Promise<void> => {
    while (made < calls) {
      made++
      await call()
    }
  }
  await Promise.all(Array.from({ length: Math.min(callers, calls) }, caller))
  return { calls: made, seconds: (performance.now() - startedAt) / 1000 }
}
