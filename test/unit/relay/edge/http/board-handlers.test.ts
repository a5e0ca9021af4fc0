import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getRequestListener } from '@hono/node-server'
import { Hono } from 'hono'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ASSET_PATTERN, type BoardSettings, boardHandlers } from '../../../../../src/relay/edge/http/board-handlers.ts'
import type { Env } from '../../../../../src/relay/edge/http/handler-basics.ts'
import { serve } from '../../../../support/loopback-server.ts'

/** More than an answer that is sent as it is. */
const padding = ' '.repeat(1_024)
const page = `<meta content="%EXPLORER_URL%"><meta content="%DEMO%"><script src="./assets/index-abc.js"></script>${padding}`
const script = `console.log("board")${padding}`

function writeBoard(folder: string): void {
  for (const name of ['assets', 'embed']) mkdirSync(join(folder, name))
  for (const name of ['index.html', 'embed/index.html']) writeFileSync(join(folder, name), page)
  writeFileSync(join(folder, 'assets/index-abc.js'), script)
  writeFileSync(join(folder, 'sources.sha256'), 'digest')
}

/** The routes of a board in a folder that was prepared like this. */
function openBoardRoutes(settings: BoardSettings = { demo: () => false }, prepare = writeBoard) {
  const folder = mkdtempSync(join(tmpdir(), 'stocktape-board-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  prepare(folder)
  const app = new Hono<Env>()
  const { home, embed, asset } = boardHandlers(settings, folder)
  app.get('/', home)
  app.get('/embed/:symbol', embed)
  app.get(ASSET_PATTERN, asset)
  const url = serve(onTestFinished, getRequestListener(app.fetch))
  return async (path: string, init: RequestInit = {}) =>
    fetch((await url) + path, { redirect: 'manual', ...init, headers: { 'accept-encoding': 'identity', ...init.headers } })
}

/** Headers of the relay, without those of the connection. */
const ownHeaders = ({ headers }: Response) => [...headers].filter(([name]) => !['connection', 'keep-alive', 'date'].includes(name))

describe('the board', () => {
  it('is a page that may load its own files only, and no text as markup; the card of a symbol may be in any frame', async () => {
    const request = openBoardRoutes()
    const { headers } = await request('/')
    expect([headers.get('content-type'), headers.get('cache-control')]).toEqual(['text/html; charset=utf-8', 'no-cache'])
    const policyOf = async (path: string) => (await request(path)).headers.get('content-security-policy')?.split('; ') ?? []
    const [home, embed] = [await policyOf('/'), await policyOf('/embed/AAPLc')]
    for (const directive of [
      ...["default-src 'none'", "script-src 'self'", "font-src 'self'", "connect-src 'self'"],
      "require-trusted-types-for 'script'",
    ])
      expect(home).toContain(directive)
    expect(home.join()).not.toContain('unsafe')
    expect(home.filter((directive) => !embed.includes(directive))).toEqual(["frame-ancestors 'none'"])
    expect(embed.filter((directive) => !home.includes(directive))).toEqual(['frame-ancestors *'])
  })

  it.each<[BoardSettings, string]>([
    [{ demo: () => false }, '<meta content=""><meta content="false">'],
    [
      { demo: () => true, explorerUrl: 'https://explorer.example' },
      '<meta content="https://explorer.example"><meta content="true">',
    ],
    [{ demo: () => false, explorerUrl: 'http://a/"><script>$&\'' }, '<meta content="http://a/&quot;&gt;&lt;script&gt;$&amp;\'">'],
    [{ demo: () => true, explorerUrl: 'http://a/%DEMO%' }, '<meta content="http://a/%DEMO%"><meta content="true">'],
    [{ demo: () => true, explorerUrl: 'http://a/%EXPLORER_URL%' }, '<meta content="http://a/%EXPLORER_URL%"><meta content="true">'],
  ])('knows the settings %o', async (settings, expected) => {
    expect(await (await openBoardRoutes(settings)('/')).text()).toContain(expected)
  })

  it('sends its files for caches that keep them', async () => {
    const { headers } = await openBoardRoutes()('/assets/index-abc.js')
    expect(headers.get('content-type')).toBe('text/javascript; charset=utf-8')
    expect(headers.get('cache-control')).toContain('immutable')
  })

  it.each([
    ['gzip', 'gzip'],
    ['br, GZIP;q=0.001', 'gzip'],
    ['gzip ; Q=0.000 , br', null],
    ['not-gzip, gzip-not, br', null],
    ['identity', null],
  ])('reads "Accept-Encoding: %s", and tells caches that it did', async (accepted, encoding) => {
    const request = openBoardRoutes()
    for (const path of ['/', '/assets/index-abc.js']) {
      const answer = await request(path, { headers: { 'accept-encoding': accepted } })
      expect([answer.headers.get('content-encoding'), answer.headers.get('vary')]).toEqual([encoding, 'Accept-Encoding'])
      if (path !== '/') expect(await answer.text()).toBe(script)
    }
  })

  it('is not sent again while it has not changed', async () => {
    const request = openBoardRoutes()
    const etag = (await request('/')).headers.get('etag') ?? ''
    expect(etag).toMatch(/^W\/"[0-9a-f]{32}"$/)
    for (const known of [etag, etag.replace('W/', ''), `"other", ${etag}`, '*']) {
      const again = await request('/', { headers: { 'if-none-match': known } })
      expect([again.status, await again.text(), again.headers.get('etag')]).toEqual([304, '', etag])
    }
    const other = await openBoardRoutes({ demo: () => true })('/', { headers: { 'if-none-match': etag } })
    expect(other.status).toBe(200)
  })

  it.each(['/', '/assets/index-abc.js'])('answers HEAD at %s with the headers of GET', async (path) => {
    const request = openBoardRoutes()
    const get = await request(path)
    const head = await request(path, { method: 'HEAD' })
    expect([head.status, await head.text(), ownHeaders(head)]).toEqual([200, '', ownHeaders(get)])
  })

  it.each([
    ...['/assets/other.js', '/assets/..%2findex.html', '/assets/..%2f..%2fpackage.json', '/assets/sources.sha256'],
    ...['/assets/__proto__', '/assets/%00', '/assets/%ff', '/assets/index-abc.js%2f', `/assets/${'x'.repeat(5_000)}`],
  ])('has nothing at %s, which no cache keeps', async (path) => {
    const response = await openBoardRoutes()(path)
    expect([response.status, await response.json()]).toMatchObject([404, { code: 404 }])
    expect(response.headers.get('cache-control')).toBe('no-store')
  })

  it.each([
    ['was not built', () => {}],
    ['has a page without files', (folder: string) => writeFileSync(join(folder, 'index.html'), page)],
    ['cannot be read', (folder: string) => mkdirSync(join(folder, 'index.html'))],
  ])('leads to the documentation where it %s', async (_, prepare) => {
    const request = openBoardRoutes({ demo: () => true }, prepare)
    const response = await request('/')
    expect([response.status, response.headers.get('location')]).toEqual([302, '/docs'])
    expect((await request('/assets/index-abc.js')).status).toBe(404)
  })
})
