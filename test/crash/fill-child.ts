/**
 * Fills a store from a process of its own, under a limit that its parent has set, and says what was
 * acknowledged. Then it waits to be killed, or, told to go on, trims until there is room again,
 * appends some more and closes the store.
 *
 *     ack <log> <LSN> <id> <size>    rejected <count>    full    closed
 *
 * Arguments: directory, 'stop' or 'go on', 'to the last byte' or 'mostly'.
 */
import { writeSync } from 'node:fs'
import { Bifrost } from '../../index.ts'
import { FILLED_STORE, Filler } from './fill.ts'

type Arguments = [dir: string, then: 'stop' | 'go on', howFull: 'to the last byte' | 'mostly']
const [dir, then, howFull] = process.argv.slice(2) as Arguments
const say = (line: string): void => void writeSync(1, `${line}\n`)

class TellingFiller extends Filler {
  override take(log: string, lsn: number, id: number, size: number): void {
    super.take(log, lsn, id, size)
    say(`ack ${log} ${lsn} ${id} ${size}`)
  }
}

const bifrost = await Bifrost.open({ dir, logs: ['a', 'b'], ...FILLED_STORE })
const filler = new TellingFiller()
await filler.fill(bifrost, howFull === 'mostly')
say(`rejected ${filler.rejected}`)
say('full')
if (then === 'stop') setInterval(() => undefined, 60_000)
else {
  await filler.assertHolds(bifrost)
  for (const log of ['a', 'b']) await bifrost.trim(log, Number.MAX_SAFE_INTEGER)
  for (let i = 0; i < 20; i++) await filler.appendOnceThereIsRoom(bifrost, 'a', 1000)
  await filler.assertHolds(bifrost)
  await bifrost.close()
  say('closed')
}
