import { spawnSync } from 'node:child_process'
import { readFileSync, symlinkSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ROOT } from './pinned-processes.ts'

/** Another commit of the project, in a folder of its own, whose relay is measured beside this one. */

export type ComparedCommit = { readonly name: string; readonly dir: string; remove(): Promise<void> }

const git = (...args: readonly string[]) => spawnSync('git', args, { cwd: ROOT, encoding: 'utf8' })

/** Checks out a commit, with the packages that it asks for. Null if there is no such commit here. */
export async function checkOutCommit(commit: string): Promise<ComparedCommit | null> {
  const { status, stdout } = git('rev-parse', '--verify', '--quiet', '--short', `${commit}^{commit}`)
  if (status !== 0) return null
  const parent = await mkdtemp(join(tmpdir(), 'stocktape-commit-'))
  const dir = join(parent, 'stocktape')
  const remove = async () => {
    git('worktree', 'remove', '--force', dir)
    await rm(parent, { recursive: true, force: true })
  }
  const added = git('worktree', 'add', '--detach', dir, commit)
  const problem = added.status === 0 ? installPackages(dir) : added.stderr
  if (problem === null) return { name: stdout.trim(), dir, remove }
  await remove()
  throw new Error(`${commit} cannot be checked out: ${problem}`)
}

/** Takes the packages of this folder where they are the same. Returns what went wrong, or null. */
function installPackages(dir: string): string | null {
  const lockOf = (folder: string) => readFileSync(join(folder, 'package-lock.json'), 'utf8')
  if (lockOf(dir) === lockOf(ROOT)) symlinkSync(join(ROOT, 'node_modules'), join(dir, 'node_modules'))
  else {
    const { status, stderr } = spawnSync('npm', ['ci'], { cwd: dir, encoding: 'utf8' })
    if (status !== 0) return stderr
  }
  return null
}
