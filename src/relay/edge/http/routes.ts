import type { IncomingMessage, ServerResponse } from 'node:http'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { Hono } from 'hono'
import { cors } from 'hono/cors'
import { type Route, routes } from '../../../docs/route-table.ts'
import { Refusal } from '../../../protocol/refusal.ts'
import { WorkQueue } from '../limits/work-queue.ts'
import type { StreamServices } from '../live/http-stream.ts'
import { EXPOSED_HEADERS } from '../transport/exposed-headers.ts'
import { internalError } from '../transport/shared-refusals.ts'
import { refuseOtherBoardMethods, registerBoard } from './board.ts'
import { documentHandlers } from './documents-handler.ts'
import { authorizedQuery, type Env, type Handlers } from './handlers.ts'
import { exportHandlers, historyHandlers } from './history-handlers.ts'
import { methodNotAllowed, onlyIngests, sendRefusal, unknownPath } from './refusals.ts'
import { type ServiceReports, serviceHandlers } from './service-handlers.ts'
import { streamHandlers } from './stream-handlers.ts'
import { accessTokenHandlers } from './token-handler.ts'
import { tokenListHandlers } from './token-list-routes.ts'

/** A route of another part of the relay, over node's own request and response. */
export type NodeRoute = Pick<Route, 'method' | 'path'> & {
  readonly handle: (incoming: IncomingMessage, outgoing: ServerResponse) => Promise<void>
}

type Options = Omit<ServiceReports, 'demo'> & {
  readonly streams: StreamServices
  readonly nodeRoutes: readonly NodeRoute[]
  /** For how long the list may be kept by others, and by whom. */
  readonly listCacheControl: string
  /** A block explorer, for the links of the board. */
  readonly explorerUrl?: string | undefined
  /** Whether the process has no clients, and says only how it is. */
  readonly onlyServiceRoutes?: boolean
}

const serviceRoutes: ReadonlySet<string> = new Set(['status', 'health', 'ready', 'metrics'])

/** Every route over plain HTTP, as the route table lists them. */
export function openApp({ streams, nodeRoutes, listCacheControl, explorerUrl, onlyServiceRoutes, ...reports }: Options): Hono<Env> {
  const app = new Hono<Env>()
  const workQueue = new WorkQueue()
  const rawHandlers = { ...streamHandlers(streams), ...exportHandlers(streams, workQueue), ...nodeHandlers(streams, nodeRoutes) }
  const handlers = {
    ...serviceHandlers({ ...reports, demo: streams.edge.demo }),
    ...historyHandlers(streams, workQueue),
    ...accessTokenHandlers(streams),
    ...tokenListHandlers(streams, workQueue, listCacheControl),
  }
  const servicePaths = new Set(routes.flatMap(({ id, path }) => (serviceRoutes.has(id) ? [path] : [])))
  if (onlyServiceRoutes)
    app.use('*', async (c, next) => (servicePaths.has(c.req.path) ? await next() : sendRefusal(c, onlyIngests)))
  // Before any middleware: it must not touch an answer that is already being written on the raw response.
  register(app, rawHandlers)
  // And it would copy what never changes for each answer.
  register(app, documentHandlers)
  registerBoard(app, { explorerUrl, demo: streams.edge.demo })
  app.use(
    cors({
      origin: '*',
      allowMethods: ['GET', 'HEAD', 'POST', 'OPTIONS'],
      allowHeaders: ['content-type', 'last-event-id', 'authorization', 'if-none-match'],
      exposeHeaders: [...EXPOSED_HEADERS],
    }),
  )
  app.use('/v1/*', async (c, next) => {
    authorizedQuery(c, streams)
    await next()
  })
  register(app, handlers)
  refuseOtherBoardMethods(app)
  refuseOtherMethods(app, { ...rawHandlers, ...documentHandlers, ...handlers })
  app.notFound((c) => sendRefusal(c, unknownPath))
  app.onError((failure, c) => sendRefusal(c, failure instanceof Refusal ? failure : internalError))
  return app
}

function nodeHandlers(streams: StreamServices, nodeRoutes: readonly NodeRoute[]): Handlers {
  return Object.fromEntries(
    nodeRoutes.map(({ method, path, handle }): [string, Handlers['rpc']] => [
      idOf(method, path),
      async (c) => {
        authorizedQuery(c, streams)
        await handle(c.env.incoming, c.env.outgoing)
        return RESPONSE_ALREADY_SENT
      },
    ]),
  )
}

function idOf(method: string, path: string): string {
  const route = routes.find((candidate) => candidate.method === method && candidate.path === path)
  if (!route) throw new Error(`${method} ${path} is not in the route table`)
  return route.id
}

function register(app: Hono<Env>, handlers: Handlers): void {
  for (const route of routes) {
    const handler = handlers[route.id]
    if (handler) app[route.method](patternOf(route), handler)
  }
}

/** Answers what a served path does not with 405, which names what it does. */
function refuseOtherMethods(app: Hono<Env>, served: Handlers): void {
  for (const route of routes) {
    if (!served[route.id]) continue
    app.all(patternOf(route), (c) => {
      c.header('allow', route.method === 'get' ? 'GET, HEAD, OPTIONS' : 'POST, OPTIONS')
      return sendRefusal(c, methodNotAllowed(c.req.method, route.otherMethods ?? 'use GET.'))
    })
  }
}

/** A path of the table as Hono writes it. What follows a parameter, such as `.json`, is left to the handler. */
const patternOf = ({ path }: Route): string => path.replace(/\{(\w+)\}.*/, ':$1')
