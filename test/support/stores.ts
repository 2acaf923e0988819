/** Stores as processes leave them, to be damaged: killed, closed, with segments, or rolling. */
import type { TestContext } from 'node:test'
import { SMALL } from './recovery-checks.ts'
import { copyOf, numbered, TestStore } from './test-store.ts'

/** A record of this size takes a segment to where the next group rolls. */
export const FILLING = new Uint8Array(66 * 1024)

/** What a process leaves that was killed after so many appends, each in a group of its own. */
export async function killedStore(t: TestContext, appends = 10): Promise<string> {
  const store = await TestStore.open(t, { ...SMALL, logs: ['log'] })
  await store.whenQuiet()
  await store.appendEach('log', numbered(appends))
  return store.killed(t)
}

/** What a process leaves that closed its store after so many appends. */
export async function closedStore(t: TestContext, appends = 10): Promise<string> {
  const store = await TestStore.open(t, { ...SMALL, logs: ['log'] })
  await store.appendEach('log', numbered(appends))
  await store.close()
  return copyOf(t, store.dir)
}

/**
 * An open store with records of `log` in each of so many segments, ten in each: in segment 2 those
 * from 11 to 20. Each segment but the last ends with a record of `fill`.
 */
export async function segmentedStore(t: TestContext, segments: number): Promise<TestStore> {
  const store = await TestStore.open(t, { ...SMALL, logs: ['log', 'fill'] })
  for (let segment = 1; segment <= segments; segment++) {
    await store.appendEach('log', numbered(10, 10 * (segment - 1) + 1))
    if (segment < segments) await store.append('fill', FILLING)
  }
  await store.whenQuiet()
  return store
}

/**
 * What a process leaves that was killed just after the first group of segment 2, before any
 * metadata covered it: the records 1 to 3 in segment 1, and the batch 4 to 6 in segment 2.
 */
export async function rollingStore(t: TestContext): Promise<string> {
  const store = await TestStore.open(t, { ...SMALL, logs: ['log', 'fill'] })
  await store.appendEach('log', numbered(3))
  await store.append('fill', FILLING)
  await store.whenQuiet()
  const hold = store.hold(({ path }) => path.endsWith('metadata.new'))
  await store.appendBatch('log', numbered(3, 4))
  const dir = await copyOf(t, store.dir)
  hold.release()
  return dir
}

export function segmentAt(dir: string, segment: number): string {
  return `${dir}/${String(segment).padStart(10, '0')}.segment`
}
