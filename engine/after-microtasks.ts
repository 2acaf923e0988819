/** The end of what is due now: everybody who reacts to one event has done so. */

/** Calls back once all microtasks that are due, and those that they lead to, are done. */
export function afterMicrotasks(callback: () => void): void {
  queueMicrotask(() => {
    process.nextTick(callback)
  })
}
