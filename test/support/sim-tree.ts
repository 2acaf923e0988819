/**
 * The directories of a simulated disk, and our assumptions about their entries.
 *
 * Creating, renaming and unlinking change entries at once for everybody who looks, and on the disk
 * when the directory is synced. After a power loss any of the changes since then may be there and
 * any other not, with two rules: changes of the same name survive in their order, and a rename
 * survives whole, so that a name it replaced has the old file or the new one. A directory sync
 * covers the changes that ended before it began. One that fails covers nothing and loses nothing:
 * entries are metadata, which file systems journal; the next sync covers them.
 */
import { posix } from 'node:path'
import { fsError } from './fs-error.ts'
import { SimInode } from './sim-inode.ts'
import type { SimMedium } from './sim-medium.ts'

export class SimDirectory {
  /** What everybody sees. */
  readonly entries: Map<string, SimNode> = new Map<string, SimNode>()
  /** What is on the disk for sure, before any change that is not synced. */
  readonly durable: Map<string, SimNode> = new Map<string, SimNode>()
}

export type SimNode = SimInode | SimDirectory

/** A name in a directory, and what it names after a change. */
interface Slot {
  readonly directory: SimDirectory
  readonly name: string
  readonly node: SimNode | undefined
}

/** One create, rename or unlink. */
interface Change {
  readonly event: number
  readonly slots: readonly Slot[]
}

export class SimTree {
  readonly #medium: SimMedium
  readonly #root: SimDirectory
  #changes: Change[] = []

  constructor(medium: SimMedium, root: SimDirectory = new SimDirectory()) {
    this.#medium = medium
    this.#root = root
  }

  /** What a path names, or undefined. */
  find(path: string): SimNode | undefined {
    let node: SimNode | undefined = this.#root
    for (const name of namesOf(path)) {
      if (!(node instanceof SimDirectory)) return undefined
      node = node.entries.get(name)
    }
    return node
  }

  file(syscall: string, path: string): SimInode {
    const node = this.find(path)
    if (node === undefined) throw fsError('ENOENT', syscall, path)
    if (node instanceof SimDirectory) throw fsError('EISDIR', syscall, path)
    return node
  }

  directory(syscall: string, path: string): SimDirectory {
    const node = this.find(path)
    if (node === undefined) throw fsError('ENOENT', syscall, path)
    if (node instanceof SimInode) throw fsError('ENOTDIR', syscall, path)
    return node
  }

  createFile(path: string): SimInode {
    const { directory, name } = this.#slot('open', path)
    if (directory.entries.has(name)) throw fsError('EEXIST', 'open', path)
    const inode = new SimInode(this.#medium)
    this.#change([{ directory, name, node: inode }])
    return inode
  }

  /** Makes one directory; returns false if it is there already. */
  makeDirectory(path: string): boolean {
    const { directory, name } = this.#slot('mkdir', path)
    const known = directory.entries.get(name)
    if (known instanceof SimInode) throw fsError('EEXIST', 'mkdir', path)
    if (known !== undefined) return false
    this.#change([{ directory, name, node: new SimDirectory() }])
    return true
  }

  /** Returns the file that lost its name, if there was one under the new name. */
  rename(from: string, to: string): SimInode | undefined {
    const source = this.#slot('rename', from)
    const target = this.#slot('rename', to)
    const node = source.directory.entries.get(source.name)
    if (node === undefined) throw fsError('ENOENT', 'rename', from)
    const replaced = target.directory.entries.get(target.name)
    if (replaced === node) return undefined
    if (replaced instanceof SimDirectory) throw fsError('EISDIR', 'rename', to)
    if (replaced !== undefined && node instanceof SimDirectory) {
      throw fsError('ENOTDIR', 'rename', to)
    }
    this.#change([
      { ...source, node: undefined },
      { ...target, node },
    ])
    return replaced
  }

  /** Returns the file that lost its name. */
  unlink(path: string): SimInode {
    const inode = this.file('unlink', path)
    this.#change([{ ...this.#slot('unlink', path), node: undefined }])
    return inode
  }

  /** Makes durable the entries of a directory as they were at the event `began`. */
  sync(directory: SimDirectory, began: number): void {
    const covered = this.#changesOf(directory, began)
    for (const change of this.#changes) if (covered.has(change)) apply(change, 'durable')
    this.#changes = this.#changes.filter((change) => !covered.has(change))
  }

  /** Makes all entries durable. */
  syncAll(): void {
    for (const change of this.#changes) apply(change, 'durable')
    this.#changes = []
  }

  /** Draws which of the changes since the last syncs survive. */
  powerLoss(): void {
    const { random } = this.#medium
    const probability = random.pick([0, 0.5, 0.8, 1])
    const lost: Slot[] = []
    for (const change of this.#changes) {
      if (random.chance(probability) && !sharesName(change, lost)) apply(change, 'durable')
      else lost.push(...change.slots)
    }
    this.#changes = []
    for (const node of this.#nodes('durable').values())
      if (node instanceof SimDirectory) revert(node)
  }

  /** All files that have a name, by their paths. */
  files(): Map<string, SimInode> {
    const files = new Map<string, SimInode>()
    for (const [path, node] of this.#nodes('entries')) {
      if (node instanceof SimInode) files.set(path, node)
    }
    return files
  }

  directories(): string[] {
    const nodes = [...this.#nodes('entries')].slice(1)
    return nodes.filter(([, node]) => node instanceof SimDirectory).map(([path]) => path)
  }

  /** Whether a path names the same after any power loss. */
  isDurable(path: string): boolean {
    let node: SimNode | undefined = this.#root
    for (const name of namesOf(path)) {
      if (!(node instanceof SimDirectory)) return false
      const directory: SimDirectory = node
      const isChanging = this.#changes.some(({ slots }) =>
        slots.some((slot) => slot.directory === directory && slot.name === name),
      )
      node = directory.entries.get(name)
      if (isChanging || directory.durable.get(name) !== node) return false
    }
    return node !== undefined
  }

  fork(medium: SimMedium): SimTree {
    const copies = new Map<SimNode, SimNode>()
    const root = forkDirectory(this.#root, medium, copies)
    const copy = new SimTree(medium, root)
    copy.#changes = this.#changes.map(({ event, slots }) => ({
      event,
      slots: slots.map(({ directory, name, node }) => ({
        directory: forkDirectory(directory, medium, copies),
        name,
        node: node && forkNode(node, medium, copies),
      })),
    }))
    return copy
  }

  #slot(syscall: string, path: string): { directory: SimDirectory; name: string } {
    const names = namesOf(path)
    const name = names.pop()
    if (name === undefined) throw fsError('EBUSY', syscall, path)
    const parent = this.find(names.join('/'))
    if (parent === undefined) throw fsError('ENOENT', syscall, path)
    if (parent instanceof SimInode) throw fsError('ENOTDIR', syscall, path)
    return { directory: parent, name }
  }

  #change(slots: readonly Slot[]): void {
    const change: Change = { event: this.#medium.nextEvent(), slots }
    this.#changes.push(change)
    apply(change, 'entries')
  }

  /** The changes that a sync of the directory covers, with the earlier ones of the same names. */
  #changesOf(directory: SimDirectory, began: number): Set<Change> {
    const covered = new Set<Change>()
    const names: Slot[] = []
    for (const change of [...this.#changes].reverse()) {
      const isHere = change.slots.some((slot) => slot.directory === directory)
      if (change.event > began || !(isHere || sharesName(change, names))) continue
      covered.add(change)
      names.push(...change.slots)
    }
    return covered
  }

  /** Everything below the root by its path, the root itself included. */
  #nodes(side: 'entries' | 'durable'): Map<string, SimNode> {
    const nodes = new Map<string, SimNode>([['', this.#root]])
    // A map hands out what is added to it while it is walked.
    for (const [path, node] of nodes) {
      if (node instanceof SimInode) continue
      for (const [name, child] of node[side]) nodes.set(`${path}/${name}`, child)
    }
    return nodes
  }
}

/** The names on an absolute path. */
function namesOf(path: string): string[] {
  return posix
    .resolve('/', path)
    .split('/')
    .filter((name) => name !== '')
}

function apply(change: Change, side: 'entries' | 'durable'): void {
  for (const { directory, name, node } of change.slots) {
    if (node === undefined) directory[side].delete(name)
    else directory[side].set(name, node)
  }
}

function sharesName(change: Change, slots: readonly Slot[]): boolean {
  return change.slots.some(({ directory, name }) =>
    slots.some((slot) => slot.directory === directory && slot.name === name),
  )
}

/** Everybody sees what is on the disk. */
function revert(directory: SimDirectory): void {
  directory.entries.clear()
  for (const [name, node] of directory.durable) directory.entries.set(name, node)
}

function forkNode(node: SimNode, medium: SimMedium, copies: Map<SimNode, SimNode>): SimNode {
  if (node instanceof SimDirectory) return forkDirectory(node, medium, copies)
  const copy = copies.get(node) ?? node.fork(medium)
  copies.set(node, copy)
  return copy
}

function forkDirectory(
  directory: SimDirectory,
  medium: SimMedium,
  copies: Map<SimNode, SimNode>,
): SimDirectory {
  const known = copies.get(directory)
  if (known instanceof SimDirectory) return known
  const copy = new SimDirectory()
  copies.set(directory, copy)
  for (const side of ['entries', 'durable'] as const) {
    for (const [name, node] of directory[side]) copy[side].set(name, forkNode(node, medium, copies))
  }
  return copy
}
