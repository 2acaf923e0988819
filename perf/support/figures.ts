/** How the benchmarks write their figures. */
import type { Spread } from './statistics.ts'

/** A whole number with commas: '1,234,568'. */
export function count(value: number): string {
  return Math.round(value).toLocaleString('en-US')
}

/** Three digits are enough: '0.842', '12.3', '145', '1,204'. */
export function rounded(value: number): string {
  if (value === 0 || Math.abs(value) >= 100) return count(value)
  return Number(value.toPrecision(3)).toString()
}

/** A duration in ms, in the unit in which it is easiest to read: '84.2 µs', '1.9 ms', '3.1 s'. */
export function duration(ms: number): string {
  const size = Math.abs(ms)
  if (size < 1) return `${rounded(ms * 1000)} µs`
  return size < 1000 ? `${rounded(ms)} ms` : `${rounded(ms / 1000)} s`
}

export function mebibytes(bytes: number): string {
  return `${rounded(bytes / 2 ** 20)} MiB`
}

/** 256 as '256 B', 1024 as '1 KiB'. */
export function byteSize(bytes: number): string {
  return bytes < 1024 ? `${bytes} B` : `${rounded(bytes / 1024)} KiB`
}

/** 1 as '1 caller', 16 as '16 callers'. */
export function plural(value: number, what: string): string {
  return `${count(value)} ${what}${value === 1 ? '' : 's'}`
}

/** A ratio with two digits, which is more than a shared machine gives. */
export function ratio(value: number): string {
  return value.toFixed(2)
}

/** A share of one: '42 %'. */
export function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`
}

/** The quartiles of a spread: '0.88–0.97'. */
export function quartiles({ low, high }: Spread, format: (value: number) => string): string {
  return `${format(low)}–${format(high)}`
}
