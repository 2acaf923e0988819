/** How long a record takes to its reader, beside how long its append takes. */
import { merged, type Percentiles } from '../support/latencies.ts'
import { differenceOf, ratioOf, type Spread } from '../support/statistics.ts'
import type { Arena } from './arena.ts'

const SIZE = 100

export interface WriteToRead {
  /** An append that nobody reads. */
  readonly alone: Percentiles
  /** An append whose log is followed by a reader. */
  readonly append: Percentiles
  /** From the call of that append to its reader. */
  readonly read: Percentiles
  /** What a reader waits longer than an append that nobody reads, at p50, in ms. */
  readonly later: Spread
  /** The same as a ratio. */
  readonly ratio: Spread
}

export async function writeToRead(arena: Arena): Promise<WriteToRead> {
  const names = ['append alone', 'append and read'] as const
  const sides = []
  for (const name of names) sides.push(await arena.enter(name, { kind: 'bifrost' }))
  const { roundMs: ms, leadMs } = arena
  const results = await arena.takeTurns(sides, (side) =>
    side.ask('writeToRead', { size: SIZE, ms, leadMs, isRead: side.name === names[1] }),
  )
  await arena.clear()
  const [alone = [], read = []] = results
  const p50Alone = alone.map(({ append }) => merged([append]).percentiles().p50)
  const p50Read = read.map((round) => merged([round.read]).percentiles().p50)
  return {
    alone: merged(alone.map(({ append }) => append)).percentiles(),
    append: merged(read.map(({ append }) => append)).percentiles(),
    read: merged(read.map((round) => round.read)).percentiles(),
    later: differenceOf(p50Read, p50Alone),
    ratio: ratioOf(p50Read, p50Alone),
  }
}
