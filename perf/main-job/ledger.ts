/**
 * The external ledger: what the child said was acknowledged, kept in another process, so that it
 * outlives the kill. An acknowledgement that was still in the child when it died is not in here; a
 * store may hold more than its ledger, never less.
 */
import type { Metrics } from '../../index.ts'
import { mustHold } from './failure.ts'
import { BATCH_RECORDS } from './flights.ts'

export class Ledger {
  /** Per log, the first LSN that was acknowledged for each batch, by the batch's number. */
  readonly batches: Map<string, Map<number, number>> = new Map<string, Map<number, number>>()
  /** The newest that the child has told. */
  metrics: Metrics | undefined
  #acknowledged = 0

  /** How many batches were acknowledged. */
  get acknowledged(): number {
    return this.#acknowledged
  }

  get records(): number {
    return this.#acknowledged * BATCH_RECORDS
  }

  /** Takes a line that the child has written. */
  take(line: string): void {
    const [word, rest] = split(line)
    if (word === 'metrics') this.metrics = JSON.parse(rest) as Metrics
    else if (word === 'ack') this.#acknowledge(rest)
    else mustHold(false, () => `The load said what nobody understands: ${line}`)
  }

  #acknowledge(rest: string): void {
    const [origin, number, first] = rest.split(' ')
    this.acknowledge(origin ?? '', Number(number), Number(first))
  }

  /** A batch was acknowledged at an LSN. */
  acknowledge(origin: string, number: number, first: number): void {
    const batches = this.batches.get(origin) ?? new Map<number, number>()
    this.batches.set(origin, batches)
    mustHold(!batches.has(number), () => `Batch ${number} of ${origin} was acknowledged twice`)
    batches.set(number, first)
    this.#acknowledged++
  }
}

function split(line: string): [string, string] {
  const at = line.indexOf(' ')
  return at === -1 ? [line, ''] : [line.slice(0, at), line.slice(at + 1)]
}
