import { describe, expect, it } from 'vitest'
import { documents } from '../../src/docs/documents.ts'
import { fetchDocumented, openTestStack } from '../support/test-stack.ts'
import { openedOnce } from './gateway/node-and-gateway.ts'

/** One relay for all tests: documents never change. */
const stack = openedOnce((lifecycle) => openTestStack({}, lifecycle))

describe('a document', () => {
  it.each([...documents.keys()])('is served at %s unchanged, with an ETag and HEAD', async (path) => {
    const url = `${stack().relay.url}${path}`
    const { status, headers, text } = await fetchDocumented(url)
    expect([status, text]).toEqual([200, new TextDecoder().decode(documents.get(path)?.bytes)])
    expect(headers.get('content-type')).toBe(documents.get(path)?.type)
    expect(headers.get('access-control-allow-origin')).toBe('*')
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    const etag = headers.get('etag') ?? ''
    const again = await fetch(url, { headers: { 'if-none-match': etag } })
    expect([again.status, await again.text(), again.headers.get('etag')]).toEqual([304, '', etag])
    const head = await fetch(url, { method: 'HEAD' })
    expect([head.status, await head.text()]).toEqual([200, ''])
  })

  it('that is a page has a content security policy', async () => {
    const { headers } = await fetchDocumented(`${stack().relay.url}/docs`)
    expect(headers.get('content-security-policy')).toBe(documents.get('/docs')?.contentSecurityPolicy)
    const { headers: plain } = await fetchDocumented(`${stack().relay.url}/llms.txt`)
    expect(plain.get('content-security-policy')).toBeNull()
  })

  it('refuses other methods than GET', async () => {
    for (const path of ['/docs', '/openapi.json', '/schemas/transfer.json', '/schemas/dividend.json']) {
      const { status, headers } = await fetchDocumented(`${stack().relay.url}${path}`, { method: 'POST' })
      expect([status, headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS'])
    }
  })

  it.each(['dividend.json', 'transfer', 'toString.json', '%00.json', `${'x'.repeat(500)}.json`])(
    'that does not exist, /schemas/%s, is a 404 with an existing path',
    async (name) => {
      const { status, json } = await fetchDocumented(`${stack().relay.url}/schemas/${name}`)
      expect(status).toBe(404)
      expect(json).toMatchObject({ message: expect.stringContaining('/schemas/transfer.json') })
      expect(JSON.stringify(json).length).toBeLessThan(500)
    },
  )
})
