/**
 * The real data: 20,000 flights within the United States in early 2001, one row each, from the
 * npm package vega-datasets. One log per origin airport; each log gets its airport's rows in the
 * order of the file, over and over, in batches of four. So what stands at an LSN is known from the
 * file alone: the parent needs nothing from the child to say what every record must be.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'

export interface Flight {
  readonly date: string
  readonly delay: number
  readonly distance: number
  readonly origin: string
  readonly destination: string
}

/** What one small invocation appends: input, state, output and end, in one go. */
export const BATCH_RECORDS = 4

export interface FlightBatch {
  readonly origin: string
  /** Counts the batches of this origin from 0. */
  readonly number: number
  readonly rows: readonly Flight[]
}

export class Flights {
  readonly rows: readonly Flight[]
  readonly byOrigin: ReadonlyMap<string, readonly Flight[]>

  constructor(rows: readonly Flight[]) {
    const byOrigin = new Map<string, Flight[]>()
    for (const row of rows) {
      const same = byOrigin.get(row.origin)
      if (same === undefined) byOrigin.set(row.origin, [row])
      else same.push(row)
    }
    this.rows = rows
    this.byOrigin = byOrigin
  }

  static load(): Flights {
    const main = createRequire(import.meta.url).resolve('vega-datasets')
    const file = join(main, '..', '..', 'data', 'flights-20k.json')
    return new Flights(JSON.parse(readFileSync(file, 'utf8')) as Flight[])
  }

  get origins(): readonly string[] {
    return [...this.byOrigin.keys()]
  }

  /** The row that stands at an LSN of an origin's log. */
  at(origin: string, lsn: number): Flight {
    const rows = this.byOrigin.get(origin)
    const row = rows?.[(lsn - 1) % rows.length]
    if (row === undefined) throw new Error(`There is no flight from ${origin}`)
    return row
  }

  /** All flights in the order of the file, over and over, as batches of one origin each. */
  *batches(): Generator<FlightBatch, never> {
    const gathered = new Map(this.origins.map((origin) => [origin, [] as Flight[]]))
    const numbers = new Map(this.origins.map((origin) => [origin, 0]))
    for (;;) {
      for (const row of this.rows) {
        const { origin } = row
        const rows = gathered.get(origin) as Flight[]
        rows.push(row)
        if (rows.length < BATCH_RECORDS) continue
        const number = numbers.get(origin) as number
        yield { origin, number, rows }
        numbers.set(origin, number + 1)
        gathered.set(origin, [])
      }
    }
  }
}

/** The LSN at which a batch must stand: batches of a log are appended in the order of numbers. */
export function firstLsnOf(batch: number): number {
  return 1 + batch * BATCH_RECORDS
}
