/** A directory of its own for a test on real files. */
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'

/** Makes an empty directory that goes away, with all that is in it, when the test ends. */
export async function temporaryDirectory(t: TestContext): Promise<string> {
  const directory = await mkdtemp(join(await realpath(tmpdir()), 'bifrost-test-'))
  t.after(() => rm(directory, { recursive: true, force: true, maxRetries: 10 }))
  return directory
}
