import { describe, expect, it } from 'vitest'
import { routes as routeTable } from '../../src/protocol/routes.ts'
import { openTestStack } from '../support/test-stack.ts'
import { openedOnce } from './gateway/node-and-gateway.ts'

const routes = Object.values(routeTable)

const stack = openedOnce((lifecycle) => openTestStack({}, lifecycle))

const pathOf = (path: string) =>
  path
    .replace('{type}', 'transfer')
    .replace('{key}', `1-0x${'a'.repeat(64)}-0`)
    .replace(/\{\w+\}/, 'AAPLc')

const requests: readonly (readonly [what: string, path: string, init?: RequestInit])[] = [
  ...routes.map(({ method, path }) => [path, pathOf(path), { method: method.toUpperCase() }] as const),
  ...routes.map(({ path }) => [`${path} with HEAD`, pathOf(path), { method: 'HEAD' }] as const),
  ...routes.map(({ path }) => [`${path} with DELETE`, pathOf(path), { method: 'DELETE' }] as const),
  ['the board', '/'],
  ['a file of the board that is not there', '/assets/nothing.js'],
  ['a preflight', '/v1/stream', { method: 'OPTIONS', headers: { origin: 'null', 'access-control-request-method': 'GET' } }],
  ['an unknown path', '/nothing'],
  ['an unknown symbol', '/v1/stream/NOPE'],
  ['an unknown parameter', '/v1/stream?nope=1'],
  ['a refused stream of a browser', '/v1/stream?symbols=NOPE', { headers: { accept: 'text/event-stream' } }],
  ['a document that is known', '/openapi.json', { headers: { 'if-none-match': '*' } }],
  ['an export', '/v1/events?format=ndjson'],
  ['a page of another origin', '/v1/status', { headers: { origin: 'https://evil.example' } }],
]

describe('every answer', () => {
  it.each(requests.map(([what, path, init = {}]) => [what, path, init] as const))(
    'is neither guessed by a browser nor passes its address on: %s',
    async (_, path, init) => {
      const abort = new AbortController()
      const { status, headers } = await fetch(stack().relay.url + path, { ...init, redirect: 'manual', signal: abort.signal })
      abort.abort()
      expect(status).toBeLessThan(500)
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('referrer-policy')).toBe('no-referrer')
      expect(headers.get('access-control-allow-origin')).toBe('*')
      for (const name of ['access-control-allow-credentials', 'x-powered-by', 'server', 'set-cookie'])
        expect([name, headers.get(name)]).toEqual([name, null])
      if (!headers.get('content-type')?.startsWith('text/html')) return
      const policy = headers.get('content-security-policy')
      expect(policy).toMatch(/^default-src 'none';/)
      const ancestors = path.startsWith('/embed/') ? 'frame-ancestors *' : "frame-ancestors 'none'"
      expect(policy).toContain(ancestors)
      expect(policy?.replace(ancestors, '')).not.toMatch(/unsafe|\*|https?:/)
    },
  )
})
