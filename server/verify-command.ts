/** `bifrost verify`: reads every frame of a store and tells what does not check. */
import { verify } from '../index.ts'
import { jsonText, print, readArgs, readDir, type Command } from './command.ts'
import { findingLines } from './findings.ts'

export const verifyCommand: Command = {
  usage: `  bifrost verify DIR [--json]
      Reads every frame. Prints each finding with its label, file, position, logs and LSNs; the
      exit code is 1 if anything is damaged. Read-only; may run beside the store's writer.`,

  async run(args) {
    const options = { dir: { type: 'string' }, json: { type: 'boolean' } } as const
    const { values, positionals } = readArgs(args, options, 1)
    const report = await verify(readDir(values.dir, positionals))
    if (values.json === true) {
      await print(`${jsonText(report, 2)}\n`)
    } else {
      await print(findingLines(report.findings))
      const { groups, frames, bytes } = report
      const verdict = report.ok ? 'ok' : 'DAMAGED'
      await print(`${verdict}: ${groups} groups, ${frames} frames, ${bytes} bytes\n`)
    }
    return report.ok ? 0 : 1
  },
}
