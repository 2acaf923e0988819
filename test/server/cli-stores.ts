/** Stores for the command line's tests. */
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { Bifrost } from '../../index.ts'
import { temporaryDirectory } from '../support/temp-dir.ts'

export const RECORDS = 600
export const TRIMMED = 10
/** Small enough that the store has several segments. */
export const SEGMENT = { segmentSizeBytes: 64 * 1024 }

/** The payload of a record of `orders`. */
export function order(id: number): { readonly id: number; readonly note: string } {
  return { id, note: 'x'.repeat(200) }
}

/** A closed store: `orders` over some segments, trimmed a bit, and `mail`, which is sealed. */
export async function closedStore(t: TestContext): Promise<string> {
  const dir = join(await temporaryDirectory(t), 'store')
  const bifrost = await Bifrost.open({ dir, logs: ['orders', 'mail'], ...SEGMENT })
  await bifrost.append('mail', 'only one')
  for (let id = 1; id <= RECORDS; id++) await bifrost.append('orders', order(id))
  await bifrost.trim('orders', TRIMMED)
  await bifrost.seal('mail', 'moved away')
  await bifrost.close()
  return dir
}

/** A store that is open and has records in two groups at least. */
export async function liveStore(t: TestContext): Promise<{ bifrost: Bifrost; dir: string }> {
  const dir = join(await temporaryDirectory(t), 'store')
  const bifrost = await Bifrost.open({ dir, logs: ['orders'], ...SEGMENT })
  t.after(() => bifrost.close())
  for (let id = 1; id <= 100; id++) await bifrost.append('orders', order(id))
  return { bifrost, dir }
}
