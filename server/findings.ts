/** Findings of verify and repair, as lines for people. */
import type { Finding } from '../index.ts'
import { jsonText } from './command.ts'

/** One line a finding: its label, where it is, what it is, and the records that it costs. */
export function findingLines(findings: readonly Finding[]): string {
  return findings.map((finding) => `${findingLine(finding)}\n`).join('')
}

function findingLine({ label, file, position, message, logs }: Finding): string {
  const stake = logs.map(({ logId, from, to }) => {
    return `${jsonText(logId)} ${from === to ? String(from) : `${from} to ${to}`}`
  })
  const cost = stake.length === 0 ? '' : `; at stake: ${stake.join(', ')}`
  return `${label} ${file}:${position} ${message}${cost}`
}
