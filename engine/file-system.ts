/**
 * The seam between the engine and the disk. Every access to a file goes through it, so that tests
 * can count calls, inject failures and stand a simulated disk in its place.
 *
 * Failures are the errors of node:fs (`error.code` is 'ENOSPC' and so on). Nothing here retries,
 * and nothing is durable unless a method says so.
 */

/** How a file is opened. Files are made with mode 0600. */
export type OpenMode =
  /** Existing, for reading. */
  | 'read'
  /** Existing, for reading and writing. */
  | 'write'
  /** Existing, for `commit`, `commitSync`, `read`, `truncate`, `sync` and `size`. */
  | 'commit'
  /** New and empty, for reading and writing; EEXIST if it is there. */
  | 'create'
  /** Made if missing, for reading and writing; keeps what is there. */
  | 'open-or-create'

export interface StoreFile {
  /** The descriptor's number, for the lock; undefined on a simulated disk. */
  readonly descriptor: number | undefined

  /** Reads up to `length` bytes into `target` at `at`; resolves with how many: 0 at the end. */
  read(target: Uint8Array, at: number, length: number, position: number): Promise<number>

  /** Writes bytes to the page cache; resolves with how many, perhaps fewer than were given. */
  write(source: Uint8Array, position: number): Promise<number>

  /**
   * Writes the buffers one after the other at `position` and makes exactly these bytes durable,
   * with the file's size if it grew: one write and one sync, or one `O_DSYNC` write, which is both.
   * `done` gets the count that was written, perhaps fewer than were given, or the error. At most
   * one of these is under way for a file.
   */
  commit(
    buffers: readonly Uint8Array[],
    position: number,
    done: (error: Error | null, written: number) => void,
  ): void

  /** Like `commit`, but blocks the thread until it is done. */
  commitSync(buffers: readonly Uint8Array[], position: number): number

  /** Makes durable all that was written to the file, and its size, before the call. */
  sync(): Promise<void>

  /** Sets the size; a cut drops what the page cache holds beyond it. */
  truncate(size: number): Promise<void>

  size(): Promise<number>

  /** Closes the descriptor, and with it any lock on it. Call it once. */
  close(): Promise<void>
}

export interface FileSystem {
  /**
   * Makes one directory, with mode 0700; durable after `syncDirectory` of its parent. Resolves with
   * false if it is there already; ENOENT if its parent is not.
   */
  makeDirectory(path: string): Promise<boolean>
  /** The names in a directory, in no order. */
  list(path: string): Promise<string[]>
  open(path: string, mode: OpenMode): Promise<StoreFile>
  /** Atomically; durable after `syncDirectory`. */
  rename(from: string, to: string): Promise<void>
  /** Durable after `syncDirectory`. */
  unlink(path: string): Promise<void>
  /** Makes the directory's entries durable. */
  syncDirectory(path: string): Promise<void>
  /** The size of a file in bytes. */
  fileSize(path: string): Promise<number>
  /**
   * Takes the exclusive lock on an open file without waiting; false if somebody else has it.
   * Throws LOCK_UNAVAILABLE where locks don't work. The lock goes with the file's `close`.
   */
  tryLock(file: StoreFile): Promise<boolean>
  /** The path without symbolic links, to know one directory by one name. */
  realPath(path: string): Promise<string>
}
