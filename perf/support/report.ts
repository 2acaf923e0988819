/** What a run prints, and keeps as JSON in perf/results/. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { relative } from 'node:path'
import { machineLines, type Machine } from './machine.ts'
import { projectPath } from './project.ts'
import { table, type Row } from './table.ts'

const FOLDER = ['perf', 'results']

export class Report {
  readonly #name: string
  readonly #machine: Machine
  readonly #options: object
  readonly #results: Record<string, unknown> = {}

  constructor(name: string, machine: Machine, options: object) {
    this.#name = name
    this.#machine = machine
    this.#options = options
  }

  /** Opens the report with what it was measured on. */
  open(): void {
    this.text(...machineLines(this.#machine), '')
  }

  text(...lines: string[]): void {
    this.#clear()
    for (const line of lines) process.stdout.write(`${line}\n`)
  }

  table(title: string, heads: Row, rows: readonly Row[]): void {
    this.text('', title, '', table(heads, rows), '')
  }

  /** Keeps the figures of a case for the JSON file. */
  keep(name: string, figures: unknown): void {
    this.#results[name] = figures
  }

  /** One line on the terminal that the next one replaces; nothing where nobody looks. */
  progress(text: string): void {
    if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K  ${text}`)
  }

  #clear(): void {
    if (process.stderr.isTTY) process.stderr.write('\r\x1b[K')
  }

  /** The path of a file that belongs to this run. */
  path(file: string): string {
    const time = this.#machine.at.replaceAll(':', '-').replace(/\..*/, '')
    return projectPath(...FOLDER, `${this.#name}-${time}-${file}`)
  }

  /** Writes the JSON file, and says where it is. */
  write(): void {
    mkdirSync(projectPath(...FOLDER), { recursive: true })
    const content = { machine: this.#machine, options: this.#options, results: this.#results }
    const path = this.path('rounds.json')
    writeFileSync(path, `${JSON.stringify(content, null, 2)}\n`)
    this.text(`Every round is in ${relative(projectPath(), path)}`)
  }
}
