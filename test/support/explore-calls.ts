/** Turns planned calls into calls of a store and the commands by which the model knows them. */
import type { LogId } from '../../codec/errors.ts'
import type { Bifrost } from '../../loglets/bifrost.ts'
import type { Expectation, PlannedCall, PlannedRecord } from './explore-plan.ts'
import { tailOf, type Command, type Entry, type Payload, type World } from './explore-world.ts'

/** A command, and how to call for it. */
export interface ReadyCall {
  readonly command: Command
  readonly start: (store: Bifrost) => Promise<unknown>
  /** The logs and how many records each call appends there, for whoever checks their places. */
  readonly appendsTo: readonly LogId[]
}

const ID_BYTES = 8
const SECTOR = 512
/** What a group takes besides the text of its one record: headers, envelope, msgpack's length. */
const AROUND_TEXT = 48 + 24 + 11 + 3
/** From this length on msgpack's length takes the three bytes that are counted in. */
const LONG_TEXT = 256

/** What payloads may depend on. */
export interface DiskView {
  /** Bytes of the store's newest segment. */
  readonly sample: (bytes: number) => Uint8Array
  /** Where the last group ended. */
  readonly end: () => number
}

export class CallMaker {
  readonly #logIds: readonly LogId[]
  readonly #disk: DiskView
  #records: number

  /** `records`: how many were made before, elsewhere. */
  constructor(logIds: readonly LogId[], disk: DiskView, records = 0) {
    this.#logIds = logIds
    this.#disk = disk
    this.#records = records
  }

  /** How many records were made so far. */
  get records(): number {
    return this.#records
  }

  logId(log: number): LogId {
    return this.#logIds[log % this.#logIds.length] as LogId
  }

  make(planned: PlannedCall, world: World): ReadyCall {
    switch (planned.call) {
      case 'append':
        return this.#append(planned, world)
      case 'batch':
        return this.#batch(planned.log, planned.records, world)
      case 'many':
        return this.#many(planned, world)
      case 'trim':
        return this.#trim(planned.log, planned.keep, world)
      case 'seal':
        return this.#seal(planned.log, planned.reason, world)
      case 'create': {
        const logId = this.logId(planned.log)
        const start = (store: Bifrost): Promise<void> => store.createLog(logId)
        return { command: { kind: 'create', logId }, start, appendsTo: [] }
      }
      case 'delete': {
        const logId = this.logId(planned.log)
        const start = (store: Bifrost): Promise<void> => store.deleteLog(logId)
        return { command: { kind: 'delete', logId }, start, appendsTo: [] }
      }
    }
  }

  #append(planned: PlannedCall & { call: 'append' }, world: World): ReadyCall {
    const { log, record, expect, isWithdrawn, whenFull } = planned
    const logId = this.logId(log)
    const payload = this.payload(record)
    const expectedTail = expected(world, logId, expect)
    const { signal, withdraw } = withdrawal(isWithdrawn)
    return {
      command: {
        kind: 'append',
        logId,
        target: targetIn(world, logId),
        payloads: [payload],
        expectedTail,
      },
      start: (store) => {
        const appended = store.append(logId, payload, { expectedTail, whenFull, signal })
        withdraw()
        return appended
      },
      appendsTo: [logId],
    }
  }

  #batch(log: number, records: readonly PlannedRecord[], world: World): ReadyCall {
    const logId = this.logId(log)
    const payloads = records.map((record) => this.payload(record))
    const target = targetIn(world, logId)
    return {
      command: { kind: 'append', logId, target, payloads, expectedTail: undefined },
      start: (store) => store.appendBatch(logId, payloads),
      appendsTo: payloads.map(() => logId),
    }
  }

  #many({ entries }: PlannedCall & { call: 'many' }, world: World): ReadyCall {
    const planned: Entry[] = entries.map(({ log, record, expect }) => {
      const logId = this.logId(log)
      const expectedTail = expected(world, logId, expect)
      return { logId, target: targetIn(world, logId), payload: this.payload(record), expectedTail }
    })
    return {
      command: { kind: 'many', entries: planned },
      start: (store) =>
        store.appendMany(
          planned.map(({ logId, payload, expectedTail }) => ({ logId, payload, expectedTail })),
        ),
      appendsTo: planned.map(({ logId }) => logId),
    }
  }

  #trim(log: number, keep: number, world: World): ReadyCall {
    const logId = this.logId(log)
    const known = world.logs.get(logId)
    const upTo = Math.max(1, (known === undefined ? 1 : tailOf(known)) - 1 - keep)
    return {
      command: { kind: 'trim', logId, target: targetIn(world, logId), upTo },
      start: (store) => store.trim(logId, upTo),
      appendsTo: [],
    }
  }

  #seal(log: number, reason: string | undefined, world: World): ReadyCall {
    const logId = this.logId(log)
    return {
      command: { kind: 'seal', logId, target: targetIn(world, logId), reason },
      start: async (store) => {
        const sealed = await store.seal(logId, reason)
        return { tail: sealed.lsn, reason: sealed.reason }
      },
      appendsTo: [],
    }
  }

  /** The length of at least so many bytes with which the group ends where a sector does. */
  #alignedLength(bytes: number): number {
    const from = this.#disk.end()
    const least = from + AROUND_TEXT + Math.max(bytes, LONG_TEXT)
    return Math.ceil(least / SECTOR) * SECTOR - from - AROUND_TEXT
  }

  /** A payload that no other is equal to. */
  payload({ bytes, of }: PlannedRecord): Payload {
    const id = ++this.#records
    if (of === 'text') return textOf(id, bytes)
    if (of === 'aligned') return textOf(id, this.#alignedLength(bytes))
    const payload = of === 'copy' ? this.#disk.sample(bytes) : new Uint8Array(bytes).fill(id)
    const whole = payload.length >= ID_BYTES ? payload : new Uint8Array(ID_BYTES)
    new DataView(whole.buffer, whole.byteOffset).setUint32(0, id)
    return whole
  }
}

/** A text that no other begins with. */
function textOf(id: number, bytes: number): string {
  const word = `r${id}.`
  return word.repeat(Math.ceil(bytes / word.length)).slice(0, Math.max(word.length, bytes))
}

function targetIn(world: World, logId: LogId): number | undefined {
  return world.logs.get(logId)?.incarnation
}

function expected(world: World, logId: LogId, expect: Expectation): number | undefined {
  if (expect === 'none') return undefined
  const log = world.logs.get(logId)
  const tail = log === undefined ? 1 : tailOf(log)
  return expect === 'right' ? tail : tail + 1
}

function withdrawal(isWithdrawn: boolean): {
  readonly signal: AbortSignal | undefined
  readonly withdraw: () => void
} {
  const controller = isWithdrawn ? new AbortController() : undefined
  return { signal: controller?.signal, withdraw: () => controller?.abort() }
}
