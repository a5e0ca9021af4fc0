import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }

const releaseNotes = (...args: readonly string[]) => spawnSync('bash', ['.ci/release-notes', ...args], { encoding: 'utf8' })

it('the notes of a release are the section of its version in the changelog', () => {
  const { status, stdout } = releaseNotes(`v${packageJson.version}`)
  expect(status).toBe(0)
  const sections = readFileSync('CHANGELOG.md', 'utf8').split(/^## .*$/m)
  expect(sections.map((text) => text.trim())).toContain(stdout.trim())
  expect(stdout).toMatch(/^- \S/m)
})

it.each([['v999.0.0'], [packageJson.version], ['']])('a tag that is not the version of the package has none: %j', (tag) => {
  expect(releaseNotes(tag)).toMatchObject({ status: 1, stdout: '', stderr: expect.stringMatching(/^release-notes: [^\n]+\n$/) })
})
