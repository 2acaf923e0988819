/** Figures as people read them, and the tables of the main job. */
import { statfsSync } from 'node:fs'
import type { HistogramSnapshot, Metrics } from '../../index.ts'

/** 1234567.8 as '1,234,568'. */
export function count(value: number): string {
  return Math.round(value).toLocaleString('en-US')
}

/** 1 as '1 segment', 3 as '3 segments'. */
export function plural(value: number, what: string): string {
  return `${count(value)} ${what}${value === 1 ? '' : 's'}`
}

/** Three digits are enough: '0.842', '12.3', '145', '1,204'. */
function rounded(value: number): string {
  if (value === 0 || value >= 100) return count(value)
  return value.toPrecision(3)
}

export function milliseconds(ms: number): string {
  return ms < 10_000 ? `${rounded(ms)} ms` : `${(ms / 1000).toFixed(1)} s`
}

export function mebibytes(bytes: number): string {
  return `${rounded(bytes / 2 ** 20)} MiB`
}

interface Row {
  readonly title: string
  readonly histogram: HistogramSnapshot
  readonly format: (value: number) => string
}

const COLUMNS = ['min', 'p50', 'p90', 'p99', 'max', 'mean'] as const

/** The histograms of group commits, one line each. */
export function commitTable(metrics: Metrics): string[] {
  const inMs = (seconds: number): string => `${rounded(seconds * 1000)} ms`
  const inKib = (bytes: number): string => `${rounded(bytes / 1024)} KiB`
  const rows: Row[] = [
    {
      title: 'records in a group commit',
      histogram: metrics.bifrost_localloglet_write_batch_count,
      format: rounded,
    },
    {
      title: 'bytes in a group commit',
      histogram: metrics.bifrost_localloglet_write_batch_size_bytes,
      format: inKib,
    },
    {
      title: 'one write and sync takes',
      histogram: metrics.bifrost_localloglet_sync_duration_seconds,
      format: inMs,
    },
    {
      title: 'an append takes',
      histogram: metrics.bifrost_localloglet_append_duration_seconds,
      format: inMs,
    },
  ]
  const heads = COLUMNS.map((name) => name.padStart(11)).join('')
  return [''.padEnd(26) + heads, ...rows.map(tableRow)]
}

function tableRow({ title, histogram, format }: Row): string {
  const cells = COLUMNS.map((name) => format(histogram[name]).padStart(11))
  return title.padEnd(26) + cells.join('')
}

const FILE_SYSTEMS: Readonly<Record<number, string>> = {
  0xef53: 'ext4',
  0x58465342: 'xfs',
  0x9123683e: 'btrfs',
  0x2fc12fc1: 'zfs',
  0x794c7630: 'overlayfs',
  0x01021994: 'tmpfs',
}

/** The name of the file system that a directory is on, if it is one of the common ones of Linux. */
export function fileSystemOf(dir: string): string | undefined {
  return process.platform === 'linux' ? FILE_SYSTEMS[statfsSync(dir).type] : undefined
}
