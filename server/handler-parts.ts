/** What the operations of a handler share. */
import type { Bifrost, Logger } from '../index.ts'
import type { LiveReaders } from './live-readers.ts'
import type { HandlerLimits } from './options.ts'
import type { StreamDirectory } from './stream-directory.ts'

export interface HandlerParts {
  readonly bifrost: Bifrost
  readonly limits: HandlerLimits
  readonly logger: Logger
  readonly streams: StreamDirectory
  readonly liveReaders: LiveReaders
  /** Whether only the application's clients may see what is here, so that shared caches may not. */
  readonly isPrivate: boolean
}
