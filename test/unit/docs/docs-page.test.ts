import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { documents } from '../../../src/docs/documents.ts'
import { messageTypes } from '../../../src/docs/json-schemas.ts'
import { recipes } from '../../../src/docs/recipes.ts'
import { describedRoutes as routes } from '../../../src/docs/route-texts.ts'
import { snippets } from '../../../src/docs/snippets.ts'

const bodyOf = (path: string): string => new TextDecoder().decode(documents.get(path)?.bytes)
const page = bodyOf('/docs')
const llms = bodyOf('/llms.txt')
const types = Object.values(messageTypes).flat()
const CAVEAT = 'Presence of a record does not imply trading availability or eligibility'

/** Text as it appears escaped in HTML. */
const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;').replaceAll("'", '&#39;')

describe('the page at /docs', () => {
  it('allows only its own style and script, by their hashes', () => {
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
    expect(page).not.toMatch(/<[^>]*\s(?:on\w+|style)=/)
  })

  it('loads nothing from elsewhere', () => {
    expect(page).not.toMatch(/\s(?:src|href)="(?:https?:)?\/\//)
    expect(page).not.toMatch(/@import|url\(/)
  })

  it('contains every code sample unchanged', () => {
    for (const { source } of snippets) expect(page).toContain(escaped(source.trimEnd()))
    for (const { source = '' } of recipes) expect(page).toContain(escaped(source))
    for (const { curl } of routes) expect(page).toContain(escaped(curl))
  })

  it('contains every message and every route', () => {
    for (const type of types) expect(page).toContain(`id="message-${type}"`)
    for (const { path } of routes) expect(page).toContain(`<code>${path}</code>`)
  })
})

describe('llms.txt', () => {
  it('begins with a title and a quoted summary, as the convention requires', () => {
    expect(llms).toMatch(/^# stocktape\n\n> \S/)
  })

  it('lists every message and every route', () => {
    for (const type of types) expect(llms).toMatch(new RegExp(`^- \\[${type}\\]\\(/schemas/${type}\\.json\\): [A-Z]`, 'm'))
    for (const { path } of routes) expect(llms).toContain(` ${path}\``)
  })

  it('links only to served documents', () => {
    for (const [, link = ''] of llms.matchAll(/\]\((\/[^)]*)\)/g)) expect(documents.has(link), link).toBe(true)
  })
})

it('every document contains the caveat about trading availability', () => {
  for (const path of ['/docs', '/llms.txt', '/openapi.json', '/asyncapi.json']) expect(bodyOf(path), path).toContain(CAVEAT)
})
