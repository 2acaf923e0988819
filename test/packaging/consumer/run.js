/** What a user's first program does, in plain JavaScript, on the packed package. */
import assert from 'node:assert/strict'
import * as api from 'bifrost-log'
import * as server from 'bifrost-log/server'

const { Bifrost, LogError, Lsn } = api
assert.deepEqual(Object.keys(api).sort(), ['Bifrost', 'LogError', 'Lsn', 'repair', 'verify'])

assert.deepEqual(Object.keys(server).sort(), ['createHandler', 'registerMetrics', 'serve'])

const [provider, dir] = process.argv.slice(2)
const bifrost = await Bifrost.open({ provider, dir, logs: ['orders'] })
const lsn = await bifrost.append('orders', { id: 1 })
const first = await bifrost.appendBatch('orders', [{ id: 2 }, { id: 3 }])
assert.deepEqual([lsn, first], [Lsn.OLDEST, 2])

const read = []
for await (const { payload } of bifrost.createReader('orders', { follow: false })) {
  read.push(payload)
}
assert.deepEqual(read, [{ id: 1 }, { id: 2 }, { id: 3 }])
await assert.rejects(bifrost.append('nobody', 1), (error) => LogError.is(error, 'UNKNOWN_LOG'))

const handler = await server.createHandler(bifrost)
const request = (path, init) => handler.fetch(new Request(`http://localhost${path}`, init))
const headers = { 'content-type': 'text/plain' }
assert.equal((await request('/notes', { method: 'PUT', headers, body: 'one' })).status, 201)
assert.equal(await (await request('/notes')).text(), 'one')
assert.match(await (await request('/')).text(), /<title>bifrost<\/title>/)
await handler.close()

await bifrost.close()
console.log('done')
