/**
 * Opens a store for writing: lock, judge, settle, and put the running parts together. Whatever
 * fails on the way, the lock and every descriptor are given back.
 */
import { randomFillSync } from 'node:crypto'
import { LogError } from '../codec/errors.ts'
import { STORE_ID_BYTES } from '../codec/format.ts'
import type { Metadata } from '../codec/metadata.ts'
import { Background } from './background.ts'
import type { Clock } from './clock.ts'
import { CommandQueue } from './command-queue.ts'
import { DirectoryLock } from './directory-lock.ts'
import { openFailed } from './errors.ts'
import { segmentPath } from './file-names.ts'
import type { FileSystem } from './file-system.ts'
import { isSpaceError } from './io.ts'
import { makeDurableDirectory } from './make-directory.ts'
import { MetadataFile } from './metadata-file.ts'
import { MetadataKeeper } from './metadata-keeper.ts'
import type { RecoveryReport } from './metrics.ts'
import type { ResolvedStoreOptions } from './options.ts'
import { judgeStore, ORIGIN, type Judgement } from './recovery.ts'
import { settleStore } from './recovery-settle.ts'
import { SegmentFiles } from './segment-files.ts'
import { GrowingIndex } from './segment-index.ts'
import { SegmentReader } from './segment-reader.ts'
import { SegmentSet } from './segment-set.ts'
import { SegmentWriter } from './segment-writer.ts'
import { StoreMetrics } from './store-metrics.ts'
import { StoreState } from './store-state.ts'

/** What a store needs from outside, so that tests can stand in for disk and time. */
export interface StoreEnvironment {
  readonly fileSystem: FileSystem
  readonly clock: Clock
  /** Makes the id of a new store; random by default. */
  readonly makeStoreId?: (() => Uint8Array) | undefined
}

function randomStoreId(): Uint8Array {
  return randomFillSync(new Uint8Array(STORE_ID_BYTES))
}

/** The parts of an open store, before its writer runs. */
export interface OpenedStore {
  readonly lock: DirectoryLock
  readonly storeId: Uint8Array
  readonly judgement: Judgement
  readonly state: StoreState
  readonly files: SegmentFiles
  readonly segments: SegmentSet
  readonly reader: SegmentReader
  readonly queue: CommandQueue
  readonly background: Background
  readonly metadata: MetadataKeeper
  readonly metrics: StoreMetrics
  /** The segment to go on with; undefined while none has a group. */
  readonly current: SegmentWriter | undefined
  readonly recovery: RecoveryReport
  /** Connects what only exists once the writer does. */
  readonly place: { now: Metadata['place'] }
}

export async function openStore(
  options: ResolvedStoreOptions,
  environment: StoreEnvironment,
): Promise<OpenedStore> {
  const { fileSystem } = environment
  const { dir, lockTimeoutMs } = options
  let lock: DirectoryLock | undefined
  try {
    await makeDurableDirectory(fileSystem, dir)
    lock = await DirectoryLock.take(environment, dir, lockTimeoutMs)
    return await openLocked(options, environment, lock)
  } catch (error) {
    // What went wrong first is what matters; the lock goes with its descriptor in any case.
    await lock?.release().catch(() => undefined)
    throw openFailed(error, error instanceof LogError)
  }
}

async function openLocked(
  options: ResolvedStoreOptions,
  environment: StoreEnvironment,
  lock: DirectoryLock,
): Promise<OpenedStore> {
  const { fileSystem, clock } = environment
  const { dir, logger } = options
  const startedAt = clock.now()
  const judgement = await judgeStore(fileSystem, dir)
  await settleStore(fileSystem, dir, judgement)
  const makeStoreId = environment.makeStoreId ?? randomStoreId
  const storeId = judgement.storeId ?? makeStoreId()
  const state = new StoreState(judgement.facts, judgement.nextLogletId)
  const background = new Background(logger)
  const place = { now: judgement.tail?.place ?? ORIGIN }
  const metadata = new MetadataKeeper({
    file: new MetadataFile(fileSystem, dir),
    clock,
    background,
    storeId,
    state,
    place: () => place.now,
    found: judgement.metadataRebuilt ? undefined : judgement.metadata,
  })
  metadata.skipGenerations(newestGeneration(judgement))
  await clearCleanMark(metadata, judgement)
  return {
    ...readingParts(options, environment, storeId, judgement),
    lock,
    storeId,
    judgement,
    state,
    queue: new CommandQueue(options),
    background,
    metadata,
    metrics: new StoreMetrics(judgement.droppedBytes),
    current: await openTail(options, environment, judgement),
    recovery: reportOf(judgement, Math.max(0, clock.now() - startedAt)),
    place,
  }
}

function newestGeneration({ metadata, tail }: Judgement): number {
  return Math.max(metadata?.generation ?? 0, tail?.generation ?? 0, tail?.rest.generation ?? 0)
}

/**
 * Before anything is written to a segment, the metadata must not say any more that the store was
 * closed cleanly. On a full disk that takes the removal of the metadata: no record is lost with it.
 */
async function clearCleanMark(metadata: MetadataKeeper, judgement: Judgement): Promise<void> {
  try {
    await metadata.write()
  } catch (error) {
    if (!isSpaceError(error)) throw error
    // A new store is one only by its metadata: without it, what follows would look like damage.
    if (judgement.tail === undefined) throw error
    if (judgement.metadata?.clean !== true) return
    await metadata.remove()
    await metadata.write().catch(() => undefined)
  }
}

function readingParts(
  options: ResolvedStoreOptions,
  { fileSystem }: StoreEnvironment,
  storeId: Uint8Array,
  judgement: Judgement,
): Pick<OpenedStore, 'files' | 'segments' | 'reader'> {
  const { dir, indexCacheBytes } = options
  const files = new SegmentFiles(fileSystem, dir)
  const segments = new SegmentSet(
    { fileSystem, dir, storeId, files, indexCacheBytes, mayWrite: true },
    judgement.live,
    judgement.tail?.index ?? new GrowingIndex(),
  )
  return { files, segments, reader: new SegmentReader(segments, files, storeId) }
}

async function openTail(
  { dir, commitMode }: ResolvedStoreOptions,
  { fileSystem }: StoreEnvironment,
  { tail }: Judgement,
): Promise<SegmentWriter | undefined> {
  if (tail === undefined) return undefined
  const { segment, position } = tail.place
  const file = await fileSystem.open(segmentPath(dir, segment), 'commit')
  try {
    const size = await file.size()
    return new SegmentWriter(segment, tail.seed, file, position, size, commitMode === 'inline')
  } catch (error) {
    await file.close()
    throw error
  }
}

function reportOf(judgement: Judgement, durationMs: number): RecoveryReport {
  const { droppedBytes, droppedFrames, metadataRebuilt, findings } = judgement
  return Object.freeze({ droppedBytes, droppedFrames, metadataRebuilt, durationMs, findings })
}
