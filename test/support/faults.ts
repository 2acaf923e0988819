/**
 * What a test does to a file system: fail chosen operations, hold them back, count them. The
 * simulated disk and the wrapper around real files take the same plan.
 */
import { fsError } from './fs-error.ts'

export type OperationKind =
  | 'makeDirectory'
  | 'list'
  | 'open'
  | 'read'
  | 'write'
  | 'commit'
  | 'commitSync'
  | 'sync'
  | 'truncate'
  | 'size'
  | 'close'
  | 'rename'
  | 'unlink'
  | 'syncDirectory'
  | 'fileSize'
  | 'tryLock'
  | 'realPath'

/** One call of the file system. */
export interface Operation {
  /** Counts all calls from 1, in the order in which they were made. */
  readonly index: number
  readonly kind: OperationKind
  readonly path: string
  /** Where in the file; the size that is asked for if this is a truncate. */
  readonly position?: number | undefined
  readonly length?: number | undefined
}

/** One operation that has ended, in the order in which they did. */
export interface TraceEntry extends Operation {
  /** 'ok', a count of bytes, or the code of the error. */
  readonly outcome: string
}

export type Match = (operation: Operation) => boolean

export interface Fault {
  /** The error's code, such as 'EIO'. Undefined: a short write and no error. */
  readonly code?: string
  /** Writes only: some bytes are stored and counted; the file's next write gets the error. */
  readonly short?: boolean
  /** The operation takes effect in full and reports the error all the same. */
  readonly afterEffect?: boolean
}

/** A fault that waits for operations. */
export interface Injection {
  /** How many it met; what fails because of a short write before it is not counted. */
  readonly hits: number
  /** No operation meets it any more. */
  remove(): void
}

/** Keeps operations from going on until it is released. */
export interface Hold {
  /** Lets the held operations go on, and later ones through. */
  release(): void
}

interface Gate {
  readonly match: Match
  readonly released: Promise<void>
}

interface Rule {
  readonly match: Match
  readonly fault: Fault
  readonly limit: number
  hits: number
  /** What makes the next write fail, after a short one. */
  followUps: Rule[]
}

const MAX_TRACE_ENTRIES = 100_000
const WRITES: ReadonlySet<OperationKind> = new Set(['write', 'commit', 'commitSync'])

export class FaultPlan {
  /** What has ended, oldest first; the oldest half is dropped when it grows too long. */
  readonly trace: TraceEntry[] = []
  #operationCount = 0
  readonly #rules = new Set<Rule>()
  readonly #gates = new Set<Gate>()

  /** How many operations were called so far. */
  get operationCount(): number {
    return this.#operationCount
  }

  /** Fails the operations that match, the first one only unless `times` says more. */
  fail(match: Match, fault: Fault, times = 1): Injection {
    const rule = this.#addRule(match, fault, times)
    return {
      get hits() {
        return rule.hits
      },
      remove: () => {
        for (const each of [rule, ...rule.followUps]) this.#rules.delete(each)
      },
    }
  }

  #addRule(match: Match, fault: Fault, limit: number): Rule {
    const rule: Rule = { match, fault, limit, hits: 0, followUps: [] }
    this.#rules.add(rule)
    return rule
  }

  /** Fails the `k`-th operation from now on, counted from 1; if `sticky`, all later ones too. */
  failOperation(k: number, fault: Fault, sticky = false): Injection {
    const index = this.#operationCount + k
    return sticky
      ? this.fail((operation) => operation.index >= index, fault, Infinity)
      : this.fail((operation) => operation.index === index, fault)
  }

  /** Keeps the operations that match from going on, those that are already called included. */
  hold(match: Match): Hold {
    let wake = (): void => undefined
    const released = new Promise<void>((resolve) => {
      wake = resolve
    })
    const gate: Gate = { match, released }
    this.#gates.add(gate)
    const release = (): void => {
      this.#gates.delete(gate)
      wake()
    }
    return { release }
  }

  isHeld(operation: Operation): boolean {
    return this.#gateFor(operation) !== undefined
  }

  /** Resolves once nothing holds this operation. */
  async whenFree(operation: Operation): Promise<void> {
    for (;;) {
      const gate = this.#gateFor(operation)
      if (gate === undefined) return
      await gate.released
    }
  }

  #gateFor(operation: Operation): Gate | undefined {
    for (const gate of this.#gates) if (gate.match(operation)) return gate
    return undefined
  }

  /** Called by the file system for every call that it gets. */
  begin(call: Omit<Operation, 'index'>): Operation {
    this.#operationCount += 1
    return { index: this.#operationCount, ...call }
  }

  /** The fault that this operation meets, the newest of several; asked once for each. */
  faultFor(operation: Operation): Fault | undefined {
    if (this.#rules.size === 0) return undefined
    for (const rule of [...this.#rules].reverse()) {
      if (rule.hits >= rule.limit || !rule.match(operation)) continue
      if (rule.fault.short === true && !isShortenable(operation)) continue
      rule.hits += 1
      if (rule.fault.short === true) this.#failNextWrite(rule, operation.path)
      return rule.fault
    }
    return undefined
  }

  #failNextWrite(rule: Rule, path: string): void {
    const { code } = rule.fault
    if (code === undefined) return
    const match: Match = (operation) => WRITES.has(operation.kind) && operation.path === path
    rule.followUps.push(this.#addRule(match, { code }, 1))
  }

  /** Called by the file system when an operation has ended. */
  end(operation: Operation, outcome: string): void {
    if (this.trace.length === MAX_TRACE_ENTRIES) this.trace.splice(0, MAX_TRACE_ENTRIES / 2)
    this.trace.push({ ...operation, outcome })
  }

  /** How many operations of a kind have ended, on all files or on those whose path ends so. */
  count(kind: OperationKind, pathEnd = ''): number {
    return this.trace.filter((entry) => entry.kind === kind && entry.path.endsWith(pathEnd)).length
  }
}

function isShortenable(operation: Operation): boolean {
  return WRITES.has(operation.kind) && (operation.length ?? 0) > 1
}

/** The code of the error that this operation is to report; a short write reports none. */
export function codeOf(fault: Fault | undefined): string | undefined {
  return fault?.short === true ? undefined : fault?.code
}

/** Whether an operation with this fault takes full effect all the same. */
export function hasFullEffect(fault: Fault | undefined): boolean {
  return codeOf(fault) === undefined || fault?.afterEffect === true
}

/** Throws the error that the operation is to report, if there is one. */
export function throwIfFailing(fault: Fault | undefined, syscall: string, path: string): void {
  const code = codeOf(fault)
  if (code !== undefined) throw fsError(code, syscall, path)
}

/** The trace's last lines, for a message. */
export function formatTrace(trace: readonly TraceEntry[], lines: number): string {
  return trace.slice(-lines).map(formatOperation).join('\n')
}

export function formatOperation(entry: Operation & { readonly outcome?: string }): string {
  const where = entry.position === undefined ? '' : ` @${entry.position}`
  const length = entry.length === undefined ? '' : ` +${entry.length}`
  const outcome = entry.outcome === undefined ? '' : ` = ${entry.outcome}`
  return `#${entry.index} ${entry.kind} ${entry.path}${where}${length}${outcome}`
}
