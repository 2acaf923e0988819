/**
 * The state of a running store, and the tentative copy of it on which a group is judged.
 *
 * Invariants: `facts` is what is durable, and changes only after a sync (`adopt`). A draft is what
 * the group in formation, or in flight, will make of it; there is at most one, because one group
 * is in flight. Loglet ids are taken from a counter outside the draft, so that a group that fails
 * burns its ids rather than letting them be used twice.
 */
import assert from 'node:assert/strict'
import type { LogError, LogId } from '../codec/errors.ts'
import {
  emptyLoglet,
  logBytesBound,
  logletBytesBound,
  sealBytesBound,
  snapshotBytesBound,
  type Link,
  type LogFacts,
  type LogletFacts,
  type Seal,
  type StoreFacts,
} from '../codec/log-state.ts'
import { lsnOfOffset, MAX_POSITION, OLDEST_POSITION, type Offset } from '../codec/offset.ts'
import { MAX_LOGLET_ID } from '../codec/format.ts'
import { unknownLog } from './errors.ts'

/** A running loglet: its durable facts, its draft, and who watches it. */
export class LogletCell {
  readonly facts: LogletFacts
  readonly logId: LogId
  /** The greatest offset whose LSN is still a legal one. */
  readonly maxOffset: Offset
  /** The draft: what the facts will be if the group in formation becomes durable. */
  tail: Offset
  trimPoint: Offset
  seal: Seal | undefined
  /** Stamped at the call of an append, so it may run ahead of the facts. */
  createdAtMs: number
  /** Why nothing more will come: deleted, closed or failed. */
  ended: LogError | undefined
  /** Whether the draft changed it; the state's own mark. */
  isTouched = false
  /** Called when somebody begins to watch. */
  onWatched: (() => void) | undefined
  readonly #watchers = new Set<() => void>()

  constructor(facts: LogletFacts, logId: LogId, link: Link) {
    this.facts = facts
    this.logId = logId
    this.maxOffset = MAX_POSITION - link.baseLsn + OLDEST_POSITION
    this.tail = facts.tail
    this.trimPoint = facts.trimPoint
    this.seal = facts.seal
    this.createdAtMs = facts.createdAtMs
  }

  /** Makes the draft the facts. */
  adopt(): void {
    const { facts } = this
    this.isTouched = false
    assert.ok(this.tail >= facts.tail && this.trimPoint >= facts.trimPoint, 'only forward')
    facts.tail = this.tail
    facts.trimPoint = this.trimPoint
    facts.seal = this.seal
    facts.createdAtMs = Math.max(facts.createdAtMs, this.createdAtMs)
  }

  /** Forgets the draft. */
  reset(): void {
    this.isTouched = false
    this.tail = this.facts.tail
    this.trimPoint = this.facts.trimPoint
    this.seal = this.facts.seal
  }

  /** Whether somebody waits for a change. */
  get isWatched(): boolean {
    return this.#watchers.size > 0
  }

  watch(listener: () => void): () => void {
    // A wrapper, so that watching twice with one function is two registrations.
    const entry = (): void => listener()
    this.#watchers.add(entry)
    this.onWatched?.()
    return () => this.#watchers.delete(entry)
  }

  notify(): void {
    for (const watcher of [...this.#watchers]) watcher()
  }

  /**
   * Nothing more will come; parked readers learn it. The first reason stays, but for a failure:
   * what is durable is still read then, which the close ends.
   */
  end(error: LogError): void {
    if (this.ended === undefined || this.ended.code === 'STORE_FAILED') this.ended = error
    this.notify()
  }
}

export class StoreState {
  readonly facts: StoreFacts
  readonly #cells = new Map<number, LogletCell>()
  /** Cells that the draft changed, in the order of the first change. */
  #touched: LogletCell[] = []
  /** The logs whose registration the draft changes, as it leaves them; null for a deleted one. */
  readonly #logDrafts = new Map<LogId, LogFacts | null>()
  /** What the draft does to the registry, in order: a log to add, or the id of one to delete. */
  #registryChanges: (LogFacts | LogId)[] = []
  readonly #newCells = new Map<number, LogletCell>()
  /** At most what a snapshot of the facts takes. */
  #snapshotBytes: number
  #firstSegment: number
  #nextLogletId: number
  /** As it was before the group in formation: what a snapshot before that group must say. */
  #settledLogletId: number

  /** `nextLogletId` is the greatest that any witness names. */
  constructor(facts: StoreFacts, nextLogletId: number) {
    this.facts = facts
    this.#firstSegment = facts.firstSegment
    this.#nextLogletId = Math.max(facts.nextLogletId, nextLogletId)
    this.#settledLogletId = this.#nextLogletId
    this.#snapshotBytes = snapshotBytesBound(facts)
    for (const log of facts.logs.values()) this.#addCells(log)
  }

  #addCells(log: LogFacts): void {
    for (const link of log.links) {
      const loglet = this.facts.loglets.get(link.loglet)
      assert.ok(loglet, 'each link of a log has its loglet')
      this.#cells.set(link.loglet, new LogletCell(loglet, log.logId, link))
    }
  }

  /** Ids below this one are burnt: used, or given to a group that may have failed. */
  get nextLogletId(): number {
    return this.#nextLogletId
  }

  /** At most what a snapshot takes, without encoding one. */
  get snapshotBytes(): number {
    return this.#snapshotBytes
  }

  /** What a snapshot says: the durable facts, and the ids that were burnt up to them. */
  snapshot(): StoreFacts {
    return { ...this.facts, nextLogletId: this.#settledLogletId }
  }

  cell(loglet: number): LogletCell | undefined {
    return this.#cells.get(loglet)
  }

  cells(): Iterable<LogletCell> {
    return this.#cells.values()
  }

  log(logId: LogId): LogFacts | undefined {
    return this.facts.logs.get(logId)
  }

  /** Remembers that the cell's draft was changed. */
  touch(cell: LogletCell): void {
    if (cell.isTouched) return
    cell.isTouched = true
    this.#touched.push(cell)
  }

  /** Whether the log exists in the draft. */
  hasDraftLog(logId: LogId): boolean {
    const draft = this.#logDrafts.get(logId)
    return draft === undefined ? this.facts.logs.has(logId) : draft !== null
  }

  /** Whether the loglet exists in the draft. */
  hasDraftCell(cell: LogletCell): boolean {
    const draft = this.#logDrafts.get(cell.logId)
    if (draft === undefined) return this.#cells.get(cell.facts.id) === cell
    return draft?.links.some((link) => link.loglet === cell.facts.id) ?? false
  }

  /** Creates a log of one loglet in the draft; returns the loglet's id, burnt from now on. */
  draftCreate(logId: LogId, baseLsn: number): number {
    assert.ok(this.#nextLogletId <= MAX_LOGLET_ID, 'there are loglet ids left')
    const loglet = this.#nextLogletId++
    const link = { loglet, baseLsn }
    this.#draftLog(logId, { logId, links: [link] })
    this.#newCells.set(loglet, new LogletCell(emptyLoglet(loglet), logId, link))
    return loglet
  }

  /** Deletes a log that exists in the draft. */
  draftDelete(logId: LogId): void {
    this.#draftLog(logId, null)
  }

  #draftLog(logId: LogId, log: LogFacts | null): void {
    this.#logDrafts.set(logId, log)
    this.#registryChanges.push(log ?? logId)
  }

  draftDeadSegments(last: number): void {
    this.#firstSegment = Math.max(this.#firstSegment, last + 1)
  }

  get firstSegmentDraft(): number {
    return this.#firstSegment
  }

  /** The group is durable: the draft becomes the facts. Returns what changed; notifies nobody. */
  adopt(): LogletCell[] {
    const changed = this.#touched
    for (const cell of changed) {
      if (cell.seal !== cell.facts.seal) this.#snapshotBytes += sealBytesBound(cell.seal)
      cell.adopt()
    }
    this.facts.firstSegment = this.#firstSegment
    for (const change of this.#registryChanges) {
      if (typeof change === 'string') changed.push(...this.#adoptDelete(change))
      else this.#adoptCreate(change)
    }
    this.#forget()
    return changed
  }

  #adoptCreate(log: LogFacts): void {
    this.#snapshotBytes += logBytesBound(log)
    this.facts.logs.set(log.logId, log)
    for (const link of log.links) {
      const cell = this.#newCells.get(link.loglet)
      assert.ok(cell, 'a created log has its cell')
      this.facts.loglets.set(link.loglet, cell.facts)
      this.facts.nextLogletId = Math.max(this.facts.nextLogletId, link.loglet + 1)
      this.#cells.set(link.loglet, cell)
    }
  }

  #adoptDelete(logId: LogId): LogletCell[] {
    const cells: LogletCell[] = []
    const log = this.facts.logs.get(logId)
    if (log !== undefined) this.#snapshotBytes -= logBytesBound(log)
    for (const link of log?.links ?? []) {
      const cell = this.#cells.get(link.loglet)
      if (cell !== undefined) {
        this.#snapshotBytes -= logletBytesBound(cell.facts)
        cells.push(cell)
      }
      this.#cells.delete(link.loglet)
      this.facts.loglets.delete(link.loglet)
    }
    this.facts.logs.delete(logId)
    for (const cell of cells) cell.ended ??= unknownLog(logId)
    return cells
  }

  /** The group failed, or is judged again: nothing of the draft happened. */
  discard(): void {
    for (const cell of this.#touched) cell.reset()
    this.#firstSegment = this.facts.firstSegment
    this.#forget()
  }

  #forget(): void {
    this.#touched = []
    this.#settledLogletId = this.#nextLogletId
    if (this.#registryChanges.length === 0) return
    this.#registryChanges = []
    this.#logDrafts.clear()
    this.#newCells.clear()
  }
}

/** Where a loglet's offset stands in its log, to report damage in the users' terms. */
export function lsnIn(facts: StoreFacts, logId: LogId, loglet: number, offset: Offset): number {
  const link = facts.logs.get(logId)?.links.find((candidate) => candidate.loglet === loglet)
  return lsnOfOffset(link?.baseLsn ?? OLDEST_POSITION, offset)
}
