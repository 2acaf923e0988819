/** A deleted stream stays deleted, whatever was on its way to it. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Bifrost } from '../../index.ts'
import { createHandler, type BifrostHandler } from '../../server/index.ts'

type Ask = (
  method: string,
  path: string,
  headers?: Record<string, string>,
  body?: string,
) => Promise<number>

function asker(handler: BifrostHandler): Ask {
  return async (method, path, headers = {}, body) => {
    const init = { method, headers, ...(body === undefined ? {} : { body }) }
    return (await handler.fetch(new Request(`http://localhost${path}`, init))).status
  }
}

async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await Promise.resolve()
}

const TEXT = { 'content-type': 'text/plain' }
const CLOSE = { ...TEXT, 'stream-closed': 'true' }

describe('a source of forks that is deleted', () => {
  test('stays out of reach when a close that came first gets its turn later', async (t) => {
    const bifrost = await Bifrost.open({ provider: 'memory' })
    t.after(() => bifrost.close())
    // The close has to read the stream's end, so the delete may overtake it at any of its steps.
    for (let ahead = 0; ahead < 80; ahead += 2) {
      const path = `/s${ahead}`
      const before = await createHandler(bifrost)
      await asker(before)('PUT', path, TEXT, 'a')
      await asker(before)('PUT', `${path}/fork`, { 'stream-forked-from': path })
      await before.close()

      const handler = await createHandler(bifrost)
      const ask = asker(handler)
      const closing = ask('POST', path, CLOSE, 'b')
      await turns(ahead)
      const statuses = [await ask('DELETE', path), await closing]
      assert.equal(statuses[0], 204)
      await handler.close()

      const after = await createHandler(bifrost)
      assert.equal(await asker(after)('GET', path), 410, `${ahead} turns: ${statuses.join()}`)
      await after.close()
    }
  })
})
