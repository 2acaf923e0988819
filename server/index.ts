/** The door of `bifrost-log/server`: a store over HTTP. */
export type { Authorization, Authorize, AuthorizeRequest } from './authorize.ts'
export { createHandler } from './handler.ts'
export type { BifrostHandler } from './handler.ts'
export { registerMetrics } from './metrics.ts'
export type { HandlerLimits, HandlerOptions } from './options.ts'
export { serve } from './serve.ts'
export type { BifrostServer, ServeOptions } from './serve.ts'
