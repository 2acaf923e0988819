/** One segment's end: groups land there durably, or the file is durably what it was before. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { StoreFile } from '../../engine/file-system.ts'
import {
  SegmentWriter,
  type CommitOutcome,
  type CommitRequest,
} from '../../engine/segment-writer.ts'
import type { TraceEntry } from '../support/faults.ts'
import { Random } from '../support/random.ts'
import { SimDisk } from '../support/sim-disk.ts'

const PATH = '/store/0000000001.segment'
const KIB = 1024
const MIB = 1024 * KIB
/** Where the durable groups end: in the middle of a page. */
const END = 10_000
const NO_LIMIT = 64 * MIB

/** A segment's file with `END` durable bytes and some zeros behind them, and its writer. */
interface Bench {
  readonly disk: SimDisk
  readonly writer: SegmentWriter
  readonly file: StoreFile
  readonly durable: Uint8Array
  commit(
    bytes: Uint8Array | readonly Uint8Array[],
    more?: Partial<CommitRequest>,
  ): Promise<CommitOutcome>
  content(): Uint8Array
  trace(): TraceEntry[]
}

interface BenchOptions {
  readonly seed?: number
  readonly zeros?: number
  readonly end?: number
  readonly isInline?: boolean
  readonly capacityBytes?: number
}

async function bench({
  seed = 1,
  zeros = 0,
  end = END,
  isInline = false,
  capacityBytes = Infinity,
}: BenchOptions = {}): Promise<Bench> {
  const disk = new SimDisk({ seed, capacityBytes })
  const durable = new Random(seed).bytes(end).map((byte) => byte | 1)
  const before = new Uint8Array(end + zeros)
  before.set(durable)
  disk.writeFile(PATH, before)
  const file = await disk.run(disk.fileSystem.open(PATH, 'commit'))
  const writer = new SegmentWriter(1, 99, file, end, end + zeros, isInline)
  const since = disk.faults.trace.length
  return {
    disk,
    writer,
    file,
    durable,
    content: () => disk.readFile(PATH),
    trace: () => disk.faults.trace.slice(since),
    commit: (bytes, more = {}) => {
      const buffers = bytes instanceof Uint8Array ? [bytes] : bytes
      const request = { buffers, keepZeros: 0, zerosLimit: NO_LIMIT, ...more }
      return disk.run(new Promise((done) => writer.commit(request, done)))
    },
  }
}

function group(length: number, letter = 'g'): Uint8Array {
  return new Uint8Array(length).fill(letter.charCodeAt(0))
}

/** Fails the next commits with a code, the put-backs not. */
function failCommits({ disk }: Bench, code: string, times: number, short = false): void {
  const isGroup = ({ kind, position }: { kind: string; position?: number | undefined }): boolean =>
    kind.startsWith('commit') && (position ?? 0) >= END && (position ?? 0) % 4096 !== 0
  disk.faults.fail(isGroup, { code, short }, times)
}

/** That the file is, durably, what it was: after a power loss too. */
async function requireAsBefore(on: Bench, zeros: number): Promise<void> {
  const expected = new Uint8Array(END + zeros)
  expected.set(on.durable)
  assert.deepEqual(on.content(), expected, on.disk.describe())
  assert.deepEqual([on.writer.end, on.writer.fileEnd], [END, END + zeros])
  for (let seed = 1; seed <= 10; seed++) {
    const after = on.disk.fork(seed)
    after.crash('power')
    assert.deepEqual(after.readFile(PATH), expected, `after a power loss, seed ${seed}`)
  }
  await on.disk.run(on.file.size())
}

const MODES = [
  ['async', false],
  ['inline', true],
] as const

for (const [mode, isInline] of MODES) {
  describe(`SegmentWriter.commit() in mode ${mode}`, () => {
    test('puts a group durably at the end, in one operation', async () => {
      const on = await bench({ isInline, zeros: 50_000 })
      const outcome = await on.commit([group(100, 'a'), group(200, 'b')])
      assert.deepEqual(outcome, { kind: 'durable', bytes: 300 })
      assert.deepEqual(
        on.trace().map(({ kind }) => kind),
        [isInline ? 'commitSync' : 'commit'],
      )
      assert.ok(on.disk.isDurable(PATH, 0, END + 300))
      const expected = [...on.durable, ...group(100, 'a'), ...group(200, 'b')]
      assert.deepEqual([...on.content().subarray(0, END + 300)], expected)
      assert.equal(on.writer.end, END + 300)
    })

    test('takes zeros along with a small group where there are none, and then uses them', async () => {
      const on = await bench({ isInline })
      await on.commit(group(100))
      assert.equal(on.content().length, END + 100 + MIB)
      assert.equal(on.writer.fileEnd, END + 100 + MIB)
      assert.ok(
        on
          .content()
          .subarray(END + 100)
          .every((byte) => byte === 0),
      )
      await on.commit(group(100))
      const [first, second] = on.trace()
      assert.equal(first?.length, 100 + MIB)
      assert.equal(second?.length, 100)
    })

    test('takes none along with a large group, nor past the limit', async () => {
      const large = await bench({ isInline })
      await large.commit(group(64 * KIB))
      assert.equal(large.content().length, END + 64 * KIB)
      const limited = await bench({ isInline })
      await limited.commit(group(100), { zerosLimit: END + 1000 })
      assert.equal(limited.content().length, END + 1000)
      await limited.commit(group(950), { zerosLimit: END + 1000 })
      assert.equal(limited.content().length, END + 1050)
    })

    test('goes on behind a short write', async () => {
      const on = await bench({ isInline, zeros: 50_000 })
      on.disk.faults.fail(({ kind }) => kind.startsWith('commit'), { short: true })
      const outcome = await on.commit(group(1000))
      assert.deepEqual(outcome, { kind: 'durable', bytes: 1000 })
      assert.equal(on.trace().length, 2)
      assert.deepEqual(on.content().subarray(END, END + 1000), group(1000))
      assert.ok(on.disk.isDurable(PATH, END, END + 1000))
    })

    for (const code of ['ENOSPC', 'EDQUOT', 'EFBIG']) {
      test(`tries again without zeros when ${code} came with them`, async () => {
        const on = await bench({ isInline })
        failCommits(on, code, 1)
        const outcome = await on.commit(group(100))
        assert.deepEqual(outcome, { kind: 'durable', bytes: 100 })
        const lengths = on.trace().map(({ length }) => length)
        assert.deepEqual(lengths, [100 + MIB, 100])
        assert.deepEqual(on.content().subarray(END, END + 100), group(100))
        assert.ok(on.disk.isDurable(PATH, END, END + 100))
        await on.commit(group(50, 'h'))
        assert.equal(on.trace().at(-1)?.length, 50, 'zeros are not asked for again')
        assert.deepEqual(on.content().subarray(END + 100, END + 150), group(50, 'h'))
      })

      test(`puts the file back when ${code} came without zeros too`, async () => {
        for (let seed = 1; seed <= 10; seed++) {
          const on = await bench({ isInline, seed })
          failCommits(on, code, 2)
          const outcome = await on.commit(group(3000))
          assert.equal(outcome.kind, 'no-space')
          await requireAsBefore(on, 0)
        }
      })

      test(`puts zeros back when ${code} came over zeros that were there`, async () => {
        for (let seed = 1; seed <= 10; seed++) {
          const on = await bench({ isInline, seed, zeros: 9000 })
          failCommits(on, code, 1)
          const outcome = await on.commit(group(5000))
          assert.equal(outcome.kind, 'no-space')
          await requireAsBefore(on, 9000)
        }
      })

      test(`puts the file back when a short write was followed by ${code}`, async () => {
        for (const zeros of [0, 1000, 9000]) {
          const on = await bench({ isInline, zeros })
          failCommits(on, code, 1, true)
          const outcome = await on.commit(group(70_000))
          assert.equal(outcome.kind, 'no-space', `with ${zeros} zeros`)
          await requireAsBefore(on, zeros)
        }
      })
    }

    test('rewrites the first page and all zeros that were covered, and syncs, to put back', async () => {
      const on = await bench({ isInline, zeros: 9000 })
      failCommits(on, 'ENOSPC', 1)
      await on.commit(group(5000))
      const steps = on.trace().map(({ kind, position, length }) => [kind, position, length])
      const commit = isInline ? 'commitSync' : 'commit'
      assert.deepEqual(steps, [
        [commit, END, 5000],
        ['truncate', END + 9000, undefined],
        ['read', 8192, END - 8192],
        [commit, 8192, END - 8192 + 5000],
        ['sync', undefined, undefined],
      ])
    })

    test('lands the next group right where the one without room was put back', async () => {
      const on = await bench({ isInline })
      failCommits(on, 'ENOSPC', 2)
      assert.equal((await on.commit(group(3000, 'x'))).kind, 'no-space')
      assert.equal((await on.commit(group(100, 'y'))).kind, 'durable')
      assert.deepEqual(on.content().subarray(END, END + 100), group(100, 'y'))
      assert.ok(!on.content().includes('x'.charCodeAt(0), END), 'nothing of it is left')
    })

    test('keeps zeros behind a group that must leave some, or has no room', async () => {
      const on = await bench({ isInline, zeros: 9000 })
      failCommits(on, 'ENOSPC', 1)
      const outcome = await on.commit(group(2000), { keepZeros: 8000, zerosLimit: 0 })
      assert.equal(outcome.kind, 'no-space', 'zeros are not given up')
      await requireAsBefore(on, 9000)
      assert.equal(
        (await on.commit(group(2000), { keepZeros: 8000, zerosLimit: 0 })).kind,
        'durable',
      )
      assert.equal(on.writer.fileEnd, END + 2000 + 8000)
      assert.equal((await on.commit(group(500))).kind, 'durable', 'and what needs none uses them')
    })

    for (const code of ['EIO', 'EBADF', 'EROFS']) {
      test(`does not know the outcome after ${code}, and does nothing more`, async () => {
        const on = await bench({ isInline, zeros: 9000 })
        failCommits(on, code, 1)
        const outcome = await on.commit(group(100))
        assert.equal(causeOf(outcome, 'unknown').code, code)
        assert.equal(on.trace().length, 1)
      })
    }

    test('does not know the outcome when the put-back fails, and says both', async () => {
      for (const kind of ['truncate', 'read', 'sync'] as const) {
        const on = await bench({ isInline, zeros: 9000 })
        failCommits(on, 'ENOSPC', 1)
        on.disk.faults.fail((operation) => operation.kind === kind, { code: 'EIO' })
        const outcome = await on.commit(group(100))
        const cause: Error = causeOf(outcome, 'unknown')
        assert.ok(cause instanceof AggregateError, kind)
        const codes = cause.errors.map((error: NodeJS.ErrnoException) => error.code)
        assert.deepEqual(codes, ['ENOSPC', 'EIO'])
      }
    })

    test('does not know the outcome when the end cannot be read back', async () => {
      const on = await bench({ isInline, zeros: 9000 })
      failCommits(on, 'ENOSPC', 1)
      const { file } = on
      file.truncate = () => Promise.resolve()
      file.read = () => Promise.resolve(0)
      assert.equal((await on.commit(group(100))).kind, 'unknown')
    })

    test('puts a first group back to zeros, header and snapshot with it', async () => {
      const disk = new SimDisk({ seed: 3 })
      disk.writeFile(PATH, new Uint8Array(20_000))
      const file = await disk.run(disk.fileSystem.open(PATH, 'commit'))
      const writer = new SegmentWriter(1, 99, file, 0, 20_000, isInline)
      // Groups take more than is there; a put-back does not.
      const isGroup = ({ length = 0 }: { length?: number | undefined }): boolean => length > 20_000
      disk.faults.fail(isGroup, { code: 'ENOSPC' }, Infinity)
      const request = { buffers: [group(500), group(30_000)], keepZeros: 0, zerosLimit: NO_LIMIT }
      const outcome = await disk.run(
        new Promise<CommitOutcome>((done) => writer.commit(request, done)),
      )
      assert.equal(outcome.kind, 'no-space')
      assert.deepEqual(disk.readFile(PATH), new Uint8Array(20_000))
      assert.ok(disk.isDurable(PATH, 0, 20_000))
    })
  })
}

/** The error that came with an outcome, which must be of this kind. */
function causeOf(outcome: CommitOutcome, kind: 'no-space' | 'unknown'): NodeJS.ErrnoException {
  if (outcome.kind !== kind) assert.fail(`${outcome.kind}, not ${kind}`)
  assert.ok(outcome.cause instanceof Error)
  return outcome.cause
}

describe('SegmentWriter.commit()', () => {
  test('finds room itself when the disk has some, and is refused when it has none', async () => {
    const on = await bench({ capacityBytes: 64 * KIB })
    assert.equal((await on.commit(group(20_000))).kind, 'durable', 'without zeros')
    assert.equal((await on.commit(group(40_000, 'x'))).kind, 'no-space')
    assert.equal(on.content().length, END + 20_000)
    assert.equal((await on.commit(group(20_000, 'y'))).kind, 'durable')
    assert.ok(!on.content().includes('x'.charCodeAt(0), END))
  })
})

describe('SegmentWriter.finish()', () => {
  test('gives the zeros behind the last group back, and closes', async () => {
    const on = await bench({ zeros: 9000 })
    await on.commit(group(100))
    await on.disk.run(on.writer.finish())
    assert.equal(on.content().length, END + 100)
    assert.deepEqual(on.disk.openFiles, [])
  })

  test('closes also when the cut fails', async () => {
    const on = await bench({ zeros: 9000 })
    on.disk.faults.fail(({ kind }) => kind === 'truncate', { code: 'EIO' })
    await assert.rejects(on.disk.run(on.writer.finish()), { code: 'EIO' })
    assert.deepEqual(on.disk.openFiles, [])
  })
})
