import { describe, expect, it } from 'vitest'
import { openApi } from '../../../../../src/docs/openapi.ts'
import { routes as routeTable } from '../../../../../src/protocol/routes.ts'
import { type NodeRoute, openApp } from '../../../../../src/relay/edge/http/http-app.ts'

const routes = Object.values(routeTable)
const rpcRoute: NodeRoute = { id: 'rpc', handle: async () => {} }

function openTestApp(nodeRoutes: readonly NodeRoute[] = [rpcRoute]) {
  const context = { current: {}, now: Date.now, authorize: () => null }
  return openApp({ context, nodeRoutes } as never)
}

const fetchFrom = (app: ReturnType<typeof openTestApp>, method: string, path: string) =>
  app.fetch(new Request(`http://relay${path}`, { method }), { incoming: { headers: {} }, outgoing: {} } as never)

describe('the routes', () => {
  it('are those of the table, and of the OpenAPI document', () => {
    const served = openTestApp()
      .routes.filter(({ method, path }) => (method === 'GET' || method === 'POST') && !path.includes('*'))
      // The files of the board are for its page alone, under names that change with every build.
      .filter(({ path }) => path !== '/assets/:file')
      .map(({ method, path }) => `${method} ${path}`)
    const patterns = (entries: readonly (readonly [method: string, path: string])[]) =>
      new Set(entries.map(([method, path]) => `${method.toUpperCase()} ${path.replace(/\{(\w+)\}(\.json)?/, ':$1')}`))
    const documented = Object.entries(openApi().paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => [method, path] as const),
    )
    expect(new Set(served)).toEqual(patterns(routes.map(({ method, path }) => [method, path])))
    expect(new Set(served)).toEqual(patterns(documented))
  })

  it.each([['/assets/index-abc.js', 'get'] as const, ...routes.map(({ method, path }) => [path, method] as const)])(
    'at %s answer other methods with 405 and the allowed ones',
    async (path, method) => {
      const examplePath = path.replace(/\{\w+\}/, 'transfer')
      for (const other of ['DELETE', 'PUT', method === 'get' ? 'POST' : 'GET']) {
        const { status, headers } = await fetchFrom(openTestApp(), other, examplePath)
        expect([status, headers.get('allow')]).toEqual([405, method === 'get' ? 'GET, HEAD, OPTIONS' : 'POST, OPTIONS'])
      }
    },
  )

  it('that fail are answered with 500 without the cause, which is logged', async () => {
    const warnings: unknown[] = []
    const context = { current: {}, log: (...warning: unknown[]) => warnings.push(warning) }
    const loadDocuments = () => Promise.reject(new Error('no such file'))
    const app = openApp({ context, nodeRoutes: [], loadDocuments } as never)
    expect((await fetchFrom(app, 'GET', '/unknown')).status).toBe(404)
    expect(warnings).toEqual([])
    const response = await fetchFrom(app, 'GET', '/openapi.json')
    expect([response.status, await response.text()]).toEqual([500, expect.not.stringContaining('no such file')])
    expect(warnings).toEqual([['request_failed', { path: '/openapi.json', reason: 'Error: no such file' }]])
  })
})
