import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { settings } from '../../src/config.ts'
import { quickStartLines } from '../../src/docs/snippets.ts'
import { Update } from '../../src/protocol/updates.ts'

const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')

describe('the README', () => {
  it('lists every setting with its default and meaning, and no other', () => {
    const rows = [...readme.matchAll(/^\| `([A-Z_]+)` \| (.+?) \| (.+) \|$/gm)].map(([, name, value, about]) => [
      name,
      value === '–' ? null : value,
      about,
    ])
    expect(rows).toEqual(
      Object.entries(settings).map(([name, setting]) => [name, setting.default, setting.description]),
    )
  })

  it('gives the three lines that a start prints', () => {
    for (const line of quickStartLines('127.0.0.1:8080', 'AAPLc')) expect(readme).toContain(line)
  })

  it('names only scripts that there are', () => {
    const named = [...readme.matchAll(/npm (?:run )?([a-z]+)/g)].map(([, script]) => script ?? '')
    const known = [...Object.keys(packageJson.scripts), 'ci']
    expect(named.filter((script) => !known.includes(script) && script !== 'run')).toEqual([])
    expect(named.length).toBeGreaterThan(5)
  })

  it('shows a message that the contract allows', () => {
    const [, example] = /```json\n(.+)\n```/.exec(readme) ?? []
    expect(Update.parse(JSON.parse(example ?? ''))).toEqual(JSON.parse(example ?? ''))
  })

  it('points only at files that exist', () => {
    for (const [, path] of readme.matchAll(/`(src\/[\w/.]+)`/g)) {
      expect(() => readFileSync(new URL(`../../${path}`, import.meta.url)), path).not.toThrow(/ENOENT/)
    }
  })
})
