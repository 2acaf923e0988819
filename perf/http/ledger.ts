/**
 * What was acknowledged, against what is there. Every request has an id of its own, which its
 * records carry; the ledger knows at which place each acknowledged request's records have to be.
 */

/** A request appends one record, or a batch of four; its body is 100 bytes of text either way. */
export type RequestKind = 'single' | 'batch'

const BODY_BYTES = 100
const BATCH_RECORDS = 4
const PART_BYTES = BODY_BYTES / BATCH_RECORDS
const SINGLE = /^s(\d+)$/
const PART = /^b(\d+)\.(\d)$/

/** 's000…042', or four times 'b000…042.0' with the number of the part at its end. */
export function bodyOf(kind: RequestKind, id: number): string {
  if (kind === 'single') return `s${String(id).padStart(BODY_BYTES - 1, '0')}`
  const digits = String(id).padStart(PART_BYTES - 3, '0')
  return Array.from({ length: BATCH_RECORDS }, (_, part) => `b${digits}.${part}`).join('')
}

interface Entry {
  readonly id: number
  /** Undefined for a record that stands alone. */
  readonly part: number | undefined
}

/** Something is lost, doubled, torn or altered. */
export class Loss extends Error {}

export class Ledger {
  /** The id that was acknowledged for each record number, from 1. */
  readonly #ids: (number | undefined)[] = []
  #requests = 0

  get requests(): number {
    return this.#requests
  }

  /** A request was acknowledged with its first record's number. */
  acknowledged(kind: RequestKind, id: number, first: number): void {
    this.#requests++
    const records = kind === 'single' ? 1 : BATCH_RECORDS
    for (let number = first; number < first + records; number++) {
      const other = this.#ids[number]
      if (other !== undefined) throw new Loss(`${at(number)} was given to ${other} and ${id}`)
      this.#ids[number] = id
    }
  }

  /** Looks at everything that is there, in order. Throws a Loss; else resolves with the count. */
  async check(records: AsyncIterable<Found>): Promise<number> {
    const seen = new Set<number>()
    let last: Entry | undefined
    let count = 0
    for await (const { number, body } of records) {
      if (number !== ++count) throw new Loss(`${at(count)} is missing; ${number} comes next`)
      const entry = entryOf(number, body)
      requireFollows(number, last, entry)
      requireOnce(number, seen, entry)
      const id = this.#ids[number]
      if (id !== undefined && id !== entry.id) {
        throw new Loss(`${at(number)} is of request ${entry.id}; acknowledged was ${id}`)
      }
      last = entry
    }
    requireFollows(count + 1, last, undefined)
    if (this.#ids.length > count + 1) {
      throw new Loss(`Only ${count} records are there of ${this.#ids.length - 1}`)
    }
    return count
  }
}

/** A record as it was read. */
export interface Found {
  readonly number: number
  readonly body: string
}

function at(number: number): string {
  return `Record ${number}`
}

function entryOf(number: number, body: string): Entry {
  const single = SINGLE.exec(body)
  if (single !== null && body.length === BODY_BYTES) {
    return { id: Number(single[1]), part: undefined }
  }
  const part = PART.exec(body)
  if (part !== null && body.length === PART_BYTES) {
    return { id: Number(part[1]), part: Number(part[2]) }
  }
  throw new Loss(`${at(number)} is altered: ${JSON.stringify(body)}`)
}

/** A batch's parts stand together and in order, and the last one is there. */
function requireFollows(number: number, last: Entry | undefined, entry: Entry | undefined): void {
  const isOpen = last?.part !== undefined && last.part < BATCH_RECORDS - 1
  const wanted = isOpen ? { id: last.id, part: last.part + 1 } : undefined
  if (wanted !== undefined) {
    if (entry?.id === wanted.id && entry.part === wanted.part) return
    throw new Loss(`${at(number)} should be part ${wanted.part} of batch ${wanted.id}`)
  }
  if ((entry?.part ?? 0) > 0) throw new Loss(`${at(number)} is a part whose batch doesn't begin`)
}

function requireOnce(number: number, seen: Set<number>, { id, part }: Entry): void {
  if ((part ?? 0) > 0) return
  if (seen.has(id)) throw new Loss(`${at(number)} is there twice: request ${id}`)
  seen.add(id)
}
