/**
 * Compiles only if the package's types are those that were agreed on: each can stand for the other,
 * and no member, generic or `readonly` differs.
 */
import type * as shipped from 'bifrost-log'
import type * as agreed from './api.js'

/** A payload type, to fill the generics with. */
interface Order {
  readonly id: number
}

/** Whether two types are identical and not only exchangeable. */
type Identical<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false

/** Accepts only types that can stand for each other; `C` breaks the cycle of the constraints. */
type Exchangeable<A extends B, B extends C, C = A> = A extends B ? true : false

/** The same, and no member is looser or tighter either. */
type Same<A extends B, B extends C, C = A> = Identical<A, B>

export const proof: readonly true[] = [
  true satisfies Same<agreed.LogId, shipped.LogId>,
  true satisfies Same<agreed.Lsn, shipped.Lsn>,
  true satisfies Same<typeof agreed.Lsn, typeof shipped.Lsn>,
  true satisfies Same<agreed.Logger, shipped.Logger>,
  true satisfies Same<agreed.BifrostOptions, shipped.BifrostOptions>,
  true satisfies Same<agreed.Keys, shipped.Keys>,
  true satisfies Same<agreed.AppendOptions, shipped.AppendOptions>,
  true satisfies Same<agreed.BatchOptions<Order>, shipped.BatchOptions<Order>>,
  true satisfies Same<agreed.Entry, shipped.Entry>,
  true satisfies Same<agreed.Entry<Order>, shipped.Entry<Order>>,
  true satisfies Same<agreed.DataRecord, shipped.DataRecord>,
  true satisfies Same<agreed.DataRecord<Order>, shipped.DataRecord<Order>>,
  true satisfies Same<agreed.GapRecord, shipped.GapRecord>,
  true satisfies Same<agreed.LogRecord, shipped.LogRecord>,
  true satisfies Same<agreed.LogRecord<Order>, shipped.LogRecord<Order>>,
  true satisfies Same<agreed.ReaderOptions, shipped.ReaderOptions>,
  true satisfies Same<agreed.LogReader<Order>, shipped.LogReader<Order>>,
  true satisfies Same<agreed.TailState, shipped.TailState>,
  true satisfies Same<agreed.AppenderOptions, shipped.AppenderOptions>,
  true satisfies Same<agreed.Appender, shipped.Appender>,
  true satisfies Same<agreed.Appender<Order>, shipped.Appender<Order>>,
  true satisfies Same<agreed.AppendStreamOptions<Order>, shipped.AppendStreamOptions<Order>>,
  true satisfies Same<agreed.AppendStreamResult, shipped.AppendStreamResult>,
  true satisfies Same<agreed.HistogramSnapshot, shipped.HistogramSnapshot>,
  true satisfies Same<agreed.Metrics, shipped.Metrics>,
  true satisfies Same<agreed.RecoveryReport, shipped.RecoveryReport>,
  true satisfies Same<agreed.LogErrorCode, shipped.LogErrorCode>,
  true satisfies Same<agreed.LogErrorFields, shipped.LogErrorFields>,
  true satisfies Same<agreed.LogError, shipped.LogError>,
  true satisfies Exchangeable<typeof agreed.LogError, typeof shipped.LogError>,
  true satisfies Same<agreed.Log, shipped.Log>,
  true satisfies Same<agreed.Log<Order>, shipped.Log<Order>>,
  true satisfies Same<agreed.Bifrost, shipped.Bifrost>,
  true satisfies Exchangeable<typeof agreed.Bifrost, typeof shipped.Bifrost>,
  true satisfies Same<typeof agreed.Bifrost.open, typeof shipped.Bifrost.open>,
  true satisfies Same<agreed.Finding, shipped.Finding>,
  true satisfies Same<typeof agreed.verify, typeof shipped.verify>,
  true satisfies Same<typeof agreed.repair, typeof shipped.repair>,
]
