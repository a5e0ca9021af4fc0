import { describe, expect, it } from 'vitest'
import { documents } from '../../../src/docs/documents.ts'
import { messageTypes } from '../../../src/docs/json-schemas.ts'
import { describedRoutes as routes } from '../../../src/docs/route-texts.ts'

const bodyOf = (path: string): string => new TextDecoder().decode(documents.get(path)?.bytes)
const llms = bodyOf('/llms.txt')
const types = Object.values(messageTypes).flat()
const CAVEAT = 'Presence of a record does not imply trading availability or eligibility'

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
