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
  it('is a page that may load its own files only, and no text as markup', async () => {
    const response = await openBoardRoutes()('/')
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(response.headers.get('cache-control')).toBe('no-cache')
    const policy = response.headers.get('content-security-policy') ?? ''
    for (const directive of [
      ...["default-src 'none'", "script-src 'self'", "font-src 'self'", "connect-src 'self'"],
      "require-trusted-types-for 'script'",
    ])
      expect(policy.split('; ')).toContain(directive)
    expect(policy).not.toContain('unsafe')
  })

  it('may not be in a frame of another page, and the card of a symbol may', async () => {
    const request = openBoardRoutes()
    const policyOf = async (path: string) => (await request(path)).headers.get('content-security-policy')?.split('; ') ?? []
    const [home, embed] = [await policyOf('/'), await policyOf('/embed/AAPLc')]
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

  it('sends its files for ever, compressed where that is accepted', async () => {
    const request = openBoardRoutes()
    const plain = await request('/assets/index-abc.js')
    expect([await plain.text(), plain.headers.get('content-encoding')]).toEqual([script, null])
    expect(plain.headers.get('content-type')).toBe('text/javascript; charset=utf-8')
    expect(plain.headers.get('cache-control')).toContain('immutable')
    const gzipped = await request('/assets/index-abc.js', { headers: { 'accept-encoding': 'gzip' } })
    expect([await gzipped.text(), gzipped.headers.get('content-encoding')]).toEqual([script, 'gzip'])
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
      const { headers } = await request(path, { headers: { 'accept-encoding': accepted } })
      expect([headers.get('content-encoding'), headers.get('vary')]).toEqual([encoding, 'Accept-Encoding'])
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
