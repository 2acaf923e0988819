/** What a promise or a call is refused with, as the typed error that it must be. */
import assert from 'node:assert/strict'
import { LogError, type LogErrorCode, type LogErrorOf } from '../../codec/errors.ts'

/** The error of this code that the promise rejects with; fails if it does anything else. */
export async function rejection<C extends LogErrorCode>(
  promise: Promise<unknown>,
  code: C,
): Promise<LogErrorOf<C>> {
  const outcome = await promise.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  )
  assert.ok('error' in outcome, `resolved where ${code} was due`)
  return requireCode(outcome.error, code)
}

/** The error of this code that the call throws; fails if it does anything else. */
export function thrown<C extends LogErrorCode>(call: () => unknown, code: C): LogErrorOf<C> {
  try {
    call()
  } catch (error) {
    return requireCode(error, code)
  }
  assert.fail(`returned where ${code} was due`)
}

function requireCode<C extends LogErrorCode>(error: unknown, code: C): LogErrorOf<C> {
  if (LogError.is(error, code)) return error
  const found = error instanceof Error ? (error.stack ?? error.message) : String(error)
  assert.fail(`${code} was due, not: ${found}`)
}
