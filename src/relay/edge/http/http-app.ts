import type { IncomingMessage, ServerResponse } from 'node:http'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { type Context, Hono } from 'hono'
import { cors } from 'hono/cors'
import { UDF_PREFIX } from '../../../protocol/bars/udf.ts'
import { Refusal } from '../../../protocol/refusal.ts'
import { type RouteId, routeIds, routes } from '../../../protocol/routes.ts'
import type { Config } from '../../config/config.ts'
import type { Metrics } from '../../metrics.ts'
import { LongWorkQueue } from '../limits/long-work-queue.ts'
import * as refusals from '../limits/refusals.ts'
import type { EdgeContext } from '../live/edge-context.ts'
import { sendRefusal } from '../transport/send-refusal.ts'
import { EXPOSED_HEADERS } from '../transport/shared-headers.ts'
import { accessTokenHandlers } from './access-token-handlers.ts'
import { barExportHandlers, barHandlers } from './bar-handlers.ts'
import { ASSET_PATTERN, boardHandlers } from './board-handlers.ts'
import { documentHandlers, type LoadDocuments } from './document-handlers.ts'
import { authorizedQuery, type Env, type Handlers } from './handler-basics.ts'
import { exportHandlers, historyHandlers } from './history-handlers.ts'
import { type EdgeServer, listen } from './http-server.ts'
import { type ServiceReports, serviceHandlers } from './service-handlers.ts'
import { streamHandlers } from './stream-handlers.ts'
import { tokenHandlers } from './token-handlers.ts'
import { udfHandlers } from './udf-handlers.ts'
import type { WebSocketRoute } from './websocket-upgrade.ts'

type PartRoute = 'rpc'
/** A route that another part of the relay serves, with Node's own request and response. */
export type NodeRoute = {
  readonly id: PartRoute
  readonly handle: (incoming: IncomingMessage, outgoing: ServerResponse) => Promise<void>
}

type HttpInputs = Pick<ServiceReports, 'unreadyReasons' | 'status'> & {
  readonly config: Config
  readonly context: EdgeContext
  readonly parts: readonly { readonly routes: readonly NodeRoute[]; readonly webSocketRoutes: readonly WebSocketRoute[] }[]
  readonly metrics: Metrics
  readonly loadDocuments: LoadDocuments
}

/** Listens on the port of the process. */
export function openHttpEdge({ config, context, parts, metrics, ...reports }: HttpInputs): Promise<EdgeServer> {
  const { edge, process: own } = config
  const app = openApp({
    ...reports,
    context,
    nodeRoutes: parts.flatMap(({ routes }) => routes),
    listCacheControl: `${context.keys ? 'private' : 'public'}, max-age=${Math.ceil(config.tokens.stocksRefreshMs / 1_000)}`,
    explorerUrl: edge.explorerUrl,
    metrics: own.metricsPort === undefined ? metrics.text : null,
    metricsToken: edge.metricsToken,
    onlyServiceRoutes: own.role === 'ingest',
  })
  const refusal = own.role === 'ingest' ? refusals.onlyIngests : null
  const webSocketRoutes = parts.flatMap((part) => part.webSocketRoutes)
  const address = {
    host: own.host,
    port: own.port,
    maxClients: edge.maxClients,
    maxPerAddress: () => Math.max(edge.maxClientsPerAddress, context.keys?.maxClients ?? 0),
    trustedProxies: edge.trustedProxies,
  }
  return listen(app, { context, webSocketRoutes, refusal }, address)
}

type Options = Omit<ServiceReports, 'demo'> &
  Pick<HttpInputs, 'context' | 'loadDocuments'> & {
    readonly nodeRoutes: readonly NodeRoute[]
    readonly listCacheControl: string
    readonly explorerUrl?: string | undefined
    /** Whether the process serves no clients, only the routes about its own state. */
    readonly onlyServiceRoutes?: boolean
  }

const serviceRoutes = ['status', 'health', 'ready', 'metrics'] as const satisfies readonly RouteId[]

/** Makes the app that answers every route of the table over plain HTTP. A route without a handler does not compile. */
export function openApp(options: Options): Hono<Env> {
  const { context, nodeRoutes, loadDocuments, listCacheControl, explorerUrl, onlyServiceRoutes, ...reports } = options
  const app = new Hono<Env>()
  const workQueue = new LongWorkQueue()
  const { asset, ...page } = boardHandlers({ explorerUrl, demo: context.demo })
  // Registered before any middleware: middleware must not touch a raw answer, and would copy a document for each request.
  const first = {
    ...streamHandlers(context),
    ...exportHandlers(context, workQueue),
    ...barExportHandlers(context, workQueue),
    ...nodeHandlers(context, nodeRoutes),
    ...documentHandlers(loadDocuments),
    ...page,
  }
  const others = {
    ...serviceHandlers({ ...reports, demo: context.demo }),
    ...historyHandlers(context, workQueue),
    ...barHandlers(context, workQueue),
    ...udfHandlers(context, workQueue),
    ...accessTokenHandlers(context),
    ...tokenHandlers(context, workQueue, listCacheControl),
  }
  const served = { ...first, ...others } satisfies Handlers<Exclude<RouteId, PartRoute>>
  const servicePaths: readonly string[] = serviceRoutes.map((id) => routes[id].path)
  if (onlyServiceRoutes)
    app.use('*', async (c, next) => (servicePaths.includes(c.req.path) ? await next() : refuse(c, refusals.onlyIngests)))
  register(app, first)
  app.get(ASSET_PATTERN, asset)
  app.use(
    cors({
      origin: '*',
      allowMethods: ['GET', 'HEAD', 'POST', 'OPTIONS'],
      allowHeaders: ['content-type', 'last-event-id', 'authorization', 'if-none-match'],
      exposeHeaders: [...EXPOSED_HEADERS],
    }),
  )
  for (const pattern of ['/v1/*', `${UDF_PREFIX}*`])
    app.use(pattern, async (c, next) => {
      authorizedQuery(c, context)
      await next()
    })
  register(app, others)
  refuseOtherMethods(app, served)
  app.notFound((c) => refuse(c, refusals.unknownPath(c.req.path)))
  app.onError((failure, c) => {
    if (failure instanceof Refusal) return refuse(c, failure)
    context.log('request_failed', { path: c.req.path, reason: String(failure) })
    return refuse(c, refusals.internalError)
  })
  return app
}

const refuse = (c: Context<Env>, refusal: Refusal): Response =>
  sendRefusal(c, refusal, c.req.path.startsWith(UDF_PREFIX) ? 'udf' : 'json')

function nodeHandlers(context: EdgeContext, nodeRoutes: readonly NodeRoute[]): Partial<Handlers<PartRoute>> {
  return Object.fromEntries(
    nodeRoutes.map(({ id, handle }): [PartRoute, Handlers[PartRoute]] => [
      id,
      async (c) => {
        authorizedQuery(c, context)
        await handle(c.env.incoming, c.env.outgoing)
        return RESPONSE_ALREADY_SENT
      },
    ]),
  )
}

function register(app: Hono<Env>, handlers: Partial<Handlers>): void {
  for (const id of routeIds) {
    const handler = handlers[id]
    if (handler) app[routes[id].method](patternOf(id), handler)
  }
}

function refuseOtherMethods(app: Hono<Env>, served: Partial<Handlers>): void {
  const refuseAt = (pattern: string, allow: string, advice = 'use GET.') =>
    app.all(pattern, (c) => {
      c.header('allow', allow)
      return refuse(c, refusals.methodNotAllowed(c.req.method, advice))
    })
  for (const id of routeIds) {
    const { method, otherMethods } = routes[id]
    if (served[id]) refuseAt(patternOf(id), method === 'get' ? 'GET, HEAD, OPTIONS' : 'POST, OPTIONS', otherMethods)
  }
  refuseAt(ASSET_PATTERN, 'GET, HEAD, OPTIONS')
}

/** A path of the table in Hono's syntax. The handler itself reads a suffix after a parameter, such as `.json`. */
const patternOf = (id: RouteId): string => routes[id].path.replace(/\{(\w+)\}.*/, ':$1')
