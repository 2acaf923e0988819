/** `bifrost verify`: reads every frame of a store and tells what does not check. */
import { verify } from '../index.ts'
import { print, readArgs, requireDir, type Command } from './command.ts'
import { findingLines } from './findings.ts'

export const verifyCommand: Command = {
  usage: `  bifrost verify --dir DIR [--json]
      Reads every frame. Prints each finding with its label, file, position, logs and LSNs; the
      exit code is 1 if anything is damaged. Read-only; may run beside the store's writer.`,

  async run(args) {
    const { values } = readArgs(args, { dir: { type: 'string' }, json: { type: 'boolean' } })
    const report = await verify(requireDir(values.dir))
    if (values.json === true) {
      await print(`${JSON.stringify(report, undefined, 2)}\n`)
    } else {
      await print(findingLines(report.findings))
      const { groups, frames, bytes } = report
      const verdict = report.ok ? 'ok' : 'DAMAGED'
      await print(`${verdict}: ${groups} groups, ${frames} frames, ${bytes} bytes\n`)
    }
    return report.ok ? 0 : 1
  },
}
