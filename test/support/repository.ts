/** Finds files of the repository that are not built: pages, and stores of earlier versions. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The path of a file or folder, given from the repository's top. */
export function inRepository(name: string): string {
  return join(top(), name)
}

/** The nearest folder above this one, as it is built or not, that has the documentation. */
function top(): string {
  for (let at = dirname(fileURLToPath(import.meta.url)); ; at = dirname(at)) {
    const docs = join(at, 'docs')
    if (fs.existsSync(join(docs, 'format.md'))) return dirname(fs.realpathSync(docs))
    assert.notEqual(at, dirname(at), 'the tests lie in the repository')
  }
}
