/** Another commit of this project, built in a folder of its own. */
import { spawnSync } from 'node:child_process'
import { readFileSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { projectPath } from './project.ts'

export class Worktree {
  readonly #dir: string
  readonly #removeAtExit = (): void => this.remove()
  /** The commit, abbreviated. */
  readonly commit: string

  /** Checks the commit out and builds it. Throws an Error that says what failed. */
  constructor(ref: string, dir: string) {
    this.#dir = dir
    this.commit = git('rev-parse', '--short', `${ref}^{commit}`).trim()
    git('worktree', 'add', '--detach', dir, this.commit)
    process.once('exit', this.#removeAtExit)
    try {
      this.#installPackages()
      this.#build()
    } catch (error) {
      this.remove()
      throw error
    }
  }

  /** The public door of that build. */
  get library(): string {
    return join(this.#dir, 'dist', 'index.js')
  }

  /** What is installed here serves both, unless that commit asks for other packages. */
  #installPackages(): void {
    const [here, there] = [projectPath('package-lock.json'), join(this.#dir, 'package-lock.json')]
    const isSame = readFileSync(here, 'utf8') === readFileSync(there, 'utf8')
    if (isSame) symlinkSync(projectPath('node_modules'), join(this.#dir, 'node_modules'))
    else run(this.#dir, 'npm', 'ci', '--include=dev')
  }

  #build(): void {
    run(this.#dir, process.execPath, 'node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json')
  }

  remove(): void {
    process.off('exit', this.#removeAtExit)
    git('worktree', 'remove', '--force', this.#dir)
    rmSync(this.#dir, { recursive: true, force: true })
  }
}

function git(...args: string[]): string {
  return run(projectPath(), 'git', ...args)
}

/** Runs a command to its end; resolves with what it printed. */
function run(cwd: string, command: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8' })
  if (status === 0) return stdout
  throw new Error(`${command} ${args.join(' ')} failed:\n${stdout}${stderr}`)
}
