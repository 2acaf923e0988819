/**
 * What must hold after the kill. Each check throws a JobFailure that says what does not, naming the
 * log and the LSN.
 */
import { Packr } from 'msgpackr'
import type { Bifrost, DataRecord } from '../../index.ts'
import { mustHold } from './failure.ts'
import { BATCH_RECORDS, firstLsnOf, type Flight, type Flights } from './flights.ts'
import type { Ledger } from './ledger.ts'
import { visitStoredRecords } from './stored-records.ts'

/** The first unwritten LSN of each log. */
export type Tails = ReadonlyMap<string, number>

/** Told how many records were checked so far. */
export type OnChecked = (records: number) => void

/**
 * Reads every log from its first record to its tail: LSN by LSN, without a gap, each record the row
 * that belongs there. Resolves with the tails.
 */
export async function checkReads(
  bifrost: Bifrost,
  flights: Flights,
  onChecked: OnChecked,
): Promise<Tails> {
  const tails = new Map<string, number>()
  let checked = 0
  for (const origin of flights.origins) {
    let tail = 1
    let createdAt = 0n
    const reader = bifrost.createReader<Flight>(origin, { follow: false, gaps: 'throw' })
    for await (const chunk of reader.chunks()) {
      for (const record of chunk) {
        checkRecord(record, origin, tail, createdAt, flights)
        createdAt = record.createdAt
        tail++
      }
      checked += chunk.length
      onChecked(checked)
    }
    const { lsn } = await bifrost.findTail(origin)
    mustHold(lsn === tail, () => `${origin} ends at ${tail}, but its tail is ${lsn}`)
    tails.set(origin, tail)
  }
  return tails
}

function checkRecord(
  record: DataRecord<Flight>,
  origin: string,
  lsn: number,
  createdAt: bigint,
  flights: Flights,
): void {
  mustHold(record.lsn === lsn, () => `${origin} has ${record.lsn} where ${lsn} should be`)
  const row = flights.at(origin, lsn)
  const { payload } = record
  mustHold(isSame(payload, row), () => `${origin} at ${lsn} reads ${JSON.stringify(payload)}`)
  mustHold(record.createdAt >= createdAt, () => `${origin} at ${lsn}: the time went back`)
}

/** A row is a flat object, and its members come back in their order. */
function isSame(payload: Flight, row: Flight): boolean {
  const found = Object.entries(payload) as [string, unknown][]
  const expected = Object.entries(row) as [string, unknown][]
  return (
    found.length === expected.length &&
    found.every(([name, value], i) => name === expected[i]?.[0] && value === expected[i][1])
  )
}

/** Every acknowledged batch is there, at the LSN that was acknowledged. */
export function checkLedger(ledger: Ledger, tails: Tails): void {
  for (const [origin, batches] of ledger.batches) {
    const tail = tails.get(origin) ?? 1
    for (const [number, first] of batches) {
      const what = `Batch ${number} of ${origin}`
      const expected = firstLsnOf(number)
      mustHold(first === expected, () => `${what} was acknowledged at ${first}, not ${expected}`)
      const end = first + BATCH_RECORDS
      mustHold(end <= tail, () => `LOST: ${what}, at ${first}, was acknowledged; tail is ${tail}`)
    }
  }
}

/** No batch is partial: each log holds whole batches only. */
export function checkWholeBatches(tails: Tails): void {
  for (const [origin, tail] of tails) {
    const rest = (tail - 1) % BATCH_RECORDS
    mustHold(rest === 0, () => `${origin} ends with ${rest} records of a batch of ${BATCH_RECORDS}`)
  }
}

/** Appends go on at the recovered tail of every log. Resolves with the tails afterwards. */
export async function checkAppends(
  bifrost: Bifrost,
  flights: Flights,
  tails: Tails,
): Promise<Tails> {
  const after = new Map<string, number>()
  const appends = [...tails].map(async ([origin, tail]) => {
    const rows = Array.from({ length: BATCH_RECORDS }, (_, i) => flights.at(origin, tail + i))
    const first = await bifrost.appendBatch(origin, rows)
    mustHold(first === tail, () => `${origin} goes on at ${first}, though its tail was ${tail}`)
    after.set(origin, tail + BATCH_RECORDS)
  })
  await Promise.all(appends)
  return after
}

/**
 * The bytes in the segment files: each body is, byte for byte, what msgpackr alone makes here of
 * the source row. The time in it is the only thing that is taken from the body itself.
 */
export async function checkBytes(
  dir: string,
  flights: Flights,
  tails: Tails,
  onChecked: OnChecked,
): Promise<number> {
  const packr = new Packr({ useRecords: false, variableMapSize: true })
  const next = new Map<string, number>()
  let checked = 0
  await visitStoredRecords(dir, (origin, lsn, body) => {
    const expectedLsn = next.get(origin) ?? 1
    mustHold(lsn === expectedLsn, () => `${origin}: ${lsn} is stored behind ${expectedLsn - 1}`)
    const expected = packr.pack([timeIn(body), null, flights.at(origin, lsn)])
    mustHold(expected.equals(body), () => differs(origin, lsn, body, expected))
    next.set(origin, lsn + 1)
    if (++checked % 1024 === 0) onChecked(checked)
  })
  for (const [origin, tail] of tails) {
    const end = next.get(origin) ?? 1
    mustHold(end === tail, () => `${origin}: ${end - 1} records are stored, and ${tail - 1} read`)
  }
  return checked
}

/** The first element of a body: nanoseconds since the epoch, as an int64 behind two marker bytes. */
function timeIn(body: Uint8Array): bigint {
  mustHold(body.length > 10, () => `A body of ${body.length} bytes is no record`)
  return new DataView(body.buffer, body.byteOffset).getBigInt64(2)
}

function differs(origin: string, lsn: number, body: Uint8Array, expected: Uint8Array): string {
  const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')
  return `${origin} at ${lsn} is stored as\n  ${hex(body)}\nand should be\n  ${hex(expected)}`
}
