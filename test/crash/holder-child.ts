/**
 * Opens a store and holds it until its stdin ends; then closes it. Says 'open', or the error's code
 * and message, and later 'closed'. Argument: the directory.
 */
import { spawn } from 'node:child_process'
import { finished } from 'node:stream/promises'
import { Bifrost, LogError } from '../../index.ts'

const [dir] = process.argv.slice(2)
try {
  const bifrost = await Bifrost.open({ dir, logs: ['held'] })
  await bifrost.append('held', process.pid)
  // A process of its own that lives on must not inherit what it holds.
  if (process.env['HOLDER_SPAWNS'] !== undefined) {
    const { pid } = spawn('sleep', ['60'], { stdio: 'ignore', detached: true })
    console.log(pid)
  }
  console.log('open')
  await finished(process.stdin.resume())
  await bifrost.close()
  console.log('closed')
} catch (error) {
  if (!(error instanceof LogError)) throw error
  console.log(`${error.code} ${error.message}`)
}
