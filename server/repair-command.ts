/** `bifrost repair`: makes a damaged store usable again, at the price of what is lost anyway. */
import { repair } from '../index.ts'
import { print, readArgs, readDir, type Command } from './command.ts'
import { findingLines } from './findings.ts'

export const repairCommand: Command = {
  usage: `  bifrost repair DIR --accept-data-loss
      Sets the damaged bytes aside, beside the store; readers then get a gap with the LSNs of what
      was in them, and appends go on. Nothing is deleted. Refuses without --accept-data-loss.`,

  async run(args) {
    const options = { dir: { type: 'string' }, 'accept-data-loss': { type: 'boolean' } } as const
    const { values, positionals } = readArgs(args, options, 1)
    const dir = readDir(values.dir, positionals)
    if (values['accept-data-loss'] !== true) {
      process.stderr.write('bifrost: repair gives up what is damaged: say --accept-data-loss.\n')
      process.stderr.write('See first what `bifrost verify` finds, and copy the directory.\n')
      return 2
    }
    const { quarantined, findings } = await repair(dir, { acceptDataLoss: true })
    await print(findingLines(findings))
    for (const file of quarantined) await print(`set aside: ${file}\n`)
    await print(findings.length === 0 ? 'nothing to repair\n' : 'repaired\n')
    return 0
  },
}
