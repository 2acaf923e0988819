/**
 * The process that is killed: appends batches from many callers without an end, and tells its
 * parent of every acknowledgement. Run by load.ts, with the parent's end of a pipe at descriptor 3.
 *
 *     ready                              the store is open and the logs exist
 *     ack <origin> <batch> <first LSN>   appendBatch resolved
 *     metrics <JSON>                     what the store has counted so far
 */
import { writeSync } from 'node:fs'
import { Bifrost } from '../../index.ts'
import { Flights } from './flights.ts'

const LEDGER = 3
const METRICS_EVERY_MS = 200

const [dir, callers] = process.argv.slice(2) as [string, string]
const flights = Flights.load()
const batches = flights.batches()
const bifrost = await Bifrost.open({ dir, logs: flights.origins })

/** What was acknowledged in this turn of the event loop; told at its end, in one write. */
let acknowledged = ''

function tell(line: string): void {
  if (acknowledged === '') {
    setImmediate(() => {
      const lines = acknowledged
      acknowledged = ''
      writeSync(LEDGER, lines)
    })
  }
  acknowledged += `${line}\n`
}

async function call(): Promise<never> {
  for (;;) {
    const { value } = batches.next()
    const { origin, number, rows } = value
    const first = await bifrost.appendBatch(origin, rows)
    tell(`ack ${origin} ${number} ${first}`)
  }
}

tell('ready')
setInterval(() => {
  tell(`metrics ${JSON.stringify(bifrost.metrics())}`)
}, METRICS_EVERY_MS)
await Promise.all(Array.from({ length: Number(callers) }, call))
