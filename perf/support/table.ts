/** Tables that are read in a terminal and pasted into Markdown. */

export type Row = readonly string[]

/** The first column is aligned to the left, the others to the right. */
export function table(heads: Row, rows: readonly Row[]): string {
  const widths = heads.map((head, column) =>
    Math.max(3, head.length, ...rows.map((row) => (row[column] ?? '').length)),
  )
  const line = (row: Row): string =>
    `| ${widths.map((width, column) => aligned(row[column] ?? '', width, column)).join(' | ')} |`
  const rule = widths.map((width, column) =>
    column === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`,
  )
  return [line(heads), `| ${rule.join(' | ')} |`, ...rows.map(line)].join('\n')
}

function aligned(cell: string, width: number, column: number): string {
  return column === 0 ? cell.padEnd(width) : cell.padStart(width)
}
