import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { documents } from '../../../src/docs/documents.ts'
import { routes } from '../../../src/docs/route-table.ts'
import { messageTypes } from '../../../src/docs/schemas.ts'
import { snippets } from '../../../src/docs/snippets.ts'

const bodyOf = (path: string): string => documents.get(path)?.body ?? ''
const page = bodyOf('/docs')
const llms = bodyOf('/llms.txt')
const types = Object.values(messageTypes).flat()
const CAVEAT = 'Presence of a record does not imply trading availability or eligibility'

/** What a browser makes of the text of an element. */
const escaped = (text: string): string =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;')

describe('the page', () => {
  it('may run its own style and script, each by its hash, and nothing else', () => {
    const policy = documents.get('/docs')?.contentSecurityPolicy ?? ''
    for (const [element, directive] of [
      ['style', 'style-src'],
      ['script', 'script-src'],
    ] as const) {
      const all = [...page.matchAll(new RegExp(`<${element}>([^]*?)</${element}>`, 'g'))]
      expect(all).toHaveLength(1)
      const hash = createHash('sha256')
        .update(all[0]?.[1] ?? '')
        .digest('base64')
      expect(policy).toContain(`${directive} 'sha256-${hash}'`)
    }
    expect(policy).toMatch(/^default-src 'none'; /)
    expect(policy).not.toContain('unsafe')
    expect(page).not.toMatch(/\son\w+=|\sstyle=/)
  })

  it('asks nobody for anything', () => {
    expect(page).not.toMatch(/\s(?:src|href)="(?:https?:)?\/\//)
    expect(page).not.toMatch(/@import|url\(/)
  })

  it('has every line to copy, word for word', () => {
    for (const { source } of snippets) expect(page).toContain(escaped(source.trimEnd()))
    for (const { curl } of routes) expect(page).toContain(escaped(curl))
  })

  it('has every message and every route', () => {
    for (const type of types) expect(page).toContain(`id="message-${type}"`)
    for (const { path } of routes) expect(page).toContain(`<code>${path}</code>`)
  })
})

describe('llms.txt', () => {
  it('begins as the convention says: a title, and what it is in a quote', () => {
    expect(llms).toMatch(/^# stocktape\n\n> \S/)
  })

  it('names every message and every route', () => {
    for (const type of types)
      expect(llms).toMatch(new RegExp(`^- \\[${type}\\]\\(/schemas/${type}\\.json\\): [A-Z]`, 'm'))
    for (const { path } of routes) expect(llms).toContain(` ${path}\``)
  })

  it('links to nothing that is not served', () => {
    for (const [, link = ''] of llms.matchAll(/\]\((\/[^)]*)\)/g)) expect(documents.has(link), link).toBe(true)
  })
})

it('every document says what presence does not imply', () => {
  for (const path of ['/docs', '/llms.txt', '/openapi.json', '/asyncapi.json'])
    expect(bodyOf(path), path).toContain(CAVEAT)
})
