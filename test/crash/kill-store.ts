/** The options of the store that is killed: small segments and a small reserve, so that it rolls. */
import type { BifrostOptions } from '../../index.ts'

export const KILL_STORE: BifrostOptions = { segmentSizeBytes: 64 * 1024, reserveBytes: 4096 }
