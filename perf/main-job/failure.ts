/** What the main job found not to hold, in words for whoever runs it. */
export class JobFailure extends Error {
  override readonly name: string = 'JobFailure'
}

/** Throws a JobFailure unless the condition holds. */
export function mustHold(condition: boolean, otherwise: () => string): asserts condition {
  if (!condition) throw new JobFailure(otherwise())
}
