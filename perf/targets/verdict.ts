/** Whether what was measured is what is aimed at. */
import { quartiles, ratio } from '../support/figures.ts'
import type { Spread } from '../support/statistics.ts'

export interface Verdict {
  /** What was done, and what it is compared with. */
  readonly work: string
  readonly aim: string
  readonly measured: string
  /** Between what half of the rounds lie; empty where there is one figure only. */
  readonly spread: string
  readonly met: boolean
}

/** The ratio should be at least so much. */
export function atLeast(work: string, aim: number, measured: Spread): Verdict {
  return {
    work,
    aim: `≥ ${ratio(aim)}`,
    measured: ratio(measured.median),
    spread: quartiles(measured, ratio),
    met: measured.median >= aim,
  }
}

/** The figure should be at most so much. */
export function atMost(
  work: string,
  aim: number,
  measured: Spread,
  format: (value: number) => string = ratio,
): Verdict {
  return {
    work,
    aim: `≤ ${format(aim)}`,
    measured: format(measured.median),
    spread: quartiles(measured, format),
    met: measured.median <= aim,
  }
}

/** A figure that was measured once, and should be at most so much. */
export function onceAtMost(
  work: string,
  aim: number,
  measured: number,
  format: (value: number) => string = ratio,
): Verdict {
  return {
    work,
    aim: `≤ ${format(aim)}`,
    measured: format(measured),
    spread: '',
    met: measured <= aim,
  }
}
