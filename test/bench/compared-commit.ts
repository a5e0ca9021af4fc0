import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ROOT } from './pinned-processes.ts'

/** Another commit of the project, in a folder of its own, whose relay is measured beside this one. */

type ComparedCommit = { readonly name: string; readonly dir: string }

const git = (...args: readonly string[]) => spawnSync('git', args, { cwd: ROOT, encoding: 'utf8' })

/** Checks out a commit with the packages that it asks for, until this process ends. Null if there is no such commit here. */
export function checkOutCommit(commit: string): ComparedCommit | null {
  const { status, stdout } = git('rev-parse', '--verify', '--quiet', '--short', `${commit}^{commit}`)
  if (status !== 0) return null
  const parent = mkdtempSync(join(tmpdir(), 'stocktape-commit-'))
  const dir = join(parent, 'stocktape')
  process.once('exit', () => {
    git('worktree', 'remove', '--force', dir)
    rmSync(parent, { recursive: true, force: true })
  })
  const added = git('worktree', 'add', '--detach', dir, commit)
  const problem = added.status === 0 ? installPackages(dir) : added.stderr
  if (problem !== null) throw new Error(`${commit} cannot be checked out: ${problem}`)
  return { name: stdout.trim(), dir }
}

/** Takes the packages of this folder if they are the same. Returns what went wrong, or null. */
function installPackages(dir: string): string | null {
  const lockOf = (folder: string) => readFileSync(join(folder, 'package-lock.json'), 'utf8')
  if (lockOf(dir) === lockOf(ROOT)) {
    symlinkSync(join(ROOT, 'node_modules'), join(dir, 'node_modules'))
    return null
  }
  const { status, stderr } = spawnSync('npm', ['ci'], { cwd: dir, encoding: 'utf8' })
  return status === 0 ? null : stderr
}
