/**
 * Engines that are broken on purpose, each in one way. A mutant is a file system that misbehaves
 * (mutant-layers.ts), or a change of the compiled engine: a text that must be there exactly once,
 * so that no mutant can turn into the engine itself when somebody edits the line that it is about.
 */
import type { Profile } from './explore-generate.ts'

export interface Edit {
  /** A compiled module, from the root of the build. */
  readonly file: string
  readonly from: string
  readonly to: string
}

/** Which suite must notice: random lives, damaged disks, mixed copies, or the decoders' properties. */
export type MutantSuite = 'explore' | 'damage' | 'twins' | 'codec'

export interface Mutant {
  readonly name: string
  readonly edits?: readonly Edit[]
  readonly layer?: string
  /** Default: random lives. */
  readonly suite?: MutantSuite
  /** Default: every kind of life. */
  readonly profile?: Profile
}

const edit = (file: string, from: string, to: string): Edit => ({ file, from, to })

const LAYERS: readonly Mutant[] = [
  { name: 'no sync', layer: 'no sync' },
  { name: 'O_DSYNC ignored', layer: 'O_DSYNC ignored' },
  { name: 'ack before sync', layer: 'ack before sync' },
  { name: 'no file sync', layer: 'no file sync' },
  { name: 'no directory sync', layer: 'no directory sync' },
  { name: 'swallowed sync error', layer: 'swallowed sync error', profile: 'failures' },
  { name: 'retried sync', layer: 'retried sync', profile: 'failures' },
  { name: 'swallowed write error', layer: 'swallowed write error', profile: 'failures' },
  {
    name: 'short write taken for whole',
    layer: 'short write taken for whole',
    profile: 'failures',
  },
  {
    name: 'old segment not synced at a roll',
    layer: 'last group of a segment not synced',
    profile: 'rolls',
  },
  {
    name: 'segment header not synced with the first group',
    layer: 'segment header not synced with the first group',
  },
]

const WRITER = 'engine/log-store-writer.js'
const SETTLE = 'engine/recovery-settle.js'

const COMMITS: readonly Mutant[] = [
  {
    name: 'release before sync',
    edits: [
      edit(
        WRITER,
        'const keepZeros = this.#zerosToKeep(kept);',
        `const keepZeros = this.#zerosToKeep(kept);
        flight.isEarly = start === undefined;
        if (flight.isEarly) {
            this.#options.hooks.onDurable(commands, flight.place, writer.fileEnd);
            for (const cell of this.#options.state.adopt()) cell.notify();
        }`,
      ),
      edit(
        WRITER,
        'hooks.onDurable(commands, place,',
        'hooks.onDurable(flight.isEarly ? [] : commands, place,',
      ),
    ],
  },
  {
    name: 'verdict told before its group is durable',
    edits: [
      edit(
        WRITER,
        `if (kept.length > 0)
            this.#write(commands, kept);`,
        `for (const command of commands) if (command.refusal) command.settle();
        if (kept.length > 0)
            this.#write(commands, kept);`,
      ),
    ],
  },
  {
    name: 'trim acked before its group is durable',
    edits: [
      edit(
        'engine/commands.js',
        'cell.trimPoint = this.offset;',
        'cell.trimPoint = this.offset; this.settle();',
      ),
    ],
  },
  {
    name: 'offsets not reused after a failed commit',
    profile: 'failures',
    edits: [
      edit(
        'engine/store-state.js',
        `for (const cell of this.#touched)
            cell.reset();
        this.#firstSegment`,
        'this.#firstSegment',
      ),
    ],
  },
  {
    name: 'failed store goes on',
    profile: 'failures',
    edits: [
      edit(
        WRITER,
        'this.#failure = error;\n        this.#options.state.discard();',
        'this.#options.state.discard();',
      ),
      edit('engine/log-store.js', 'this.#refusal ??= error;', ''),
    ],
  },
  {
    name: 'put-back that only syncs',
    profile: 'failures',
    edits: [
      edit(
        'engine/segment-writer.js',
        'await this.#commitAll([head, ...zeros(to - this.#end)], page);',
        '',
      ),
    ],
  },
  {
    name: 'no put-back',
    profile: 'failures',
    edits: [
      edit(
        'engine/segment-writer.js',
        'this.#restore(covered).then(',
        'Promise.resolve(covered).then(',
      ),
    ],
  },
  {
    name: 'metadata vouches for a group in flight',
    edits: [
      edit(
        WRITER,
        'const keepZeros = this.#zerosToKeep(kept);',
        'const keepZeros = this.#zerosToKeep(kept); this.#options.metadata.vouch?.(flight.end);',
      ),
      edit(
        'engine/metadata-keeper.js',
        'const place = this.#options.place();',
        'const place = this.vouched ?? this.#options.place();',
      ),
      edit(
        'engine/metadata-keeper.js',
        'get durableGeneration() {',
        'vouch(place) { this.vouched = place; }\n    get durableGeneration() {',
      ),
    ],
  },
  {
    name: 'record times go back with the clock',
    edits: [edit('engine/log-store.js', 'if (wallMs > cell.createdAtMs)', 'if (wallMs > 0)')],
  },
  {
    name: 'loglet id reused',
    edits: [
      edit(
        'engine/store-state.js',
        'const loglet = this.#nextLogletId++;',
        'let loglet = 1; while (this.#cells.has(loglet) || this.#newCells.has(loglet)) loglet++;',
      ),
    ],
  },
  {
    name: 'snapshot forgets trim points',
    profile: 'rolls',
    edits: [edit('codec/log-state.js', '        loglet.trimPoint,', '        0,')],
  },
]

const RECOVERY: readonly Mutant[] = [
  {
    name: 'batch not atomic',
    edits: [
      edit(
        'codec/group.js',
        'return checksum(bytes, start, end, seedAt(segmentSeed, position)) === header.framesChecksum;',
        'return true;',
      ),
      edit(
        'engine/group-scanner.js',
        'if (frame === undefined || !visit(frame, base + next))',
        'if (frame === undefined) return true;\n        if (!visit(frame, base + next))',
      ),
    ],
  },
  {
    name: 'torn tail not cut',
    edits: [
      edit(
        SETTLE,
        'await file.truncate(end + kept);\n        await writeZeros(file, end, end + kept);',
        'void [kept, writeZeros];',
      ),
    ],
  },
  {
    name: 'recovery that syncs without rewriting',
    profile: 'failures',
    edits: [edit(SETTLE, 'await writeFully(file, bytes, from);', 'void bytes;')],
  },
  {
    name: 'R1 without its rewrite',
    profile: 'failures',
    edits: [
      edit(
        SETTLE,
        'if (tail !== undefined)\n            await settleTail',
        'if (tail !== undefined && !tail.rest.isZero)\n            await settleTail',
      ),
    ],
  },
  {
    name: 'recovery rewrites and does not sync',
    profile: 'failures',
    edits: [
      edit(
        SETTLE,
        'await writeFully(file, bytes, from);\n        await file.sync();',
        'await writeFully(file, bytes, from);',
      ),
    ],
  },
  {
    name: 'trailing segment reused without emptying',
    profile: 'rolls',
    edits: [edit(SETTLE, 'await emptySegment(fileSystem, dir, segment);', 'void segment;')],
  },
  {
    name: 'group chain not checked',
    suite: 'twins',
    edits: [edit('engine/group-scanner.js', ' && header.previous === this.last.checksum;', ';')],
  },
  {
    name: 'no checksum of frames and groups',
    edits: [
      edit(
        'codec/group.js',
        'return checksum(bytes, start, end, seedAt(segmentSeed, position)) === header.framesChecksum;',
        'return true;',
      ),
      edit(
        'codec/frame.js',
        'if (found !== headerSum(bytes, at, bodySum, segmentSeed, position))',
        'if (found === undefined)',
      ),
    ],
  },
  {
    name: 'no checksum of group headers',
    suite: 'codec',
    edits: [
      edit(
        'codec/group.js',
        'if (sum !== headerChecksum(bytes, at, seedAt(segmentSeed, position)))',
        'if (sum === undefined)',
      ),
    ],
  },
  {
    name: 'no checksum of frames that are read',
    suite: 'damage',
    edits: [
      edit(
        'codec/frame.js',
        'if (found !== headerSum(bytes, at, bodySum, segmentSeed, position))',
        'if (found === undefined)',
      ),
    ],
  },
  {
    name: 'durable mark ignored',
    suite: 'damage',
    edits: [
      edit(
        'engine/recovery.js',
        'if (comparePositions(mark, tail.place) > 0)',
        'if (comparePositions(mark, tail.place) > 1e9)',
      ),
    ],
  },
  {
    name: 'missing newest segment not noticed',
    suite: 'damage',
    edits: [
      edit(
        'engine/recovery.js',
        'if (!this.#segments.includes(segment))\n                await this.#throwMissing(segment, tail, facts);',
        '',
      ),
    ],
  },
  {
    name: 'metadata names a segment too late',
    suite: 'damage',
    edits: [
      edit(
        'engine/reserve.js',
        'return this.#options.metadata.isNamed(this.#segment) ? this.#prepared : undefined;',
        'return this.#prepared;',
      ),
    ],
  },
  {
    name: 'seed without position',
    suite: 'codec',
    edits: [
      edit(
        'codec/checksum.js',
        'return scramble(segmentSeed ^ scramble((position >>> 0) + Math.imul(high, 0x9e3779b1)));',
        'return scramble(segmentSeed ^ (high & 0));',
      ),
    ],
  },
  {
    name: 'seed without segment',
    suite: 'codec',
    edits: [
      edit(
        'codec/segment-header.js',
        'const number = new Uint8Array(8);\n    writeU64(number, 0, segment);',
        'const number = new Uint8Array(8);',
      ),
    ],
  },
]

const METADATA = 'engine/metadata-file.js'

const FILES: readonly Mutant[] = [
  {
    name: 'metadata written in place',
    edits: [
      edit(
        METADATA,
        'const temporary = join(this.#dir, METADATA_TEMPORARY);',
        'const temporary = join(this.#dir, METADATA_FILE);',
      ),
    ],
  },
  {
    name: 'metadata not synced',
    edits: [
      edit(
        METADATA,
        'await writeFully(file, bytes, 0);\n            await file.sync();',
        'await writeFully(file, bytes, 0);',
      ),
    ],
  },
  {
    name: 'metadata renamed though its sync failed',
    profile: 'failures',
    edits: [
      edit(
        METADATA,
        'await writeFully(file, bytes, 0);\n            await file.sync();',
        'await writeFully(file, bytes, 0);\n            await file.sync().catch(() => undefined);',
      ),
    ],
  },
  {
    name: 'metadata believed before its directory is synced',
    edits: [
      edit(
        METADATA,
        'await this.#fileSystem.rename(temporary, join(this.#dir, METADATA_FILE));\n        await this.#fileSystem.syncDirectory(this.#dir);',
        'await this.#fileSystem.rename(temporary, join(this.#dir, METADATA_FILE));',
      ),
    ],
  },
  {
    name: 'clean mark not cleared',
    edits: [
      edit(
        'engine/store-opening.js',
        'await clearCleanMark(metadata, judgement);',
        'void clearCleanMark;',
      ),
    ],
  },
  {
    name: 'dead segments unlinked before their frame is durable',
    profile: 'rolls',
    edits: [
      edit(
        'engine/dead-segments.js',
        'await this.#options.declare(last);',
        'void this.#options.declare(last).catch(() => undefined);',
      ),
    ],
  },
  {
    name: 'live segment taken for dead',
    profile: 'rolls',
    edits: [
      edit(
        'engine/dead-segments.js',
        'return runs.endTail - 1 > facts.trimPoint;',
        'return runs.endTail - 2 > facts.trimPoint;',
      ),
    ],
  },
  {
    name: 'index of a segment not checked',
    suite: 'damage',
    edits: [
      edit(
        'engine/index-file.js',
        'if (readU32(bytes, CHECKSUM_AT) !== sumOf(bytes) || !isBound(bytes, binding))',
        'if (binding === undefined)',
      ),
    ],
  },
  {
    name: 'follower shows what is not durable',
    profile: 'follower',
    edits: [
      edit(
        'engine/stream-cursor.js',
        'witness(header.durable);\n            if',
        'witness(header.durable);\n            mark = Math.max(mark, end);\n            if',
      ),
    ],
  },
]

export const MUTANTS: readonly Mutant[] = [...LAYERS, ...COMMITS, ...RECOVERY, ...FILES]
