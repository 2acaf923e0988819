/**
 * Owns the life of providers: starts each at most once at a time, holds what is asked of one while
 * it starts, in call order, and shuts them all down within a grace. A start that failed is tried
 * again by the next use.
 *
 *     idle ──use──▶ starting ──▶ ready
 *       ▲               │
 *       └───failed──────┘
 */
import { LogError, logError } from '../codec/errors.ts'
import { closed } from './errors.ts'
import type { LogletProvider } from './loglet-provider.ts'
import type { ProviderKind } from './options.ts'

/** Something that needs a provider which is ready. Exactly one of the two is called, once. */
export interface ProviderTask {
  run(provider: LogletProvider): void
  fail(error: LogError): void
}

/** How to bring a provider up. */
export interface ProviderPlan {
  /** Makes a provider that was not started yet. */
  make(): LogletProvider
  /** Called with a provider that has just started, before anybody may use it. */
  prepare(provider: LogletProvider): Promise<void>
}

/** How long a shutdown waits for what is under way, in milliseconds. */
export const SHUTDOWN_GRACE_MS = 5000

export class Watchdog {
  readonly #providers = new Map<ProviderKind, ManagedProvider>()

  /** The provider of this kind, made by `plan` when it is first used. */
  manage(kind: ProviderKind, plan: ProviderPlan): ManagedProvider {
    const provider = this.#providers.get(kind) ?? new ManagedProvider(plan)
    this.#providers.set(kind, provider)
    return provider
  }

  /** Shuts all down in parallel; rejects with the first failure once all are settled. */
  async shutdown(graceMs: number): Promise<void> {
    const all = [...this.#providers.values()].map((provider) => provider.shutdown(graceMs))
    await Promise.allSettled(all)
    await Promise.all(all)
  }
}

/** One provider: idle, starting, or ready. */
export class ManagedProvider {
  readonly #plan: ProviderPlan
  readonly #tasks = new Set<ProviderTask>()
  #ready: LogletProvider | undefined
  #starting: Promise<void> | undefined
  #isShutDown = false

  constructor(plan: ProviderPlan) {
    this.#plan = plan
  }

  /** The provider if it can be used at once. */
  get ready(): LogletProvider | undefined {
    return this.#ready
  }

  /** Runs the task now, or once the provider has started; begins to start it if need be. */
  use(task: ProviderTask): void {
    if (this.#ready !== undefined) {
      task.run(this.#ready)
    } else if (this.#isShutDown) {
      task.fail(closed())
    } else {
      this.#tasks.add(task)
      // Whoever waits is told through the tasks.
      this.start().catch(() => undefined)
    }
  }

  /** Forgets a task that waits for the start. */
  withdraw(task: ProviderTask): void {
    this.#tasks.delete(task)
  }

  /** Runs an operation once the provider is ready, in call order with the tasks. */
  perform<T>(operation: (provider: LogletProvider) => Promise<T>): Promise<T> {
    if (this.#ready !== undefined) return operation(this.#ready)
    return new Promise<T>((resolve, reject) => {
      this.use({
        run: (provider) => {
          // At once, for the call order; what it throws is no failure of the tasks after it.
          resolve(inPromise(() => operation(provider)))
        },
        fail: reject,
      })
    })
  }

  /** Starts the provider, or rejects with why it can't be. */
  start(): Promise<void> {
    if (this.#ready !== undefined) return Promise.resolve()
    this.#starting ??= this.#start()
    return this.#starting
  }

  async #start(): Promise<void> {
    const outcome = await this.#tryStart()
    // From here on a use tries again, also one that a failed task makes.
    this.#starting = undefined
    if (outcome instanceof LogError) {
      for (const task of this.#takeTasks()) task.fail(outcome)
      throw outcome
    }
    this.#ready = outcome
    for (const task of this.#takeTasks()) task.run(outcome)
  }

  async #tryStart(): Promise<LogletProvider | LogError> {
    try {
      const provider = this.#plan.make()
      await provider.start()
      await this.#prepare(provider)
      return provider
    } catch (cause) {
      if (cause instanceof LogError) return cause
      return logError('OPEN_FAILED', 'The provider could not be started', { cause })
    }
  }

  async #prepare(provider: LogletProvider): Promise<void> {
    try {
      this.#requireWanted()
      await this.#plan.prepare(provider)
      this.#requireWanted()
    } catch (error) {
      // Nobody will use it. What is wrong is said by the first error.
      await provider.shutdown(SHUTDOWN_GRACE_MS).catch(() => undefined)
      throw error
    }
  }

  #requireWanted(): void {
    if (this.#isShutDown) throw closed()
  }

  #takeTasks(): ProviderTask[] {
    const tasks = [...this.#tasks]
    this.#tasks.clear()
    return tasks
  }

  /**
   * Lets a start that somebody waits for finish, then shuts the provider down. What still waits
   * for the start after `graceMs` is CLOSED; a provider that starts later is shut down at once.
   */
  async shutdown(graceMs: number): Promise<void> {
    const deadline = performance.now() + graceMs
    if (this.#starting !== undefined && this.#tasks.size > 0) {
      await settledWithin(this.#starting, graceMs)
    }
    this.#isShutDown = true
    for (const task of this.#takeTasks()) task.fail(closed())
    await this.#ready?.shutdown(Math.max(0, deadline - performance.now()))
  }
}

async function inPromise<T>(operation: () => Promise<T>): Promise<T> {
  return operation()
}

/** Waits until the promise is settled, whatever the outcome, or the time has passed. */
export async function settledWithin(promise: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)))
  await Promise.race([promise.catch(() => undefined), timeout])
  clearTimeout(timer)
}
