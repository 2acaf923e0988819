/** How an injected fault shows in the steps of a simulated operation. */
import { codeOf, hasFullEffect, throwIfFailing, type Fault, type OperationKind } from './faults.ts'
import type { Random } from './random.ts'
import type { Steps } from './sim-scheduler.ts'

/** These may have happened, or not, when they fail with EIO. */
const CHANGES: ReadonlySet<OperationKind> = new Set(['rename', 'unlink', 'truncate'])

/** An operation that takes effect in one step. */
export function* oneStep<T>(
  random: Random,
  fault: Fault | undefined,
  { kind, path }: { readonly kind: OperationKind; readonly path: string },
  syscall: string,
  effect: () => T,
): Steps<T> {
  if (hasFullEffect(fault)) {
    const result = effect()
    throwIfFailing(fault, syscall, path)
    return result
  }
  if (CHANGES.has(kind) && codeOf(fault) === 'EIO' && random.chance(0.5)) effect()
  throwIfFailing(fault, syscall, path)
  return effect()
}
