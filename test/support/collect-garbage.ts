/** Collects garbage now, for tests of what is no longer held. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc') as () => void

export function collectGarbage(): void {
  gc()
}
