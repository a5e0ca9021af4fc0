import type { HttpBindings } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { type Context, Hono } from 'hono'
import { accepts } from 'hono/accepts'
import { cors } from 'hono/cors'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { RpcPosts } from '../../gateway/http.ts'
import { Refusal } from '../../protocol/refusal.ts'
import type { Query } from '../../protocol/selection.ts'
import type { ServiceStatus } from '../../protocol/status.ts'
import { exportHeaders, openExport } from '../history/export.ts'
import { readFact } from '../history/fact-life.ts'
import { keptHeaders, readPage } from '../history/history-page.ts'
import { askedOf } from '../history/query.ts'
import { bears } from '../limits/auth.ts'
import { Turnstile } from '../limits/work-queue.ts'
import { EXPOSED, headOf, openStream, type Streams } from '../live/http-stream.ts'
import { serveDocuments } from './documents-handler.ts'
import { knows, Listings, standingOf } from './token-list-routes.ts'

type Env = { Bindings: HttpBindings }

/** How a route that cannot answer now says when to come back: seconds. */
const RETRY_AFTER_S = '1'
const loopback = new Set(['127.0.0.1', '::1', '::ffff:127.0.0.1'])

type Options = {
  readonly streams: Streams
  readonly posts: RpcPosts
  /** For how long the list may be kept by others, and by whom. */
  readonly listCaching: string
  readonly metrics: () => Promise<string>
  /** What whoever asks for metrics from another machine must bear; without it nobody is given them there. */
  readonly metricsToken: string | undefined
  /** What keeps this server from being of use now; empty when it is ready. */
  readonly unready: () => readonly string[]
  /** How the service is now. */
  readonly status: () => ServiceStatus
}

/** Every route over plain HTTP. */
export function openApp({ streams, posts, listCaching, metrics, metricsToken, unready, status }: Options): Hono<Env> {
  const app = new Hono<Env>()
  const stream = (c: Context<Env>, path: string | null, format?: Query['format']): Response => {
    const { incoming, outgoing } = c.env
    const query = new URL(c.req.url).searchParams
    const forbidden = streams.admit(incoming, query)
    if (forbidden) throw forbidden
    if (path !== null) query.set('symbols', path)
    const supports = ['text/event-stream', 'application/x-ndjson']
    const accepted = accepts(c, { header: 'Accept', supports, default: 'text/event-stream' }) === supports[1]
    const request = { incoming, outgoing, query, format, accepted: accepted ? ('ndjson' as const) : ('sse' as const) }
    if (c.req.method === 'HEAD') return c.body(null, 200, headOf(streams, request))
    openStream(streams, request)
    return RESPONSE_ALREADY_SENT
  }
  // Before any middleware: an answer that is already on its way must reach the adaptor untouched.
  app.get('/v1/stream', (c) => stream(c, null))
  app.get('/v1/stream/:symbol', (c) => stream(c, c.req.param('symbol')))
  app.get('/v1/tail/:symbol', (c) => stream(c, c.req.param('symbol'), 'text'))
  const turnstile = new Turnstile()
  app.get('/v1/events', async (c, next) => {
    const { incoming, outgoing } = c.env
    const query = new URL(c.req.url).searchParams
    if (!wantsLines(c, query)) return next()
    const forbidden = streams.admit(incoming, query)
    if (forbidden) throw forbidden
    const asked = await askedOf(query, streams.house)
    if (c.req.method === 'HEAD') return c.body(null, 200, exportHeaders(streams.house.tape))
    openExport(streams, turnstile, { incoming, outgoing, asked })
    return RESPONSE_ALREADY_SENT
  })
  app.post('/rpc', async (c) => {
    const { incoming, outgoing } = c.env
    const forbidden = streams.admit(incoming, new URL(c.req.url).searchParams)
    if (forbidden) throw forbidden
    await posts.answer(incoming, outgoing)
    return RESPONSE_ALREADY_SENT
  })
  app.use(
    cors({
      origin: '*',
      allowMethods: ['GET', 'HEAD', 'POST', 'OPTIONS'],
      allowHeaders: ['content-type', 'last-event-id'],
      exposeHeaders: [...EXPOSED],
    }),
  )
  app.use('/v1/*', async (c, next) => {
    const forbidden = streams.admit(c.env.incoming, new URL(c.req.url).searchParams)
    if (forbidden) throw forbidden
    await next()
  })
  app.get('/', (c) => c.redirect('/docs'))
  const paths = serveDocuments(app)
  app.get('/healthz', (c) => c.json({ status: 'ok' }))
  app.get('/readyz', (c) => {
    const reasons = unready()
    return c.json({ status: reasons.length === 0 ? 'ready' : 'unready', reasons }, reasons.length === 0 ? 200 : 503)
  })
  app.get('/metrics', async (c) => {
    const { incoming } = c.env
    // A proxy on this machine asks for somebody else.
    const isHere = loopback.has(incoming.socket.remoteAddress ?? '') && !incoming.headers['x-forwarded-for']
    if (!isHere && !(metricsToken !== undefined && bears(incoming, metricsToken))) {
      throw new Refusal(403, 'forbidden', 'Metrics are given to this machine, and to whoever bears METRICS_TOKEN.')
    }
    return c.text(await metrics())
  })
  app.get('/v1/events', async (c) => {
    const { house } = streams
    const asked = await askedOf(new URL(c.req.url).searchParams, house)
    const reading = { tape: house.tape, turnstile, isGone: () => c.env.outgoing.destroyed }
    const { texts, next } = await turnstile.pass(() => readPage(reading, asked))
    // Said when it was read, so that it names what went meanwhile, too.
    for (const [name, value] of Object.entries(keptHeaders(house.tape))) c.header(name, value)
    return json(c, `{"events":[${texts.join(',')}],"next":${JSON.stringify(next)}}`)
  })
  const listings = new Listings(streams.house.view, streams.house.now)
  app.get('/v1/tokenized-stocks', (c) => {
    const { body, tag, ageS } = listings.read()
    const headers = { etag: tag, age: String(ageS), 'cache-control': listCaching }
    if (knows(c.req.header('if-none-match'), tag)) return c.body(null, 304, headers)
    return c.body(body, 200, { ...headers, 'content-type': 'application/json' })
  })
  app.get('/v1/tokenized-stocks/:selector', async (c) => {
    const standing = await turnstile.pass(() => standingOf(c.req.param('selector'), streams.house, turnstile))
    return json(c, JSON.stringify(standing))
  })
  app.get('/v1/events/:key', (c) => {
    const { key, texts, stage } = readFact(c.req.param('key'), streams.house)
    return json(c, `{"key":"${key}","updates":[${texts.join(',')}],"stage":"${stage}"}`)
  })
  app.get('/v1/status', (c) => json(c, JSON.stringify(status())))
  app.get('/v1/ws', (c) => {
    c.header('upgrade', 'websocket')
    return refused(c, new Refusal(426, 'upgrade_required', 'This is a WebSocket: connect with ws:// and an upgrade.'))
  })
  for (const path of [
    ...paths,
    '/',
    '/v1/ws',
    '/v1/stream',
    '/v1/stream/:symbol',
    '/v1/tail/:symbol',
    '/v1/tokenized-stocks',
    '/v1/tokenized-stocks/:selector',
    '/v1/events',
    '/v1/events/:key',
    '/v1/status',
    '/healthz',
    '/readyz',
    '/metrics',
  ]) {
    app.all(path, (c) => {
      c.header('allow', 'GET, HEAD, OPTIONS')
      return refused(c, new Refusal(405, 'method_not_allowed', `${c.req.method} is not answered here; use GET.`))
    })
  }
  app.all('/rpc', (c) => {
    c.header('allow', 'POST, OPTIONS')
    const advice = 'use POST with a JSON-RPC body, or connect with ws:// for subscriptions.'
    return refused(c, new Refusal(405, 'method_not_allowed', `${c.req.method} is not answered here; ${advice}`))
  })
  app.notFound((c) =>
    refused(c, new Refusal(404, 'unknown_path', 'There is nothing at this path; /docs says what there is.')),
  )
  app.onError((failure, c) => {
    if (failure instanceof Refusal) return refused(c, failure)
    return refused(c, new Refusal(500, 'internal', 'Something failed on this side; try again.'))
  })
  return app
}

/** Whether history is asked for as lines and not as a page: the URL says so, or where it says nothing the header does. */
function wantsLines(c: Context<Env>, query: URLSearchParams): boolean {
  const supports = ['application/json', 'application/x-ndjson']
  const format = query.get('format')
  if (format !== null) return format === 'ndjson'
  return accepts(c, { header: 'Accept', supports, default: 'application/json' }) === supports[1]
}

/** What the tape says, in its own bytes; it may say more in a moment. */
const json = (c: Context<Env>, text: string): Response =>
  c.body(text, 200, { 'content-type': 'application/json', 'cache-control': 'no-store' })

function refused(c: Context<Env>, refusal: Refusal): Response {
  c.header('access-control-allow-origin', '*')
  c.header('access-control-expose-headers', EXPOSED.join(', '))
  if (refusal.code === 503 || refusal.code === 429) c.header('retry-after', RETRY_AFTER_S)
  if (refusal.code === 401) c.header('www-authenticate', 'Bearer')
  return c.json(refusal.record, refusal.code as ContentfulStatusCode)
}
