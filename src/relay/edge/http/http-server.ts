import { createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from 'node:http'
import type { AddressInfo, BlockList } from 'node:net'
import { getRequestListener, type HttpBindings } from '@hono/node-server'
import type { Hono } from 'hono'
import * as refusals from '../limits/refusals.ts'
import { refusalHeaders, refusalResponse, sendRawRefusal } from '../transport/send-refusal.ts'
import { safetyHeaders } from '../transport/shared-headers.ts'
import { detach, isTaken } from '../transport/socket-takeover.ts'
import { PipelinedRequests } from './pipelined-requests.ts'
import { TcpConnections } from './tcp-connections.ts'
import { UnsentAnswers } from './unsent-answers.ts'
import { serveWebSockets, type WebSocketServices } from './websocket-upgrade.ts'

/** Limits on the time that a client may take. */
const BOUNDS_MS = {
  headers: 10_000,
  request: 15_000,
  keepAlive: 5_000,
  /** Limit for a client that reads nothing of its answer. */
  answer: 30_000,
  /** Limit for a connection that sends nothing, because none of the others applies to it. */
  idle: 15_000,
  /** Interval at which Node checks `headers` and `request`. With its default of 30 s, a limit of 10 s could become 40 s. */
  check: 1_000,
}
const HEADERS_BOUND_BYTES = 8_192
const REQUESTS_BOUND = 1_000
/** Number of connections beyond those of the listeners: for history, health and metrics, and for refusals. */
const SPARE_CONNECTIONS = 1_000
/** Number of spare connections of one address: a browser opens six, and many people may share one address. */
const SPARE_CONNECTIONS_PER_ADDRESS = 200
/** Number of connections that Node accepts above the limit, because a connection that is cut counts until the next turn. */
const CONNECTIONS_CLOSING = 500
/** Limit of the connections that wait to be accepted. A flood fills Node's default of 511, and a client then waits a second. */
const ACCEPT_BACKLOG = 4_096
/** Interval at which a stopping server closes connections that need no further answer. */
const IDLE_CHECK_MS = 50

const parserErrorStatuses: Readonly<Record<string, number>> = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 }

export class ListenError extends Error {}

export type EdgeServer = {
  readonly port: number
  /** Accepts no new connection. Resolves when all connections have ended, which it forces after `withinMs`. */
  close(withinMs: number): Promise<void>
}

type ListenAddress = {
  readonly host: string
  readonly port: number
  readonly maxClients: number
  /** Limit of the connections from one address. It changes with the API keys, because an API key may allow more. */
  readonly maxPerAddress?: () => number
  /** The addresses of proxies have no limit: a proxy forwards the connections of many clients. */
  readonly trustedProxies?: BlockList | undefined
}

export async function listen(
  app: Hono<{ Bindings: HttpBindings }>,
  services: WebSocketServices,
  address: ListenAddress,
  boundsMs: Readonly<typeof BOUNDS_MS> = BOUNDS_MS,
): Promise<EdgeServer> {
  const { clientAddressOf, countRefusal } = services.context
  const { maxClients, maxPerAddress = () => maxClients, trustedProxies } = address
  const answers = new UnsentAnswers(countRefusal)
  const bounds = {
    idleBoundMs: boundsMs.idle,
    bound: maxClients + SPARE_CONNECTIONS,
    maxPerAddress: () => maxPerAddress() + SPARE_CONNECTIONS_PER_ADDRESS,
    trustedProxies,
    countRefusal,
  }
  const connections = new TcpConnections(bounds, answers)
  const handle = getRequestListener(app.fetch, { errorHandler: refusalResponse })
  const requests = new PipelinedRequests((incoming, outgoing) => {
    // A stopping server keeps no connection open for another request.
    if (!server.listening) outgoing.shouldKeepAlive = false
    for (const [name, value] of safetyHeaderEntries) outgoing.setHeader(name, value)
    if (refusals.hasTooManyHeaders(incoming.rawHeaders))
      return void outgoing.writeHead(431, refusalHeaders).end(JSON.stringify(refusals.tooManyHeaders.record))
    const hold = () => answers.hold(incoming.socket, outgoing, () => clientAddressOf(incoming))
    handle(incoming, outgoing).then(hold, hold)
  })
  const server = createServer(serverOptions(boundsMs), (incoming, outgoing) => {
    connections.markUsed(incoming.socket)
    answers.start(incoming.socket, outgoing)
    if (isTaken(incoming.socket)) return detach(incoming, outgoing)
    requests.run(incoming, outgoing)
  })
  server.timeout = boundsMs.answer
  server.maxConnections = maxClients + SPARE_CONNECTIONS + CONNECTIONS_CLOSING
  // Node omits headers beyond this number. One more than allowed shows that there are too many.
  server.maxHeadersCount = refusals.HEADERS_BOUND + 1
  server.maxRequestsPerSocket = REQUESTS_BOUND
  server.on('connection', (socket) => {
    connections.add(socket)
    requests.add(socket)
  })
  server.on('dropRequest', (_, socket) => requests.end(socket))
  server.on('checkExpectation', (incoming, outgoing) => requests.run(incoming, outgoing, refuseExpectation))
  server.prependListener('upgrade', ({ socket }) => connections.markUsed(socket))
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    // An error must not be written into an answer that is pending or being sent.
    const isBusy = isTaken(socket) || answers.isAnswering(socket)
    if (error.code === 'ECONNRESET' || !socket.writable || isBusy) return socket.destroy()
    const refusal = refusals.unreadableRequest(parserErrorStatuses[error.code ?? ''] ?? 400)
    countRefusal(refusal.code)
    sendRawRefusal(socket, refusal)
  })
  const webSockets = serveWebSockets(server, requests, services)
  await startListening(server, address, 'PORT')
  return {
    port: (server.address() as AddressInfo).port,
    close: async (withinMs) => {
      await closeServer(server, connections, withinMs)
      connections.close()
      webSockets.close()
    },
  }
}

/** Refuses a request with an `Expect` header in its turn: Node itself would answer it before earlier requests. */
const refuseExpectation = (_: IncomingMessage, outgoing: ServerResponse): void => void outgoing.writeHead(417, {}).end()

const safetyHeaderEntries = Object.entries(safetyHeaders)

const serverOptions = (boundsMs: Readonly<typeof BOUNDS_MS>): ServerOptions => ({
  headersTimeout: boundsMs.headers,
  requestTimeout: boundsMs.request,
  connectionsCheckingInterval: boundsMs.check,
  keepAliveTimeout: boundsMs.keepAlive,
  // The relay refuses a request without a host itself, with an error record.
  requireHostHeader: false,
  maxHeaderSize: HEADERS_BOUND_BYTES,
  noDelay: true,
  // A client that only offers another protocol, such as h2c, is answered over HTTP/1.1.
  shouldUpgradeCallback: ({ headers }: IncomingMessage) => headers.upgrade?.toLowerCase() === 'websocket',
})

async function closeServer(server: Server, connections: TcpConnections, withinMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  const idleTimer = setInterval(() => {
    server.closeIdleConnections()
    connections.destroyUnused()
  }, IDLE_CHECK_MS)
  const deadline = setTimeout(() => connections.destroyAll(), withinMs)
  await closed
  clearTimeout(deadline)
  clearInterval(idleTimer)
}

/** Rejects with a ListenError that names the setting of the port. */
export const startListening = (
  server: Server,
  { host, port }: Pick<ListenAddress, 'host' | 'port'>,
  setting: string,
): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', (failure: NodeJS.ErrnoException) => {
      const why =
        failure.code === 'EADDRINUSE'
          ? `is in use: stop what listens there or set another ${setting}`
          : `cannot be listened on (${failure.message}): set another HOST or ${setting}`
      reject(new ListenError(`port ${port} on ${host} ${why}`))
    })
    server.listen({ port, host, backlog: ACCEPT_BACKLOG }, resolve)
  })
