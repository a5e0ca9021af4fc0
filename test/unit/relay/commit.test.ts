import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { readCommit } from '../../../src/relay/commit.ts'

const [commit, other] = ['a'.repeat(40), 'b'.repeat(40)]

it.each<[string, Readonly<Record<string, string>>, string | null]>([
  ['names a commit', { '.git/HEAD': `${commit}\n` }, commit],
  ['names a branch', { '.git/HEAD': 'ref: refs/heads/one\n', '.git/refs/heads/one': `${commit}\n` }, commit],
  [
    'is packed',
    { '.git/HEAD': 'ref: refs/heads/one\n', '.git/packed-refs': `${other} refs/heads/two\n${commit} refs/heads/one\n` },
    commit,
  ],
  ['has no commit', { '.git/HEAD': 'ref: refs/heads/one\n' }, null],
  ['was built without one', { '.git/HEAD': '\n' }, null],
  ['is no clone', {}, null],
])('the commit of a folder that %s', (_, files, expected) => {
  const folder = mkdtempSync(join(tmpdir(), 'stocktape-commit-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  expect(readCommit(pathToFileURL(join(folder, '.git')))).toBe(expected)
})

it.skipIf(!existsSync('.git'))('the commit of this clone or worktree is what git says', () => {
  expect(readCommit()).toBe(execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8' }).trim())
})
