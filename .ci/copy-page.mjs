/**
 * Puts the server's page beside its compiled code, where the server reads it from: the compiler
 * takes no HTML along. `node .ci/copy-page.mjs FOLDER`, after compiling into FOLDER.
 */
import { copyFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const PAGE = 'server/page.html'
const self = fileURLToPath(import.meta.url)
const root = path.join(path.dirname(self), '..')

/** Copies the page into a folder of compiled code. */
export function copyPage(folder) {
  copyFileSync(path.join(root, PAGE), path.resolve(root, folder, PAGE))
}

if (process.argv[1] === self) copyPage(process.argv[2])
