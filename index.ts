/** The public door: everything that users import, and nothing else. */
export { LogError } from './codec/errors.ts'
export type { LogErrorCode, LogErrorFields, LogErrorOf, LogId, LogRange } from './codec/errors.ts'
export type { Keys } from './codec/record.ts'
export type {
  HistogramSnapshot,
  Metrics,
  RecoveryFinding,
  RecoveryLabel,
  RecoveryReport,
} from './engine/metrics.ts'
export { verify } from './engine/inspect.ts'
export type { Finding, VerifyOptions, VerifyReport } from './engine/inspect.ts'
export type { Logger } from './engine/options.ts'
export { repair } from './engine/repair.ts'
export type { RepairReport } from './engine/repair.ts'
export type { AppendOptions, BatchOptions, Entry } from './loglets/append-options.ts'
export type { AppendStreamOptions, AppendStreamResult } from './loglets/append-stream.ts'
export type { AppenderOptions } from './loglets/appender-options.ts'
export type { Appender, EnqueueOptions } from './loglets/appender.ts'
export { Bifrost } from './loglets/bifrost.ts'
export type { BifrostClass } from './loglets/bifrost.ts'
export type { DataRecord, GapRecord, LogRecord } from './loglets/log-record.ts'
export type { Log } from './loglets/log.ts'
export { Lsn } from './loglets/lsn.ts'
export type { BifrostOptions, ProviderKind } from './loglets/options.ts'
export type { LogReader } from './loglets/read-stream.ts'
export type { ReaderOptions } from './loglets/reader-options.ts'
export type { TailState } from './loglets/tail-state.ts'
