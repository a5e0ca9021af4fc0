import type { HttpBindings } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { type Context, Hono } from 'hono'
import { accepts } from 'hono/accepts'
import { cors } from 'hono/cors'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { RpcHttpHandler } from '../../gateway/http.ts'
import { Refusal } from '../../protocol/refusal.ts'
import type { StreamQuery } from '../../protocol/selection.ts'
import type { ServiceStatus } from '../../protocol/status.ts'
import { exportHeaders, openExport } from '../history/export.ts'
import { readFact } from '../history/fact-life.ts'
import { keptSinceHeaders, readPage } from '../history/history-page.ts'
import { readHistoryQuery } from '../history/query.ts'
import { hasBearerToken } from '../limits/auth.ts'
import { WorkQueue } from '../limits/work-queue.ts'
import { EXPOSED_HEADERS, openStream, type StreamServices, streamHeadersOf } from '../live/http-stream.ts'
import { internalError } from '../transport/shared-refusals.ts'
import { serveDocuments } from './documents-handler.ts'
import { matchesEtag, readToken, TokenListCache } from './token-list-routes.ts'

type Env = { Bindings: HttpBindings }

/** How a route that cannot answer now says when to come back: seconds. */
const RETRY_AFTER_S = '1'
const loopbackAddresses = new Set(['127.0.0.1', '::1', '::ffff:127.0.0.1'])

type Options = {
  readonly streams: StreamServices
  readonly rpcHttp: RpcHttpHandler
  /** For how long the list may be kept by others, and by whom. */
  readonly listCacheControl: string
  readonly metrics: () => Promise<string>
  /** What whoever asks for metrics from another machine must bear; without it nobody is given them there. */
  readonly metricsToken: string | undefined
  /** What keeps this server from being of use now; empty when it is ready. */
  readonly unreadyReasons: () => readonly string[]
  /** How the service is now. */
  readonly status: () => ServiceStatus
}

/** Every route over plain HTTP. */
export function openApp({
  streams,
  rpcHttp,
  listCacheControl,
  metrics,
  metricsToken,
  unreadyReasons,
  status,
}: Options): Hono<Env> {
  const app = new Hono<Env>()
  const stream = (c: Context<Env>, path: string | null, format?: StreamQuery['format']): Response => {
    const { incoming, outgoing } = c.env
    const query = new URL(c.req.url).searchParams
    const forbidden = streams.authorize(incoming, query)
    if (forbidden) throw forbidden
    if (path !== null) query.set('symbols', path)
    const supports = ['text/event-stream', 'application/x-ndjson']
    const acceptsNdjson = accepts(c, { header: 'Accept', supports, default: 'text/event-stream' }) === supports[1]
    const acceptedFormat = acceptsNdjson ? ('ndjson' as const) : ('sse' as const)
    const request = { incoming, outgoing, query, format, acceptedFormat }
    if (c.req.method === 'HEAD') return c.body(null, 200, streamHeadersOf(streams, request))
    openStream(streams, request)
    return RESPONSE_ALREADY_SENT
  }
  // Before any middleware: an answer that is already on its way must reach the adaptor untouched.
  app.get('/v1/stream', (c) => stream(c, null))
  app.get('/v1/stream/:symbol', (c) => stream(c, c.req.param('symbol')))
  app.get('/v1/tail/:symbol', (c) => stream(c, c.req.param('symbol'), 'text'))
  const workQueue = new WorkQueue()
  app.get('/v1/events', async (c, next) => {
    const { incoming, outgoing } = c.env
    const query = new URL(c.req.url).searchParams
    if (!wantsNdjson(c, query)) return next()
    const forbidden = streams.authorize(incoming, query)
    if (forbidden) throw forbidden
    const historyQuery = await readHistoryQuery(query, streams.edge)
    if (c.req.method === 'HEAD') return c.body(null, 200, exportHeaders(streams.edge.tape))
    openExport(streams, workQueue, { incoming, outgoing, query: historyQuery })
    return RESPONSE_ALREADY_SENT
  })
  app.post('/rpc', async (c) => {
    const { incoming, outgoing } = c.env
    const forbidden = streams.authorize(incoming, new URL(c.req.url).searchParams)
    if (forbidden) throw forbidden
    await rpcHttp.handle(incoming, outgoing)
    return RESPONSE_ALREADY_SENT
  })
  app.use(
    cors({
      origin: '*',
      allowMethods: ['GET', 'HEAD', 'POST', 'OPTIONS'],
      allowHeaders: ['content-type', 'last-event-id'],
      exposeHeaders: [...EXPOSED_HEADERS],
    }),
  )
  app.use('/v1/*', async (c, next) => {
    const forbidden = streams.authorize(c.env.incoming, new URL(c.req.url).searchParams)
    if (forbidden) throw forbidden
    await next()
  })
  app.get('/', (c) => c.redirect('/docs'))
  const paths = serveDocuments(app)
  app.get('/healthz', (c) => c.json({ status: 'ok' }))
  app.get('/readyz', (c) => {
    const reasons = unreadyReasons()
    return c.json({ status: reasons.length === 0 ? 'ready' : 'unready', reasons }, reasons.length === 0 ? 200 : 503)
  })
  app.get('/metrics', async (c) => {
    const { incoming } = c.env
    // A proxy on this machine asks for somebody else.
    const isHere = loopbackAddresses.has(incoming.socket.remoteAddress ?? '') && !incoming.headers['x-forwarded-for']
    if (!isHere && !(metricsToken !== undefined && hasBearerToken(incoming, metricsToken))) {
      throw new Refusal(403, 'forbidden', 'Metrics are given to this machine, and to whoever bears METRICS_TOKEN.')
    }
    return c.text(await metrics())
  })
  app.get('/v1/events', async (c) => {
    const { edge } = streams
    const historyQuery = await readHistoryQuery(new URL(c.req.url).searchParams, edge)
    const context = { tape: edge.tape, workQueue, isGone: () => c.env.outgoing.destroyed }
    const { texts, next } = await workQueue.run(() => readPage(context, historyQuery))
    // Said when it was read, so that it names what went meanwhile, too.
    for (const [name, value] of Object.entries(keptSinceHeaders(edge.tape))) c.header(name, value)
    return sendJson(c, `{"events":[${texts.join(',')}],"next":${JSON.stringify(next)}}`)
  })
  const tokenLists = new TokenListCache(streams.edge.view, streams.edge.now)
  app.get('/v1/tokenized-stocks', (c) => {
    const { body, etag, ageS } = tokenLists.read()
    const headers = { etag: etag, age: String(ageS), 'cache-control': listCacheControl }
    if (matchesEtag(c.req.header('if-none-match'), etag)) return c.body(null, 304, headers)
    return c.body(body, 200, { ...headers, 'content-type': 'application/json' })
  })
  app.get('/v1/tokenized-stocks/:selector', async (c) => {
    const token = await workQueue.run(() => readToken(c.req.param('selector'), streams.edge, workQueue))
    return sendJson(c, JSON.stringify(token))
  })
  app.get('/v1/events/:key', (c) => {
    const { key, texts, stage } = readFact(c.req.param('key'), streams.edge)
    return sendJson(c, `{"key":"${key}","updates":[${texts.join(',')}],"stage":"${stage}"}`)
  })
  app.get('/v1/status', (c) => sendJson(c, JSON.stringify(status())))
  app.get('/v1/ws', (c) => {
    c.header('upgrade', 'websocket')
    return sendRefusal(
      c,
      new Refusal(426, 'upgrade_required', 'This is a WebSocket: connect with ws:// and an upgrade.'),
    )
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
      return sendRefusal(c, new Refusal(405, 'method_not_allowed', `${c.req.method} is not answered here; use GET.`))
    })
  }
  app.all('/rpc', (c) => {
    c.header('allow', 'POST, OPTIONS')
    const advice = 'use POST with a JSON-RPC body, or connect with ws:// for subscriptions.'
    return sendRefusal(c, new Refusal(405, 'method_not_allowed', `${c.req.method} is not answered here; ${advice}`))
  })
  app.notFound((c) =>
    sendRefusal(c, new Refusal(404, 'unknown_path', 'There is nothing at this path; /docs says what there is.')),
  )
  app.onError((failure, c) => {
    if (failure instanceof Refusal) return sendRefusal(c, failure)
    return sendRefusal(c, internalError)
  })
  return app
}

/** Whether history is asked for as lines and not as a page: the URL says so, or where it says nothing the header does. */
function wantsNdjson(c: Context<Env>, query: URLSearchParams): boolean {
  const supports = ['application/json', 'application/x-ndjson']
  const format = query.get('format')
  if (format !== null) return format === 'ndjson'
  return accepts(c, { header: 'Accept', supports, default: 'application/json' }) === supports[1]
}

/** What the tape says, in its own bytes; it may say more in a moment. */
const sendJson = (c: Context<Env>, text: string): Response =>
  c.body(text, 200, { 'content-type': 'application/json', 'cache-control': 'no-store' })

function sendRefusal(c: Context<Env>, refusal: Refusal): Response {
  c.header('access-control-allow-origin', '*')
  c.header('access-control-expose-headers', EXPOSED_HEADERS.join(', '))
  if (refusal.code === 503 || refusal.code === 429) c.header('retry-after', RETRY_AFTER_S)
  if (refusal.code === 401) c.header('www-authenticate', 'Bearer')
  return c.json(refusal.record, refusal.code as ContentfulStatusCode)
}
